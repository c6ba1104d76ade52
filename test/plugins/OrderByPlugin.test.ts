import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { propertyRuns } from "../property-runs.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  sql: `
    create type public.level as enum ('LOW', 'MIDDLE', 'HIGH');
    create table public.people (
      id         int primary key,
      name       text,
      manager_id int references public.people
    );
    create table public.tasks (
      id        int primary key,
      title     text not null,
      points    numeric,
      level     public.level,
      due_at    timestamptz,
      person_id int references public.people
    );
    comment on table public.tasks is '@order title desc';
    create table public.notes (task_id int references public.tasks, text text);
    grant select on public.people, public.tasks, public.notes to anon;
    insert into public.people values (1, 'Ada', null), (2, null, 1), (3, 'Bob', 2), (4, 'Cy', 3);
    insert into public.tasks values
      (1, 'a', 2, 'HIGH', '2026-01-01T00:00:00.000001Z', 1), (2, 'b', null, 'LOW', null, 2),
      (3, 'a', 2, null, '2026-01-01T00:00:00.000002Z', 3), (4, 'c', 'NaN', 'MIDDLE', 'infinity', null),
      (5, 'b', 1.5, 'LOW', '2026-01-01T00:00:00.000002Z', 4), (6, 'c', 10, 'HIGH', null, 1);
    insert into public.notes values (1, 'b'), (1, 'a'), (2, 'c');
  `,
});
const read: typeof generated.read = (...request) => generated.read(...request);

type Edge = { readonly cursor: string; readonly node: { readonly id: string } };
const PAGE = `query ($orderBy: [TaskOrderByInput!], $first: Int, $after: String, $last: Int, $before: String) {
  tasks(orderBy: $orderBy, first: $first, after: $after, last: $last, before: $before) {
    edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage } } }`;

async function idsBy(orderBy: string): Promise<number[]> {
  const { tasks } = await read(anonymous, `{ tasks(orderBy: ${orderBy}) { edges { node { id } } } }`);
  return tasks.edges.map(({ node }: Edge) => Number(node.id));
}

describe("rows are in the order", () => {
  test.each([
    ["[{ points: ASC }]", [5, 1, 3, 6, 4, 2]],
    ["[{ points: DESC }]", [2, 4, 6, 3, 1, 5]],
    ["[{ points: ASC_NULLS_FIRST }]", [2, 5, 1, 3, 6, 4]],
    ["[{ points: DESC_NULLS_LAST }]", [4, 6, 3, 1, 5, 2]],
    ["[{ level: DESC_NULLS_LAST }, { title: ASC }, { id: DESC }]", [1, 6, 4, 5, 2, 3]],
    ["[{ person: { name: ASC } }, { id: ASC }]", [1, 6, 3, 5, 2, 4]],
    ["[{ person: { manager: { name: DESC_NULLS_LAST } } }, { id: ASC }]", [5, 2, 1, 3, 4, 6]],
    ["[{ person: { manager: { manager: { name: ASC } } } }, { id: DESC }]", [3, 6, 5, 4, 2, 1]],
    ["{ id: DESC }", [6, 5, 4, 3, 2, 1]],
    ["[]", [6, 4, 5, 2, 3, 1]],
    ["null", [6, 4, 5, 2, 3, 1]],
  ])("%s", async (orderBy, ids) => {
    expect(await idsBy(orderBy)).toEqual(ids);
  });

  test("in lists of related rows and of tables without a key too", async () => {
    const { tasks, notes } = await read(
      anonymous,
      `query ($by: SortDirection) {
        tasks(where: { id: { eq: 1 } }) { edges { node { notes(orderBy: { text: $by }) { text } } } }
        notes(orderBy: { text: DESC }) { text } }`.replace("$by: SortDirection", "$by: SortDirection!"),
      { by: "ASC" },
    );
    expect(tasks.edges[0].node.notes).toEqual([{ text: "a" }, { text: "b" }]);
    expect(notes).toEqual([{ text: "c" }, { text: "b" }, { text: "a" }]);
  });
});

test("one item of an order is one column", async () => {
  await expect(read(anonymous, "{ tasks(orderBy: [{ id: ASC, title: ASC }]) { totalCount } }")).rejects.toThrow(
    /exactly one/i,
  );
  const { faults } = await generated.ask(anonymous, PAGE, { orderBy: [{ id: "ASC", title: "ASC" }] });
  expect(faults.length).toBeGreaterThan(0);
});

test("a cursor of another order is refused", async () => {
  const { tasks } = await read(anonymous, PAGE, { first: 1, orderBy: [{ points: "ASC" }] });
  const { faults } = await generated.ask(anonymous, PAGE, {
    after: tasks.edges[0].cursor,
    orderBy: [{ title: "ASC" }],
  });
  expect(faults).toHaveLength(1);
});

const direction = fc.constantFrom(
  "ASC",
  "DESC",
  "ASC_NULLS_FIRST",
  "ASC_NULLS_LAST",
  "DESC_NULLS_FIRST",
  "DESC_NULLS_LAST",
);
const term = fc.oneof(
  ...["id", "title", "points", "level", "dueAt", "personId"].map((column) => fc.record({ [column]: direction })),
  fc.record({ person: fc.record({ name: direction }) }),
  fc.record({ person: fc.record({ manager: fc.record({ name: direction }) }) }),
);

test("pages in any order contain each row once, forwards and backwards", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(term, { maxLength: 3 }), fc.integer({ min: 1, max: 4 }), async (orderBy, size) => {
      const { tasks: whole } = await read(anonymous, PAGE, { orderBy, first: 100 });
      const ids = whole.edges.map(({ node }: Edge) => node.id);
      expect(ids.toSorted()).toEqual(["1", "2", "3", "4", "5", "6"]);
      const forwards: string[] = [];
      for (let after: string | null = null; ; ) {
        const { tasks } = await read(anonymous, PAGE, { orderBy, first: size, after });
        forwards.push(...tasks.edges.map(({ node }: Edge) => node.id));
        if (!tasks.pageInfo.hasNextPage) break;
        after = tasks.edges.at(-1).cursor;
      }
      expect(forwards).toEqual(ids);
      const backwards: string[] = [];
      for (let before: string | null = null; ; ) {
        const { tasks } = await read(anonymous, PAGE, { orderBy, last: size, before });
        backwards.unshift(...tasks.edges.map(({ node }: Edge) => node.id));
        if (!tasks.pageInfo.hasPreviousPage) break;
        before = tasks.edges[0].cursor;
      }
      expect(backwards).toEqual(ids);
    }),
    { numRuns: propertyRuns(40) },
  );
});

import * as fc from "fast-check";
import type { GraphQLInputObjectType } from "grafast/graphql";
import { describe, expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { propertyRuns } from "../property-runs.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  sql: `
    create type public.size as enum ('SMALL', 'MEDIUM', 'LARGE');
    create domain public.old_size as public.size;
    create table public.crates (
      id       int primary key,
      label    text,
      height   int,
      tags     text[],
      opened   boolean,
      size     public.size,
      old_size public.old_size,
      made_at  timestamptz,
      span     int4range,
      details  jsonb,
      plain    json,
      words    tsvector,
      spot     point,
      spots    point[],
      secret   text,
      internal text,
      "and"    text,
      parent_id int references public.crates
    );
    comment on column public.crates.internal is '@behavior -attribute:select';
    create table public.items (
      id     int primary key,
      crate_id int not null references public.crates,
      name   text,
      hidden boolean not null default false
    );
    alter table public.items enable row level security;
    create policy shown on public.items for select using (not hidden);
    create table public.places ("where" text primary key, order_by text);
    create index on public.places (order_by);
    grant select (id, label, height, tags, opened, size, old_size, made_at, span, details, plain, words, spot, spots, internal, "and", parent_id)
      on public.crates to anon;
    grant select on public.items, public.places to anon;
    insert into public.crates
      (id, label, height, tags, opened, size, old_size, made_at, span, details, plain, words, secret, "and", parent_id) values
      (1, 'ab', 1, '{a,b}', true, 'SMALL', 'LARGE', '2026-01-01T00:00:00Z', '[1,5)', '{"a": 1}', '{}', 'cat dog', 's', 'x', null),
      (2, 'b', 2, '{}', false, 'MEDIUM', 'SMALL', '2026-02-01T00:00:00Z', '[5,9)', '{"a": 2}', '{}', 'bird', 't', 'y', 1),
      (3, null, null, null, null, null, null, null, null, null, null, null, null, null, 2),
      (4, 'The quick foxes', 3, '{b}', true, 'LARGE', 'LARGE', '2026-03-01T00:00:00Z', '[20,30)', '[1]', '{}', '', 'u', 'z', 1);
    insert into public.items (id, crate_id, name, hidden) values
      (1, 1, 'a', false), (2, 1, 'b', false), (3, 2, 'a', true), (4, 4, null, false);
  `,
});
const read: typeof generated.read = (...request) => generated.read(...request);

async function cratesWhere(where: string): Promise<number[]> {
  const { crates } = await read(anonymous, `{ crates(where: ${where}) { edges { node { id } } } }`);
  return crates.edges.map(({ node }: { node: { id: string } }) => Number(node.id));
}

function fieldsOf(type: string): string[] {
  const found = generated.schema.getType(type) as unknown as { getFields(): Record<string, unknown> };
  return Object.keys(found.getFields());
}

describe("an operator of a column", () => {
  test.each([
    ["{ id: { eq: 2 } }", [2]],
    ["{ id: { in: [1, 3, 9] } }", [1, 3]],
    ["{ id: { in: [] } }", []],
    ["{ height: { neq: 1 } }", [2, 4]],
    ["{ height: { isdistinct: 1 } }", [2, 3, 4]],
    ["{ height: { gt: 1, lte: 2 } }", [2]],
    ["{ height: { gte: 2 } }", [2, 4]],
    ["{ height: { lt: 2 } }", [1]],
    ["{ height: { isNull: true } }", [3]],
    ["{ height: { isNull: false } }", [1, 2, 4]],
    ['{ label: { like: "%b" } }', [1, 2]],
    ['{ label: { ilike: "THE%" } }', [4]],
    ['{ label: { match: "^.$" } }', [2]],
    ['{ label: { imatch: "^THE" } }', [4]],
    ['{ label: { fts: { query: "fox & quick", language: "english" } } }', [4]],
    ['{ label: { plfts: { query: "quick foxes" } } }', [4]],
    ['{ label: { phfts: { query: "foxes quick", language: "simple" } } }', []],
    ['{ label: { wfts: { query: "foxes -quick", language: "english" } } }', []],
    ['{ words: { plfts: { query: "dog" } } }', [1]],
    ['{ tags: { cs: ["b"] } }', [1, 4]],
    ['{ tags: { cd: ["b", "c"] } }', [2, 4]],
    ['{ tags: { ov: ["a", "z"] } }', [1]],
    ["{ tags: { eq: [] } }", [2]],
    ["{ opened: { eq: true } }", [1, 4]],
    ["{ opened: { neq: true } }", [2]],
    ["{ size: { eq: SMALL } }", [1]],
    ["{ size: { gte: MEDIUM } }", [2, 4]],
    ["{ size: { in: [SMALL, LARGE] } }", [1, 4]],
    ["{ oldSize: { gt: SMALL } }", [1, 4]],
    ["{ oldSize: { in: [SMALL] } }", [2]],
    ['{ madeAt: { gte: "2026-02-01T00:00:00Z" } }', [2, 4]],
    ["{ span: { ov: { start: { value: 4, inclusive: true }, end: { value: 6, inclusive: false } } } }", [1, 2]],
    ["{ span: { sl: { start: { value: 10, inclusive: true } } } }", [1, 2]],
    ["{ span: { adj: { start: { value: 9, inclusive: true }, end: { value: 20, inclusive: false } } } }", [2, 4]],
    ["{ details: { cs: { a: 1 } } }", [1]],
    ["{ details: { cd: [1, 2] } }", [4]],
    ["{ plain: { isNull: true } }", [3]],
    ["{ spot: { isNull: true } }", [1, 2, 3, 4]],
    ["{ spots: { isNull: true } }", [1, 2, 3, 4]],
    ['{ and_: { eq: "x" } }', [1]],
    ["{ parentId: { eq: 1 } }", [2, 4]],
  ])("%s", async (where, ids) => {
    expect(await cratesWhere(where)).toEqual(ids);
  });
});

describe("null", () => {
  test.each([
    ["{ height: { eq: null } }", []],
    ["{ not: { height: { eq: null } } }", []],
    ["{ height: { in: null } }", []],
    ["{ height: { isdistinct: null } }", [1, 2, 4]],
    ["{ height: { isNull: null } }", []],
    ["{ height: null }", []],
    ["{ parent: null }", []],
    ["{ items: { some: null } }", []],
    ["{ or: null }", []],
    ["{ or: [{ height: { eq: null } }, { id: { eq: 1 } }] }", [1]],
    ["null", [1, 2, 3, 4]],
  ])("in %s is met by no row, except where it is the absence of a condition", async (where, ids) => {
    expect(await cratesWhere(where)).toEqual(ids);
  });
});

describe("and, or and not", () => {
  test.each([
    ["{}", [1, 2, 3, 4]],
    ["{ and: [] }", [1, 2, 3, 4]],
    ["{ or: [] }", []],
    ["{ not: {} }", []],
    ['{ or: [{ id: { eq: 1 } }, { label: { eq: "b" } }] }', [1, 2]],
    ['{ and: [{ id: { lt: 3 } }, { not: { label: { eq: "b" } } }] }', [1]],
    ["{ id: { lt: 3 }, or: [{ id: { eq: 2 } }, { id: { eq: 4 } }] }", [2]],
  ])("%s", async (where, ids) => {
    expect(await cratesWhere(where)).toEqual(ids);
  });
});

describe("a condition on related rows", () => {
  test.each([
    ['{ parent: { label: { eq: "ab" } } }', [2, 4]],
    ["{ parent: { parent: { id: { eq: 1 } } } }", [3]],
    ["{ parent: {} }", [2, 3, 4]],
    ["{ not: { parent: {} } }", [1]],
    ['{ items: { some: { name: { eq: "a" } } } }', [1]],
    ["{ items: { some: {} } }", [1, 4]],
    ["{ items: { none: {} } }", [2, 3]],
    ['{ items: { every: { name: { eq: "a" } } } }', [2, 3]],
    ['{ items: { some: { name: { eq: "a" } }, none: { name: { eq: "c" } } } }', [1]],
    ["{ items: { some: { crate: { items: { some: { name: { isNull: true } } } } } } }", [4]],
  ])("%s", async (where, ids) => {
    expect(await cratesWhere(where)).toEqual(ids);
  });

  test("holds for the rows that the caller's policies show", async () => {
    expect(await cratesWhere("{ items: { some: { id: { eq: 3 } } } }")).toEqual([]);
    await generated.owner.query("update public.items set hidden = false where id = 3");
    expect(await cratesWhere("{ items: { some: { id: { eq: 3 } } } }")).toEqual([2]);
    await generated.owner.query("update public.items set hidden = true where id = 3");
  });
});

describe("where", () => {
  test("restricts lists of related rows, and the count of a connection", async () => {
    const { crates } = await read(
      anonymous,
      `query ($where: ItemWhereInput) { crates(where: { id: { in: [1, 4] } }) {
        totalCount edges { node { items(where: $where) { id } } } } }`,
      { where: { name: { eq: "b" } } },
    );
    expect(crates).toEqual({
      totalCount: 2,
      edges: [{ node: { items: [{ id: "2" }] } }, { node: { items: [] } }],
    });
  });

  test("takes a variable at any place, and an absent one sets no condition", async () => {
    const query = `query ($height: Int, $list: [CrateWhereInput!]) {
      crates(where: { height: { gte: $height }, or: $list }) { edges { node { id } } } }`;
    const idsOf = async (variables: Record<string, unknown>) =>
      (await read(anonymous, query, variables)).crates.edges.map(({ node }: { node: { id: string } }) => node.id);
    expect(await idsOf({})).toEqual(["1", "2", "3", "4"]);
    expect(await idsOf({ height: 2 })).toEqual(["2", "4"]);
    expect(await idsOf({ height: 2, list: [{ id: { eq: 4 } }] })).toEqual(["4"]);
    expect(await idsOf({ height: null })).toEqual([]);
  });

  test("has only isNull for a list of items that have no equality", () => {
    const { spots } = (generated.schema.getType("CrateWhereInput") as GraphQLInputObjectType).getFields();
    expect(fieldsOf(String(spots!.type))).toEqual(["isNull"]);
  });

  test("has no field for a column that is not in the schema", () => {
    expect(fieldsOf("CrateWhereInput")).not.toContain("internal");
    expect(fieldsOf("CrateOrderByInput")).not.toContain("internal");
    expect(fieldsOf("CrateWhereInput")).toContain("parentId");
    expect(fieldsOf("ArticleWhereInput")).toContain("title");
  });

  test("is a filter for a column of that name, where the table has one", async () => {
    await generated.owner.query("insert into public.places values ('here', 'b'), ('there', 'a')");
    const { places } = await read(anonymous, `{ places(orderBy: "a") { edges { node { where } } } }`);
    expect(places.edges).toEqual([{ node: { where: "there" } }]);
  });

  test("passes values as parameters, whatever they contain", async () => {
    const hostile = "'; drop table public.crates; --\\\"$1 %";
    const { data, faults, statements } = await generated.ask(
      anonymous,
      "query ($where: CrateWhereInput) { crates(where: $where) { edges { node { id } } } }",
      { where: { label: { eq: hostile, ilike: hostile }, tags: { cs: [hostile] }, details: { cs: { [hostile]: 1 } } } },
    );
    expect({ data, faults }).toEqual({ data: { crates: { edges: [] } }, faults: [] });
    expect(statements.join()).not.toContain("drop table");
  });
});

// Three-valued logic, as in SQL: null is unknown.
type Truth = boolean | null;
type Crate = {
  readonly id: number;
  readonly label: string | null;
  readonly height: number | null;
  readonly tags: readonly string[] | null;
  readonly parentId: number | null;
};
type Item = { readonly id: number; readonly crateId: number; readonly name: string | null };

const CRATES: readonly Crate[] = [
  { id: 1, label: "ab", height: 1, tags: ["a", "b"], parentId: null },
  { id: 2, label: "b", height: 2, tags: [], parentId: 1 },
  { id: 3, label: null, height: null, tags: null, parentId: 2 },
  { id: 4, label: "The quick foxes", height: 3, tags: ["b"], parentId: 1 },
];
const ITEMS: readonly Item[] = [
  { id: 1, crateId: 1, name: "a" },
  { id: 2, crateId: 1, name: "b" },
  { id: 4, crateId: 4, name: null },
];

const not = (truth: Truth): Truth => (truth === null ? null : !truth);
const all = (truths: readonly Truth[]): Truth => (truths.includes(false) ? false : truths.includes(null) ? null : true);
const any = (truths: readonly Truth[]): Truth => not(all(truths.map(not)));

type Condition = Readonly<Record<string, unknown>>;

function compare(operator: string, value: unknown, operand: unknown): Truth {
  if (operator === "isNull") return operand === null ? null : (value === null) === operand;
  if (operator === "isdistinct") return value !== operand;
  if (operand === null) return null;
  if (operator === "in") {
    return any((operand as unknown[]).map((each) => (value === null ? null : value === each)));
  }
  if (value === null) return null;
  const list = value as readonly string[];
  switch (operator) {
    case "eq":
      return value === operand;
    case "neq":
      return value !== operand;
    case "gt":
      return (value as number) > (operand as number);
    case "lte":
      return (value as number) <= (operand as number);
    case "cs":
      return (operand as string[]).every((item) => list.includes(item));
    default:
      return (operand as string[]).some((item) => list.includes(item));
  }
}

function holds(row: Record<string, unknown>, condition: Condition | null): Truth {
  if (condition === null) return null;
  return all(
    Object.entries(condition).map(([name, value]): Truth => {
      if (value === null) return null;
      if (name === "and") return all((value as Condition[]).map((each) => holds(row, each)));
      if (name === "or") return any((value as Condition[]).map((each) => holds(row, each)));
      if (name === "not") return not(holds(row, value as Condition));
      const exists = (rows: readonly object[], of: (related: object) => Truth) =>
        rows.some((each) => of(each) === true);
      if (name === "parent" || name === "crate") {
        const key = row[name === "parent" ? "parentId" : "crateId"];
        return exists(
          CRATES.filter(({ id }) => id === key),
          (related) => holds(related as Crate, value as Condition),
        );
      }
      if (name === "items") {
        const items = ITEMS.filter(({ crateId }) => crateId === row.id);
        return all(
          Object.entries(value as Condition).map(([quantifier, inner]): Truth => {
            if (inner === null) return null;
            const meets = (related: object) => holds(related as Item, inner as Condition);
            if (quantifier === "some") return exists(items, meets);
            if (quantifier === "none") return !exists(items, meets);
            return !exists(items, (related) => meets(related) !== true);
          }),
        );
      }
      return all(
        Object.entries(value as Condition).map(([operator, operand]) => compare(operator, row[name], operand)),
      );
    }),
  );
}

const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { freq: 8 });
const numbers = {
  eq: orNull(fc.integer({ min: 0, max: 4 })),
  neq: orNull(fc.integer({ min: 0, max: 4 })),
  gt: orNull(fc.integer({ min: 0, max: 4 })),
  lte: orNull(fc.integer({ min: 0, max: 4 })),
  isdistinct: orNull(fc.integer({ min: 0, max: 4 })),
  in: orNull(fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 })),
  isNull: orNull(fc.boolean()),
};
const words = fc.constantFrom("a", "ab", "b", "c");
const lists = fc.array(words, { maxLength: 2 });
const texts = {
  eq: orNull(words),
  neq: orNull(words),
  in: orNull(fc.array(words, { maxLength: 3 })),
  isNull: orNull(fc.boolean()),
};
const some = <T extends object>(record: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(record, { requiredKeys: [] });
const { crateCondition } = fc.letrec<{ crateCondition: Condition; itemCondition: Condition }>((tie) => {
  const recursive = (name: "crateCondition" | "itemCondition") => ({
    and: orNull(fc.array(tie(name), { maxLength: 2, depthIdentifier: "where" })),
    or: orNull(fc.array(tie(name), { maxLength: 2, depthIdentifier: "where" })),
    not: orNull(tie(name)),
  });
  const leaf = some({
    height: some(numbers),
    label: orNull(some(texts)),
    tags: some({ cs: orNull(lists), ov: orNull(lists) }),
  });
  const itemLeaf = some({ name: orNull(some(texts)) });
  const quantified = {
    some: orNull(tie("itemCondition")),
    every: orNull(tie("itemCondition")),
    none: orNull(tie("itemCondition")),
  };
  return {
    crateCondition: fc.oneof(
      { maxDepth: 3, depthIdentifier: "where", withCrossShrink: true },
      leaf,
      some({ ...recursive("crateCondition"), parent: orNull(tie("crateCondition")), items: orNull(some(quantified)) }),
    ),
    itemCondition: fc.oneof(
      { maxDepth: 3, depthIdentifier: "where", withCrossShrink: true },
      itemLeaf,
      some({ ...recursive("itemCondition"), crate: orNull(tie("crateCondition")) }),
    ),
  };
});

test("any condition selects the rows for which it is true in three-valued logic", async () => {
  const query = "query ($where: CrateWhereInput) { crates(where: $where) { totalCount edges { node { id } } } }";
  await fc.assert(
    fc.asyncProperty(crateCondition, async (where) => {
      const expected = CRATES.filter((crate) => holds(crate, where) === true).map(({ id }) => String(id));
      const { crates } = await read(anonymous, query, { where });
      expect(crates.edges.map(({ node }: { node: { id: string } }) => node.id)).toEqual(expected);
      expect(crates.totalCount).toBe(expected.length);
    }),
    { numRuns: propertyRuns(100) },
  );
});

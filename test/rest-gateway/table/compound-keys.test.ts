import { beforeEach, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { useService } from "../../serve.ts";
import { type Claims, openClient } from "./client.ts";

const CALLERS: readonly Claims[] = [{ role: "anon" }, { role: "authenticated", sub: "41" }, { role: "service_role" }];

type KeyKind = {
  readonly type: string;
  /** Values as JSON; the first is in a row, and the second one is equal to it. */
  readonly first: unknown;
  readonly same: unknown;
  readonly second: unknown;
  readonly third: unknown;
  /** The first one in a filter. */
  readonly filter: string;
};
const KINDS: Readonly<Record<string, KeyKind>> = {
  array: { type: "text[]", first: ["a", "b"], same: '{"a",b}', second: ["a,b"], third: [], filter: "{a,b}" },
  numbers: { type: "numeric[]", first: [1, 2], same: [1.0, 2.0], second: [12], third: [1, null], filter: "{1,2}" },
  grid: {
    type: "int[]",
    first: [
      [1, 2],
      [3, 4],
    ],
    same: "{{1,2},{3,4}}",
    second: [1, 2, 3, 4],
    third: [[1], [2]],
    filter: "{{1,2},{3,4}}",
  },
  json: {
    type: "jsonb",
    first: { a: 1, b: [2] },
    same: { b: [2], a: 1 },
    second: { a: "1", b: [2] },
    third: "x",
    filter: '{"b":[2],"a":1}',
  },
  composite: {
    type: "yard.spot",
    first: { x: 1, y: "a" },
    same: { y: "a", x: 1 },
    second: { x: 1, y: "a," },
    third: { x: 2, y: null },
    filter: "(1,a)",
  },
  composites: {
    type: "yard.spot[]",
    first: [{ x: 1, y: "a" }],
    same: '{"(1,a)"}',
    second: [{ x: 1, y: "b" }],
    third: [],
    filter: '{"(1,a)"}',
  },
  states: {
    type: "yard.state[]",
    first: ["open"],
    same: "{open}",
    second: ["open", "shut"],
    third: ["shut"],
    filter: "{open}",
  },
  range: { type: "int4range", first: "[1,3)", same: "[1,2]", second: "[2,3)", third: "empty", filter: "[1,3)" },
  listed: { type: "yard.names", first: ["a"], same: "{a}", second: ["b"], third: ["a", "b"], filter: "{a}" },
};

const schemaOf = (name: string, { type }: KeyKind) => `
  create table yard."${name}" (key ${type} primary key, other ${type} unique, note text, amount int default 0);
  create table yard."${name}_parts" (key ${type}, parent ${type} references yard."${name}", number int, note text, primary key (key, number));
  create table yard."${name}_marks" (mark ${type} primary key, note text);
  create table yard."${name}_links" (parent ${type} references yard."${name}", mark ${type} references yard."${name}_marks", primary key (parent, mark));
  alter table yard."${name}_parts" enable row level security;
  create policy all_rows on yard."${name}_parts" using (note is distinct from 'hidden') with check (note is distinct from 'refused');
`;

const database = useDatabase({
  sql: `
    create schema yard;
    create type yard.state as enum ('open', 'shut');
    create type yard.spot as (x int, y text);
    create domain yard.names as text[] check (array_length(value, 1) < 9);
    ${Object.entries(KINDS)
      .map(([name, kind]) => schemaOf(name, kind))
      .join("")}
    grant usage on schema yard to anon, authenticated, service_role;
    grant select, insert, update, delete on all tables in schema yard to anon, authenticated, service_role;
  `,
});
const owner = useClient(database.ownerUrl);
const service = useService({ database, settings: { PGRST_DB_SCHEMAS: "yard" } });
const client = useFixture(() => openClient(service.url));
const send = (method: string, path: string, body: unknown, prefer: string, as?: Claims) =>
  client.ask(path, { method, body: JSON.stringify(body), headers: { Prefer: prefer }, ...(as && { as }) });
const get = async (path: string) => (await client.ask(path)).body;

describe.each(Object.entries(KINDS))("a key of %s", (name, { first, same, second, third, filter }) => {
  const at = `/${name}?key=eq.${encodeURIComponent(filter)}`;
  beforeEach(() =>
    owner.query(["_links", "_parts", "_marks", ""].map((end) => `delete from yard."${name}${end}";`).join("")),
  );
  const insertFirst = () => send("POST", `/${name}`, [{ key: first, other: first, note: "one" }], "return=minimal");

  test.each(CALLERS)("is the target of an upsert: %j", async (as) => {
    await insertFirst();
    const rows = [
      { key: same, note: "merged" },
      { key: second, note: "two" },
    ];
    const merged = await send(
      "POST",
      `/${name}?select=key,note`,
      rows,
      "resolution=merge-duplicates, return=representation",
      as,
    );
    expect([merged.status, merged.body]).toEqual([
      201,
      [
        { key: first, note: "merged" },
        { key: second, note: "two" },
      ],
    ]);
    const other = { key: third, other: same, note: "by other" };
    const byOther = await send(
      "POST",
      `/${name}?on_conflict=other&select=note,other`,
      other,
      "resolution=merge-duplicates, return=representation",
      as,
    );
    expect([byOther.status, byOther.body]).toEqual([200, [{ note: "by other", other: first }]]);
    const ignored = await send(
      "POST",
      `/${name}?select=note`,
      [{ key: second }],
      "resolution=ignore-duplicates, return=representation",
      as,
    );
    expect([ignored.status, ignored.body]).toEqual([201, []]);
  });

  test("is that of a PUT", async () => {
    const put = (key: unknown, note: string) =>
      send("PUT", `${at}&select=key,note`, { key, other: null, note, amount: 1 }, "return=representation");
    expect(await put(first, "new")).toMatchObject({ status: 201, body: [{ key: first, note: "new" }] });
    expect(await put(same, "put")).toMatchObject({ status: 200, body: [{ key: first, note: "put" }] });
    expect(await put(second, "no")).toMatchObject({ status: 400, body: { code: "PGRST115" } });
  });

  test("is that of an update by key", async () => {
    await insertFirst();
    await send("POST", `/${name}`, [{ key: second, note: "two" }], "return=minimal");
    const rows = [
      { key: second, note: "2" },
      { key: same, note: "1" },
    ];
    const updated = await send("PATCH", `/${name}?select=key,note`, rows, "return=representation");
    expect([updated.status, updated.body]).toEqual([
      200,
      [
        { key: second, note: "2" },
        { key: first, note: "1" },
      ],
    ]);
    const repeated = await send(
      "PATCH",
      `/${name}`,
      [
        { key: first, note: "a" },
        { key: same, note: "b" },
      ],
      "return=minimal",
    );
    expect([repeated.status, repeated.body.code, repeated.body.details]).toEqual([400, "PGRST198", { path: "1" }]);
    const relative = await send("PATCH", at, { amount: { $inc: 5 } }, "operators, return=representation");
    expect(relative.body).toMatchObject([{ amount: 5 }]);
  });

  test("is filled in by nested inserts, and has to be equal where it is given", async () => {
    const parts = `${name}_parts`;
    const body = {
      key: first,
      [parts]: [
        { key: second, number: 1, note: "a" },
        { key: first, number: 2, note: "b", parent: same },
      ],
      [`${name}_marks`]: [{ mark: first, note: "m" }],
    };
    const path = `/${name}?select=key,${parts}(key,parent),${name}_marks(mark)`;
    const inserted = await send("POST", path, body, "nested=insert, missing=default, return=representation");
    expect([inserted.status, inserted.body]).toEqual([
      201,
      [
        {
          key: first,
          [parts]: [
            { key: second, parent: first },
            { key: first, parent: first },
          ],
          [`${name}_marks`]: [{ mark: first }],
        },
      ],
    ]);
    const wrong = { key: second, [parts]: [{ key: third, number: 1, parent: first }] };
    const refused = await send("POST", `/${name}`, wrong, "nested=insert");
    expect([refused.status, refused.body.code]).toEqual([400, "PGRST196"]);
    const above = { key: third, number: 3, [name]: { key: second, note: "above" } };
    const referring = await send("POST", `/${parts}?select=parent`, above, "nested=insert, return=representation");
    expect([referring.status, referring.body]).toEqual([201, [{ parent: second }]]);
  });

  test.each(CALLERS)("finds rows of nested updates: %j", async (as) => {
    const [parts, marks] = [`${name}_parts`, `${name}_marks`];
    await insertFirst();
    await send(
      "POST",
      `/${parts}`,
      [first, second].map((key) => ({ key, number: 1, parent: first, note: "old" })),
      "return=minimal",
    );
    await send(
      "POST",
      `/${marks}`,
      [first, second].map((mark) => ({ mark, note: "old" })),
      "return=minimal",
    );
    await send("POST", `/${name}_links`, [{ parent: first, mark: second }], "return=minimal");
    const body = {
      note: "changed",
      [parts]: [
        { key: same, number: 1, note: "kept" },
        { key: third, number: 1, note: "new" },
      ],
      [marks]: [
        { mark: same, note: "linked" },
        { mark: third, note: "added" },
      ],
    };
    const path = `${at}&select=note,${parts}(key,note),${marks}(mark,note)&${parts}.order=note&${marks}.order=note.desc`;
    const replaced = await send("PATCH", path, body, "nested=replace, return=representation", as);
    expect([replaced.status, replaced.body]).toEqual([
      200,
      [
        {
          note: "changed",
          [parts]: [
            { key: first, note: "kept" },
            { key: third, note: "new" },
          ],
          [marks]: [
            { mark: first, note: "linked" },
            { mark: third, note: "added" },
          ],
        },
      ],
    ]);
    const updated = await send(
      "PATCH",
      at,
      { [parts]: [{ key: same, number: 1, note: "again" }] },
      "nested=update",
      as,
    );
    expect(updated.status).toBe(204);
    expect(await get(`/${parts}?select=note&note=eq.again`)).toEqual([{ note: "again" }]);
    const missing = await send("PATCH", at, { [parts]: [{ key: second, number: 9, note: "x" }] }, "nested=update", as);
    expect([missing.status, missing.body.code, missing.body.details.path]).toEqual([404, "PGRST187", `${parts}/0`]);
  });

  test("is refused where two rows of a nested update have it", async () => {
    const parts = `${name}_parts`;
    await insertFirst();
    for (const keys of [
      [first, first],
      [first, same],
    ]) {
      const rows = keys.map((key, index) => ({ key, number: 1, note: `note ${index}` }));
      for (const mode of ["upsert", "replace"]) {
        const refused = await send("PATCH", at, { [parts]: rows }, `nested=${mode}`);
        expect([refused.status, refused.body.code, refused.body.details?.path]).toEqual([
          400,
          "PGRST198",
          `${parts}/1`,
        ]);
      }
    }
    const different = [first, second, third].map((key) => ({ key, number: 1, note: "x" }));
    expect((await send("PATCH", at, { [parts]: different }, "nested=upsert")).status).toBe(204);
  });

  test("Location addresses the new row", async () => {
    const { headers } = await send("POST", `/${name}`, { key: first, note: "found" }, "return=headers-only");
    expect(await get(`${headers.location}&select=note`)).toEqual([{ note: "found" }]);
  });
});

test.each([
  ["eq.(1,a)", [1]],
  ["neq.(1,a)", [2]],
  ["gt.(1,a)", [2]],
  ['in.("(1,a)","(2,)")', [1, 2]],
  ['eq(any).{"(1,a)"}', [1]],
  ['gte(all).{"(1,a)","(1,b)"}', [2]],
  ["isdistinct.(1,a)", [2]],
  ["not.eq.(2,)", [1]],
])("a composite value is compared by %s", async (filter, amounts) => {
  const rows = [
    { key: { x: 1, y: "a" }, amount: 1 },
    { key: { x: 2, y: null }, amount: 2 },
  ];
  await owner.query("delete from yard.composite_parts; delete from yard.composite_links; delete from yard.composite");
  await send("POST", "/composite", rows, "return=minimal");
  const found = await get(`/composite?select=amount&order=amount&key=${encodeURIComponent(filter)}`);
  expect(found).toEqual(amounts.map((amount) => ({ amount })));
});

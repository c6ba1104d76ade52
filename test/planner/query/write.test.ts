import { describe, expect, test } from "vitest";
import { guardError } from "../../../planner/query/build-query.ts";
import { useFixture } from "../../fixture.ts";
import { answering } from "../expected.ts";
import { openFixture } from "../fixture-database.ts";
import {
  at,
  column,
  columns,
  compare,
  eq,
  everyColumn,
  insert,
  isNull,
  relation,
  remove,
  term,
  update,
} from "../intents.ts";
import { payloadOf } from "../payload.ts";

const fixture = useFixture(() =>
  openFixture(`
    create table api.payload (id int primary key, note text);
    create table api.result (id int primary key, note text);
    insert into api.payload values (1, 'a');
    insert into api.result values (1, 'a');
    create table api.sheets ("each" int, said jsonb);
    grant all on api.payload, api.result, api.sheets to anon;
    select private.rewind();
  `),
);

const UP = `pg_catalog.set_config('pgrst.inserted', (coalesce(nullif(pg_catalog.current_setting('pgrst.inserted', true), '')::int, 0) operator(pg_catalog.+) 1)::pg_catalog.text, true) operator(pg_catalog.<>) '0'`;
const DOWN = `pg_catalog.set_config('pgrst.inserted', (coalesce(nullif(pg_catalog.current_setting('pgrst.inserted', true), '')::int, 0) operator(pg_catalog.-) 1)::pg_catalog.text, true) operator(pg_catalog.<>) '-1'`;
const INSERTED = `nullif(pg_catalog.current_setting('pgrst.inserted', true), '')`;
const OBJECT = { kind: "object", type: "x/object", nulls: "kept" } as const;

/** The statement of a write of which nobody wants to see the rows. */
const quietly = (change: string, more = "null, null") =>
  answering(`select from "result"`, { body: "null", with: `"result" as (${change})`, more });

describe("an insert", () => {
  test("of one row names its columns only, so that the others have their defaults", async () => {
    const intent = insert("items", { name: "glue" }, { select: columns("name", "quantity", "note") });
    expect(fixture.text(intent)).toBe(
      answering(`select "items"."name", "items"."quantity", "items"."note" from "result" as "items"`, {
        with:
          `"result" as (insert into "api"."items" ("name") select "payload"."name" from pg_catalog.json_to_record($1::pg_catalog.json) as "payload"("name" text) ` +
          `returning "items"."name", "items"."quantity", "items"."note")`,
        more: "null, null",
      }),
    );
    expect(await fixture.rows(intent)).toEqual([{ name: "glue", quantity: 1, note: "none" }]);
  });

  test("of many rows returns them with embedded rows", async () => {
    const rows = [
      { id: 50, title: "A", artist_id: 1 },
      { id: 51, title: "B", artist_id: null },
    ];
    const intent = insert("works", rows, {
      select: [column("title"), relation("artists", columns("name")), relation("maker", columns("id"))],
      order: [term("id", { direction: "desc" })],
    });
    expect(fixture.text(intent)).toContain(
      `from pg_catalog.json_to_recordset($1::pg_catalog.json) as "payload"("id" integer, "title" text, "artist_id" integer)`,
    );
    expect(await fixture.rows(intent)).toEqual([
      { title: "B", artists: null, maker: null },
      { title: "A", artists: { name: "Claude" }, maker: { id: 1 } },
    ]);
  });

  test("of many rows with the same layout is sent column by column", async () => {
    const payload = payloadOf('[{"year":1906,"title":"A","id":50},{"year":null,"title":"B","id":51}]');
    const intent = { ...insert("works", []), payload };
    const from = `from unnest($1::integer[], $2::text[], $3::integer[]) as "payload"("id", "title", "year")`;
    expect(fixture.text(intent)).toContain(from);
    expect(fixture.text({ ...intent, missingAsDefault: true })).toContain(from);
    expect(await fixture.rows(intent)).toMatchObject([
      { id: 50, title: "A", year: 1906 },
      { id: 51, title: "B", year: null },
    ]);
  });

  test("of rows with JSON values reads them row by row", async () => {
    const payload = payloadOf('[{"each":1,"said":{"a":1.0}},{"each":2,"said":null}]');
    const intent = { ...insert("sheets", []), payload };
    expect(fixture.text(intent)).toContain(
      `select "payload"."each", "payload"."said" from (select "each", "said"::jsonb from unnest($1::integer[], $2::text[]) ` +
        `as "each"("each", "said")) as "payload"("each", "said")`,
    );
    expect(await fixture.rows(intent)).toEqual([
      { each: 1, said: { a: 1 } },
      { each: 2, said: null },
    ]);
  });

  test("returns nothing if no rows are requested, and so requires no SELECT privilege", async () => {
    const intent = insert("append_only", { id: 1, entry: "x" }, {}, { returned: "nothing" });
    expect(fixture.text(intent)).toBe(
      quietly(
        `insert into "api"."append_only" ("id", "entry") select "payload"."id", "payload"."entry" from pg_catalog.json_to_record($1::pg_catalog.json) as "payload"("id" integer, "entry" text) returning 1`,
      ),
    );
    expect(await fixture.run(intent)).toMatchObject({ rowCount: 1, body: null });
    await expect(fixture.run({ ...intent, returned: "headers" })).rejects.toMatchObject({ code: "42501" });
  });

  test("returns the location of the one new row, with its key in JSON", async () => {
    const intent = insert("exhibits", { exhibition_id: 3, work_id: 7 }, {}, { returned: "headers" });
    expect(fixture.text(intent)).toBe(
      quietly(
        `insert into "api"."exhibits" ("exhibition_id", "work_id") select "payload"."exhibition_id", "payload"."work_id" from ` +
          `pg_catalog.json_to_record($1::pg_catalog.json) as "payload"("exhibition_id" integer, "work_id" integer) returning "exhibits"."exhibition_id", "exhibits"."work_id"`,
        `case when pg_catalog.count(*) operator(pg_catalog.=) 1 then (select pg_catalog.json_build_array(pg_catalog.row_to_json("result".*) operator(pg_catalog.->>) 'exhibition_id', pg_catalog.row_to_json("result".*) operator(pg_catalog.->>) 'work_id') from "result") end, null`,
      ),
    );
    expect((await fixture.run(intent)).location).toEqual(["3", "7"]);
    expect(
      (await fixture.run(insert("visits", { on_day: "2024-07-01", person_id: 1 }, {}, { returned: "headers" })))
        .location,
    ).toEqual(["2024-07-01", "1"]);
    expect((await fixture.run(insert("only_key", [{}, {}], {}, { returned: "headers" }))).location).toBeNull();
    expect((await fixture.run(insert("keyless", { a: 1 }, {}, { returned: "headers" }))).location).toBeNull();
  });

  test("of objects without keys inserts rows of defaults, and of an empty array none", async () => {
    expect(fixture.text(insert("only_key", [{}], {}, { returned: "nothing" }))).toBe(
      quietly(
        `insert into "api"."only_key" select from pg_catalog.json_array_elements($1::pg_catalog.json) as "payload" returning 1`,
      ),
    );
    expect(fixture.text(insert("only_key", {}, {}, { returned: "nothing" }))).toBe(
      quietly(`insert into "api"."only_key" select from (values (1)) as "payload" returning 1`),
    );
    expect(await fixture.run(insert("only_key", [{}, {}]))).toMatchObject({ rowCount: 2 });
    expect(await fixture.run(insert("only_key", {}))).toMatchObject({ rowCount: 1 });
    expect(await fixture.run(insert("only_key", []))).toMatchObject({ rowCount: 0, body: "[]" });
  });

  test("sets missing keys to their default if preferred, and null values to null", async () => {
    const rows = [{ id: 90, a: 5, b: null, c: "sad", d: 1, e: "x" }, { id: 91 }];
    const intent = insert("defaults", rows, { order: [term("id")] }, { missingAsDefault: true });
    expect(fixture.text(intent)).toContain(
      `from (select case when "each"."json" operator(pg_catalog.->) 'id' is null then "each"."default_1" else "row"."id" end as "id", ` +
        `case when "each"."json" operator(pg_catalog.->) 'a' is null then "each"."default_2" else "row"."a" end as "a", `,
    );
    expect(fixture.text(intent)).toContain(
      `(select "json", pg_catalog.nextval(pg_catalog.pg_get_serial_sequence('"api"."defaults"', 'id'))::integer as "default_1", ((1 + 1))::integer as "default_2", `,
    );
    expect(await fixture.rows(intent)).toEqual([
      { id: 90, a: 5, b: null, c: "sad", d: 1, e: "x" },
      { id: 91, a: 2, b: "b", c: "calm", d: 3, e: null },
    ]);
    const one = insert(
      "defaults",
      { a: null, b: "x" },
      { select: columns("id", "a", "b") },
      { missingAsDefault: true },
    );
    const { payload } = one;
    const withAll = { ...one, payload: { ...payload, columns: ["id", "a", "b"] } };
    expect(await fixture.rows(withAll)).toEqual([{ id: expect.any(Number), a: null, b: "x" }]);
  });

  test("advances the sequence for every record with missing=default, as in PostgREST", async () => {
    const numbers = async (rows: object[]) => {
      const intent = insert("defaults", rows, { select: columns("id") }, { missingAsDefault: true });
      const payload = { ...intent.payload, columns: ["id", "a"] };
      const inserted = (await fixture.rows({ ...intent, payload })) as { id: number }[];
      return inserted.map(({ id }) => id);
    };
    const [before] = await numbers([{ a: 1 }]);
    expect(await numbers([{ id: 95 }, { a: 1 }])).toEqual([95, before! + 2]);
  });

  test("uses the cast of a domain", async () => {
    const intent = insert("colours", [
      { id: 8, name: "blue", shade: "#0000ff" },
      { id: 9, name: "none", shade: null },
    ]);
    expect(fixture.text(intent)).toContain(`tools.shade_from_json("row"."shade") as "shade"`);
    expect(await fixture.rows(intent)).toEqual([
      { id: 8, name: "blue", shade: "#0000ff" },
      { id: 9, name: "none", shade: null },
    ]);
  });

  test("through a trigger returns the headers that the trigger sets", async () => {
    const { headers, status } = await fixture.run(insert("watched", { id: 2, name: "told" }));
    expect([headers, status]).toEqual(['[{"X-Fixture": "told"}]', "299"]);
  });

  test("writes columns with names that the statement uses internally", async () => {
    for (const table of ["payload", "result"]) {
      expect(await fixture.rows(insert(table, { id: 2, note: "b" }))).toEqual([{ id: 2, note: "b" }]);
      expect(await fixture.rows(update(table, { note: "c" }, { where: [eq("id", "1")] }))).toEqual([
        { id: 1, note: "c" },
      ]);
    }
  });
});

describe("an insert that conflicts with existing rows", () => {
  const rows = [
    { code: "one", name: "Uno" },
    { code: "nine", name: "Nine" },
  ];

  test("updates them, and counts the new ones", async () => {
    const intent = insert("keyed", rows, {}, { upsert: { resolution: "merge", onConflict: null } });
    expect(fixture.text(intent)).toBe(
      answering(`select "keyed".* from "result" as "keyed"`, {
        with:
          `"result" as (insert into "api"."keyed" ("code", "name") select "payload"."code", "payload"."name" from ` +
          `pg_catalog.json_to_recordset($1::pg_catalog.json) as "payload"("code" text, "name" text) where ${UP} on conflict ("code") do update set ` +
          `"code" = excluded."code", "name" = excluded."name" where ${DOWN} returning "keyed".*)`,
        more: `null, ${INSERTED}`,
      }),
    );
    const answer = await fixture.run(intent);
    expect(answer.inserted).toBe(1);
    expect(JSON.parse(answer.body!)).toEqual([
      { code: "one", name: "Uno", n: 1 },
      { code: "nine", name: "Nine", n: 7 },
    ]);
    expect(
      (
        await fixture.run({
          ...intent,
          payload: { ...intent.payload, json: Buffer.from('[{"code":"one","name":"x"}]') },
        })
      ).inserted,
    ).toBe(0);
  });

  test("ignores them", async () => {
    const intent = insert("keyed", rows, {}, { upsert: { resolution: "ignore", onConflict: null } });
    expect(fixture.text(intent)).toContain(
      `as "payload"("code" text, "name" text) on conflict ("code") do nothing returning`,
    );
    expect(await fixture.rows(intent)).toEqual([{ code: "nine", name: "Nine", n: 7 }]);
  });

  test("by the columns that the client names", async () => {
    const named = insert(
      "keyed",
      [{ code: "new", name: "One" }],
      {},
      { upsert: { resolution: "merge", onConflict: ["name"] } },
    );
    expect(await fixture.rows(named)).toEqual([{ code: "new", name: "One", n: 1 }]);
    const odd = insert("keyed", rows, {}, { upsert: { resolution: "ignore", onConflict: ['no"such', "column"] } });
    expect(fixture.text(odd)).toContain(`on conflict ("no""such", "column") do nothing`);
    await expect(fixture.run(odd)).rejects.toMatchObject({ code: "42703" });
  });
});

describe("PUT", () => {
  const put = (row: object, code: string) =>
    insert(
      "keyed",
      row,
      { where: [eq("code", code)] },
      { single: true, upsert: { resolution: "merge", onConflict: null } },
    );

  test("inserts the row or replaces it", async () => {
    const intent = put({ code: "one", name: "Uno", n: 2 }, "one");
    expect(fixture.text(intent)).toContain(
      `pg_catalog.json_to_record($1::pg_catalog.json) as "payload"("code" text, "name" text, "n" integer) where ${UP} and "payload"."code" = $2 on conflict ("code") do update`,
    );
    expect(fixture.text(intent)).toContain(
      `case when pg_catalog.count(*) <> 1 then pg_catalog.current_setting('PGRST115 ' || pg_catalog.count(*)::pg_catalog.text) end`,
    );
    expect(await fixture.run(intent)).toMatchObject({ rowCount: 1, inserted: 0 });
    expect(await fixture.run(put({ code: "new", name: "New" }, "new"))).toMatchObject({ rowCount: 1, inserted: 1 });
  });

  test("writes nothing if the payload has another row, or several", async () => {
    const refused = async (row: object, code: string) => {
      const error = await fixture.run(put(row, code)).catch((reason: unknown) => reason);
      return guardError(error);
    };
    expect(await refused({ code: "one", name: "x" }, "two")).toMatchObject({ kind: "invalid", code: "PGRST115" });
    expect(
      await refused(
        [
          { code: "a", name: "x" },
          { code: "b", name: "y" },
        ],
        "c",
      ),
    ).toMatchObject({ code: "PGRST115" });
  });
});

describe("an update", () => {
  test("sets the payload's columns in the rows that match the conditions", async () => {
    const intent = update(
      "works",
      { price: 1, mood: null },
      {
        select: [...columns("id", "shouted"), relation("artists", columns("name"))],
        where: [compare("id", "lt", "3")],
        conditions: [at("artists", eq("name", "nobody"))],
        order: [term("title")],
      },
    );
    expect(fixture.text(intent)).toBe(
      answering(
        `select "works"."id", "works"."shouted", (select pg_catalog.row_to_json("_".*) from (select "artists_1"."name" from "api"."artists" as "artists_1" ` +
          `where "artists_1"."id" = "works"."artist_id" and "artists_1"."name" = $3) "_") as "artists" from "result" as "works" order by "works"."title"`,
        {
          with:
            `"result" as (update "api"."works" set "price" = "payload"."price", "mood" = "payload"."mood" from pg_catalog.json_to_record($1::pg_catalog.json) as ` +
            `"payload"("price" numeric(10,2), "mood" api.mood) where "works"."id" < $2 ` +
            `returning "works"."artist_id", "works"."id", "works"."title", "works"."shouted")`,
          more: "null, null",
        },
      ),
    );
    expect(await fixture.rows(intent)).toEqual([
      { id: 2, shouted: "IMPRESSION, SUNRISE", artists: null },
      { id: 1, shouted: "WATER LILIES", artists: null },
    ]);
  });

  test("without columns changes no rows", async () => {
    const intent = update("works", {}, { where: [eq("id", "1")] });
    expect(fixture.text(intent)).toContain(`"result" as (select "works".* from "api"."works" where false)`);
    expect(await fixture.run(intent)).toMatchObject({ rowCount: 0, body: "[]" });
    expect(await fixture.run({ ...intent, returned: "nothing" })).toMatchObject({ rowCount: 0 });
  });

  test("returns all columns beside a computed one, and computed relations of the new row", async () => {
    const intent = update(
      "artists",
      { name: "C." },
      {
        select: [everyColumn(), column("shouted"), relation("masterpiece", columns("title"))],
        where: [eq("id", "1")],
      },
    );
    expect(fixture.text(intent)).toContain(`returning "artists".*, "artists"."shouted")`);
    expect(fixture.text(intent)).toContain(
      `from "api"."masterpiece"(row("artists"."id", "artists"."name", "artists"."born", "artists"."died", "artists"."country")::"api"."artists") as "works_1"`,
    );
    expect(await fixture.rows(intent)).toEqual([
      {
        id: 1,
        name: "C.",
        born: 1840,
        died: 1926,
        country: "FR",
        shouted: "C.",
        masterpiece: { title: "Impression, Sunrise" },
      },
    ]);
  });

  test("may filter rows by their relations", async () => {
    const intent = update(
      "artists",
      { died: 0 },
      { select: [column("id"), relation("works", [])], where: [isNull("works")] },
    );
    expect(await fixture.rows(intent)).toEqual([{ id: 5 }]);
  });

  test("is rolled back if it changes more than the one requested row", async () => {
    const intent = update("works", { price: 1 }, { where: [compare("id", "lt", "3")] });
    const error = await fixture.run(intent, { formats: [OBJECT] }).catch((reason: unknown) => reason);
    expect(guardError(error)).toMatchObject({
      kind: "notAcceptable",
      code: "PGRST116",
      details: "The result contains 2 rows",
    });
    const one = update("works", { price: 1 }, { select: columns("id"), where: [eq("id", "3")] });
    expect((await fixture.run(one, { formats: [OBJECT] })).body).toBe('{"id":3}');
  });
});

describe("a delete", () => {
  test("returns the deleted rows", async () => {
    const intent = remove("labels", { select: [relation("works", columns("title"))], where: [eq("work_id", "1")] });
    expect(fixture.text(intent)).toBe(
      answering(
        `select (select pg_catalog.row_to_json("_".*) from (select "works_1"."title" from "api"."works" as "works_1" where "works_1"."id" = "labels"."work_id") "_") as "works" from "result" as "labels"`,
        {
          with: `"result" as (delete from "api"."labels" where "labels"."work_id" = $1 returning "labels"."work_id")`,
          more: "null, null",
        },
      ),
    );
    expect(await fixture.rows(intent)).toEqual([{ works: { title: "Water Lilies" } }]);
  });

  test("is rolled back if it has more rows than are allowed", async () => {
    const intent = remove("exhibits", { where: [eq("work_id", "1")] }, { returned: "nothing" });
    const error = await fixture.run(intent, { maxAffected: 1 }).catch((reason: unknown) => reason);
    expect(guardError(error)).toMatchObject({ kind: "invalid", code: "PGRST124", details: "The query affects 2 rows" });
    expect(await fixture.run(intent, { maxAffected: 2 })).toMatchObject({ rowCount: 2 });
  });
});

test("row-level policies apply to the written and to the returned rows", async () => {
  const mine = insert("notes", { owner: "ben", body: "x" });
  await expect(fixture.run(mine, { role: "authenticated" })).rejects.toMatchObject({ code: "42501" });
  await expect(fixture.run(mine, { role: "anon" })).rejects.toMatchObject({ code: "42501" });
  expect(await fixture.run(mine, { role: "service_role" })).toMatchObject({ rowCount: 1 });
});

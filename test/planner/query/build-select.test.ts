import { describe, expect, test } from "vitest";
import type { CallIntent } from "../../../planner/intent/intent.ts";
import { guardError } from "../../../planner/query/build-query.ts";
import { useFixture } from "../../fixture.ts";
import { answering, JSON_ROWS } from "../expected.ts";
import { openFixture } from "../fixture-database.ts";
import { call, column, columns, compare, eq, post, relation, term } from "../intents.ts";

const fixture = useFixture(() =>
  openFixture(`
    create sequence api.calls;
    grant usage on sequence api.calls to anon;
    create function api.counted_calls() returns table (n bigint) language sql volatile
      as $$ select pg_catalog.nextval('api.calls') from pg_catalog.generate_series(1, 3) $$;
    create function api.in_order() returns setof api.works language sql stable
      as $$ select * from api.works order by artist_id desc nulls last, id $$;
    create function api."arguments"(id int) returns setof api.countries language sql stable as $$ select * from api.countries $$;
    create function api.optional_body(json default '1') returns json language sql immutable return $1;
    create function api.labelled(api.works, suffix text default '!', prefix text default '') returns text language sql volatile
      as $$ select prefix || $1.title || suffix $$;
    create function api.retitle(api.works, title text) returns api.works language sql volatile
      as $$ update api.works set title = retitle.title where id = $1.id returning * $$;
    create function api.bits(flags bit(4)) returns text language sql immutable return flags::pg_catalog.text;
  `),
);

const VALUE = `coalesce(pg_catalog.json_agg("_"."pgrst_scalar")->0, 'null')`;
const VALUES = `coalesce(pg_catalog.json_agg("_"."pgrst_scalar"), '[]')`;
const raw = (name: string, type: "text" | "xml" | "bytea", body: Buffer): CallIntent => ({
  ...call(name),
  argument: { kind: "raw", type, body },
});

describe("a function is called", () => {
  test("with texts that are cast to its parameters' types", async () => {
    const intent = call("add", { b: "2", a: "1" });
    expect(fixture.text(intent)).toBe(
      answering(
        `select "add".* from (select "api"."add"("a" := $1::integer, "b" := $2::integer) as "pgrst_scalar") as "add"`,
        {
          body: VALUE,
        },
      ),
    );
    expect(await fixture.rows(intent)).toBe(3);
    await expect(fixture.rows(call("add", { a: "x", b: "1" }))).rejects.toMatchObject({ code: "22P02" });
  });

  test("with the keys of a JSON object", async () => {
    const intent = post("add", { a: 1, b: 2 });
    expect(fixture.text(intent)).toBe(
      answering(
        `select "add".* from pg_catalog.json_to_record($1::pg_catalog.json) as "arguments"("a" integer, "b" integer), ` +
          `lateral (select "api"."add"("a" := "arguments"."a", "b" := "arguments"."b") as "pgrst_scalar") as "add"`,
        { body: VALUE },
      ),
    );
    expect(await fixture.rows(intent)).toBe(3);
    expect(await fixture.rows(post("street_of", { place: { street: "Hill", number: 1 } }))).toBe("Hill");
    expect(await fixture.rows(post("count_list", { list: [1, 2, 3] }))).toBe(3);
  });

  test("with the first object of an array, and not with an empty one", async () => {
    expect(
      await fixture.rows(
        post("add", [
          { a: 1, b: 2 },
          { a: 5, b: 5 },
        ]),
      ),
    ).toBe(3);
  });

  test("without the omitted arguments, so that their defaults apply", async () => {
    expect(await fixture.rows(call("required", { a: "3" }))).toBe(30);
    expect(await fixture.rows(post("defaults", { b: "y" }))).toEqual({ a: 1, b: "y", c: null });
    expect(fixture.text(call("defaults"))).toContain(`(select "api"."defaults"() as "pgrst_scalar")`);
    expect(await fixture.rows(call("optional_body"))).toBe(1);
  });

  test("with any number of arguments if it is variadic", async () => {
    const intent = call("prefix_words", { prefix: "p", words: ["a", "b, c"] });
    expect(fixture.text(intent)).toContain(
      `"api"."prefix_words"("prefix" := $1::text, variadic "words" := $2::text[])`,
    );
    expect(await fixture.rows(intent)).toBe("pa+b, c");
    expect(await fixture.rows(call("sum_all", { ns: ["1", "2"] }))).toBe(3);
    expect(await fixture.rows(post("sum_all", { ns: [1, 2, 3] }))).toBe(6);
  });

  test("with the last of several values if it is not", async () => {
    expect(await fixture.rows(call("greet", { name: ["a", "b"] }))).toBe("hello b");
  });

  test("with the whole body", async () => {
    expect(fixture.text(post("echo_jsonb", { a: 1 }))).toContain(
      `(select "api"."echo_jsonb"($1::jsonb) as "pgrst_scalar")`,
    );
    expect((await fixture.run(post("echo_json", { b: 1, a: [1.1] }))).body).toBe('{"b":1,"a":[1.1]}');
    expect(await fixture.rows(raw("echo_text", "text", Buffer.from("it's")))).toBe("it's");
    expect(await fixture.rows(raw("echo_xml", "xml", Buffer.from("<a/>")))).toBe("<a/>");
    expect(await fixture.rows(raw("echo_bytes", "bytea", Buffer.from([0, 255])))).toBe("\\x00ff");
  });

  test("with names that statements use internally, and that need quotes", async () => {
    expect(
      await fixture.rows(post("arguments", { id: 1 }, { select: columns("code"), where: [eq("code", "FR")] })),
    ).toEqual([{ code: "FR" }]);
    expect(await fixture.rows(call("select", { from: "1" }))).toBe(1);
    expect(await fixture.rows(post("odd function", { "odd arg": 2 }))).toBe(2);
  });

  test("with types whose length would be truncated in a record", async () => {
    expect(await fixture.rows(post("padded", { word: "abc" }))).toBe("[abc]");
    expect(await fixture.rows(post("bits", { flags: "0101" }))).toBe("0101");
  });
});

describe("the result of a function", () => {
  test.each<[CallIntent, unknown]>([
    [call("series", { up_to: "2" }), [1, 2]],
    [call("words"), ["a", null, "c"]],
    [call("null_text"), null],
    [call("always_true"), true],
    [call("divide", { n: "7", d: "2" }), { quotient: 3, remainder: 1 }],
    [call("next_one", { n: "1" }), { n: 2 }],
    [call("pair", { a: "1" }), { a: 2, b: 6 }],
    [call("address_of", { street: "Hill" }), { street: "Hill", number: 1, tags: ["t"] }],
    [call("one_work", { id: "7" }, { select: columns("id", "title") }), { id: 7, title: "Fragment" }],
    [call("null_work", {}, { select: columns("id") }), { id: null }],
    [call("plain_records"), [{ "?column?": 1, text: "a" }]],
    [call("word_table", { up_to: "1" }), [{ n: 1, word: "one" }]],
    [call("all_works", {}, { select: columns("id"), where: [compare("id", "lt", "3")] }), [{ id: 1 }, { id: 2 }]],
  ])("%j", async (intent, expected) => {
    expect(await fixture.rows(intent)).toEqual(expected);
  });

  test("is returned as it is, and a set of values as an array", () => {
    expect(fixture.text(call("series", { up_to: "2" }))).toContain(`select ${VALUES}, pg_catalog.count(*)`);
    expect(fixture.text(call("one_work", { id: "1" }))).toContain(
      `select coalesce(pg_catalog.json_agg("_".*)->0, 'null'), pg_catalog.count(*)`,
    );
    expect(fixture.text(call("all_works"))).toContain(`select ${JSON_ROWS}, pg_catalog.count(*)`);
  });

  test("has rows that are filtered, ordered, limited, selected and embedded like a table's", async () => {
    const intent = call(
      "all_works",
      {},
      {
        select: [column("title"), column("shouted"), relation("artists", columns("name"), { join: "inner" })],
        where: [compare("year", "gt", "1800")],
        order: [term("year", { direction: "desc" })],
        window: { offset: 1, limit: 2 },
      },
    );
    expect(fixture.text(intent)).toContain(
      `from "api"."all_works"() as "works" where "works"."year" > $1 and exists (select 1 from`,
    );
    expect(await fixture.rows(intent)).toEqual([
      { title: "The Starry Night", shouted: "THE STARRY NIGHT", artists: { name: "Vincent" } },
      { title: "Sunflowers", shouted: "SUNFLOWERS", artists: { name: "Vincent" } },
    ]);
  });

  test("keeps the order of the function's rows, with any spread relations", async () => {
    const select = [column("id"), relation("artists", columns("name"), { spread: true })];
    const rows = (await fixture.rows(call("in_order", {}, { select }))) as { id: number }[];
    expect(rows.map(({ id }) => id)).toEqual([6, 5, 3, 4, 1, 2, 7]);
    expect(fixture.text(call("in_order", {}, { select }))).toContain("offset 0) as");
  });

  test("is counted without calling the function twice", async () => {
    const intent = { ...post("counted_calls", {}, { window: { offset: 0, limit: 1 } }), count: "exact" as const };
    expect(fixture.text(intent)).toBe(
      answering(`select "int8".* from "result" as "int8" limit 1`, {
        with: `"result" as (select "int8".* from "api"."counted_calls"() as "int8")`,
        total: `(select pg_catalog.count(*) from "result" as "int8")`,
      }),
    );
    expect(await fixture.run(intent)).toMatchObject({ rowCount: 1, total: 3 });
    const { rows } = await fixture.owner.query("select last_value::int from api.calls");
    expect(rows).toEqual([{ last_value: 3 }]);
  });

  test("is counted with computed columns and relationships, too", async () => {
    const shape = {
      select: [column("shouted"), relation("maker", columns("name"))],
      where: [eq("id", "1")],
      window: { offset: 0, limit: 1 },
    };
    const intent = call("all_works", {}, shape, { count: "exact" });
    expect(fixture.text(intent)).toContain(`"works"."details", "works"."shouted" from "api"."all_works"() as "works")`);
    expect(await fixture.run(intent)).toMatchObject({
      total: 1,
      body: '[{"shouted":"WATER LILIES","maker":{"name":"Claude"}}]',
    });
  });

  test("is empty if the type is void, and the function has run", async () => {
    expect(await fixture.run(post("nap", {}))).toMatchObject({ rowCount: 1 });
    expect(fixture.plan(post("nap", {}))).toMatchObject({ routine: { returns: { shape: "void" } } });
  });

  test("may set the headers and the status of the response", async () => {
    const answer = await fixture.run(post("told", { status: "418", headers: '[{"X-Tea":"green"}]' }));
    expect(answer).toMatchObject({ status: "418", headers: '[{"X-Tea":"green"}]' });
  });

  test("is rolled back if it is not the single row that was requested", async () => {
    const intent = post("write_items", { names: ["a", "b"] });
    const formats = [{ kind: "object", type: "x/object", nulls: "kept" } as const];
    const error = await fixture.run(intent, { formats }).catch((reason: unknown) => reason);
    expect(guardError(error)).toMatchObject({ code: "PGRST116", details: "The result contains 2 rows" });
    const tooMany = await fixture.run(intent, { maxAffected: 1 }).catch((reason: unknown) => reason);
    expect(guardError(tooMany)).toMatchObject({ code: "PGRST124", details: "The query affects 2 rows" });
  });
});

describe("a function that takes a row", () => {
  const withRow = (name: string, body: object, id: string): CallIntent => ({
    ...post(name, body),
    row: { of: { schema: "api", name: "works" }, conditions: [eq("id", id)] },
  });

  test("gets the row first, and the other arguments by name", async () => {
    expect(fixture.text(withRow("labelled", { prefix: ">" }, "1"))).toContain(
      `from "api"."works" as "row", pg_catalog.json_to_record($1::pg_catalog.json) as "arguments"("prefix" text), ` +
        `lateral (select "api"."labelled"("row".*, "prefix" := "arguments"."prefix") as "pgrst_scalar") as "labelled" ` +
        `where "row"."id" = $2`,
    );
    expect(await fixture.rows(withRow("labelled", { prefix: ">" }, "1"))).toBe(">Water Lilies!");
    expect(await fixture.rows(withRow("labelled", {}, "1"))).toBe("Water Lilies!");
  });

  test("may update the row, and is not called without one", async () => {
    expect(await fixture.rows(withRow("retitle", { title: "Reeds" }, "1"))).toMatchObject({ id: 1, title: "Reeds" });
    expect(await fixture.run(withRow("retitle", { title: "Reeds" }, "999"))).toMatchObject({ rowCount: 0 });
  });

  test("is not found by unknown parameters", () => {
    expect(() => fixture.text(withRow("retitle", { name: "Reeds" }, "1"))).toThrow(/retitle/);
  });
});

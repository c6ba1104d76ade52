import { describe, expect, test } from "vitest";
import type { Intent, ResponseFormat } from "../../../planner/intent/intent.ts";
import { useFixture } from "../../fixture.ts";
import { answering } from "../expected.ts";
import { openFixture } from "../fixture-database.ts";
import { call, column, columns, compare, eq, read, relation, update } from "../intents.ts";

const fixture = useFixture(() =>
  openFixture(`
    create domain api."application/x-bytes" as bytea;
    create function private.bytes_step(state api."application/x-bytes", anyelement) returns api."application/x-bytes"
      language sql immutable as $$ select (state || '\\x01')::api."application/x-bytes" $$;
    create aggregate api.as_bytes(anyelement) (sfunc = private.bytes_step, stype = api."application/x-bytes", initcond = '\\x00');
    do $$ begin
      execute pg_catalog.format('alter role anon in database %I set bytea_output = escape', pg_catalog.current_database());
    end $$;
  `),
);

const media = (type: string): { formats: ResponseFormat[] } => ({ formats: [{ kind: "media", type }] });
const object = (nulls: "kept" | "stripped") => ({ formats: [{ kind: "object", type: "x/object", nulls } as const] });
const bodyOf = async (intent: Intent, options: object) => (await fixture.run(intent, options)).body;
const ids = (where = compare("id", "lt", "3")) => read("works", { select: columns("id", "mood"), where: [where] });

describe("a response body is", () => {
  test("an array of rows, and an empty one without any", async () => {
    expect(await bodyOf(ids(eq("id", "0")), {})).toBe("[]");
    expect(await bodyOf(ids(), {})).toBe('[{"id":1,"mood":"calm"}, \n {"id":2,"mood":"calm"}]');
  });

  test("one object", async () => {
    const intent = ids(eq("id", "5"));
    expect(fixture.text(intent, object("kept"))).toContain(
      `select coalesce(pg_catalog.json_agg("_".*)->0, 'null'), pg_catalog.count(*)`,
    );
    expect(await bodyOf(intent, object("kept"))).toBe('{"id":5,"mood":null}');
    expect(await bodyOf(intent, object("stripped"))).toBe('{"id":5}');
  });

  test("an array without nulls", async () => {
    const formats: ResponseFormat[] = [{ kind: "array", type: "x/array", nulls: "stripped" }];
    expect(await bodyOf(ids(eq("id", "5")), { formats })).toBe('[{"id":5}]');
    expect(await bodyOf(ids(eq("id", "0")), { formats })).toBe("[]");
    expect(await bodyOf(call("defaults", { c: "true" }), { formats })).toBe('{"a":1,"b":"x","c":true}');
  });

  test("empty if only the counts are requested", async () => {
    const intent = read("works", { select: [column("id"), relation("artists", columns("name"))] }, { count: "exact" });
    expect(fixture.text(intent, { includesBody: false })).toMatch(/^select null, pg_catalog\.count\(\*\), null, /);
    expect(await fixture.run(intent, { includesBody: false })).toMatchObject({ body: null, rowCount: 7, total: 7 });
  });

  test("CSV, with the names in the first line", async () => {
    const intent = read("works", { select: columns("id", "title"), where: [compare("id", "lt", "3")] });
    expect(fixture.text(intent, media("text/csv"))).toBe(
      answering("", {
        with: `"page" as (select "works"."id", "works"."title" from "api"."works" as "works" where "works"."id" < $1)`,
        body:
          `(select coalesce(pg_catalog.string_agg("name", ','), '') from (select pg_catalog.json_object_keys(pg_catalog.row_to_json("first".*)) as "name" from (select * from "page" limit 1) "first") "names") ` +
          `|| pg_catalog.chr(10) || coalesce(pg_catalog.string_agg(pg_catalog.substring(("_".*)::pg_catalog.text, 2, pg_catalog.length(("_".*)::pg_catalog.text) operator(pg_catalog.-) 2), pg_catalog.chr(10)), '')`,
      }).replace('from () "_"', 'from "page" "_"'),
    );
    expect(await bodyOf(intent, media("text/csv"))).toBe('id,title\n1,"Water Lilies"\n2,"Impression, Sunrise"');
    expect(await bodyOf(ids(eq("id", "0")), media("text/csv"))).toBe("\n");
    const written = update("works", { year: 1 }, { select: columns("title"), where: [eq("id", "1")] });
    expect(await bodyOf(written, media("text/csv"))).toBe('title\n"Water Lilies"');
  });

  test("the result of an aggregate of the table", async () => {
    const intent = read("works", { where: [compare("id", "lt", "3")] });
    const label = media("application/vnd.museum.label");
    expect(fixture.text(intent, label)).toMatch(
      /^select "api"."works_label"\(\("_"\.\*\)::"api"."works"\), pg_catalog\.count/,
    );
    expect(await bodyOf(intent, label)).toBe("labels:Water Lilies;Impression, Sunrise;");
    expect(await bodyOf(call("all_works", {}, { where: [eq("id", "7")] }), label)).toBe("labels:Fragment;");
  });

  test("the result of an aggregate of any rows or values", async () => {
    expect(await bodyOf(ids(), media("text/plain"))).toBe("(1,calm)\n(2,calm)\n");
    expect(await bodyOf(call("add", { a: "1", b: "2" }), media("text/plain"))).toBe("3\n");
  });

  test("the result of a function, if it has that type", async () => {
    expect(await bodyOf(call("page"), media("text/html"))).toBe("<h1>Museum</h1>");
    expect(fixture.text(call("page"), media("text/html"))).toContain(
      `select (pg_catalog.array_agg("_"."pgrst_scalar"))[1], pg_catalog.count(*)`,
    );
  });

  test("bytes in hex, with any setting of the role", async () => {
    expect(fixture.plan(call("picture"), media("image/png")).body).toEqual({ kind: "value", isBinary: true });
    expect(await bodyOf(call("picture"), media("image/png"))).toBe("89504e470d0a1a0a");
    expect(await bodyOf(ids(), media("application/x-bytes"))).toBe("000101");
    expect(await bodyOf(call("anything_plain"), media("image/jpeg"))).toBe("706c61696e");
  });
});

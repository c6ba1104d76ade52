import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { RowCondition } from "../../../planner/intent/intent.ts";
import { useFixture } from "../../fixture.ts";
import { answering } from "../expected.ts";
import { openFixture } from "../fixture-database.ts";
import { column, columns, compare, eq, field, filter, isNull, read } from "../intents.ts";

const fixture = useFixture(() =>
  openFixture(`
    create extension citext schema tools;
    create table api.loose (id int primary key, name tools.citext, flags bit(4));
    insert into api.loose values (1, 'Claude', b'0001'), (2, 'VINCENT', b'0010');
    grant select on api.loose to anon;
    create function api.works_about(topic text) returns setof api.works language sql stable
      as $$ select * from api.works where title ilike '%' || topic || '%' $$;
  `),
);

const chosen = (where: RowCondition) => read("works", { select: columns("id"), where: [where] });
async function ids(table: string, where: RowCondition): Promise<number[]> {
  const rows = (await fixture.rows(read(table, { select: columns("id"), where: [where] }))) as { id: number }[];
  return rows.map(({ id }) => id);
}

describe("a condition is compiled", () => {
  test.each<[RowCondition, string]>([
    [compare("year", "eq", "1"), `"works"."year" = $1`],
    [compare("year", "neq", "1"), `"works"."year" <> $1`],
    [compare("year", "gt", "1"), `"works"."year" > $1`],
    [compare("year", "gte", "1"), `"works"."year" >= $1`],
    [compare("year", "lt", "1"), `"works"."year" < $1`],
    [compare("year", "lte", "1"), `"works"."year" <= $1`],
    [compare("title", "like", "a%"), `"works"."title" like $1`],
    [compare("title", "ilike", "a%"), `"works"."title" ilike $1`],
    [compare("title", "match", "^a"), `"works"."title" ~ $1`],
    [compare("title", "imatch", "^a"), `"works"."title" ~* $1`],
    [compare("tags", "cs", "{a}"), `"works"."tags" operator("pg_catalog".@>) $1`],
    [compare("tags", "cd", "{a}"), `"works"."tags" operator("pg_catalog".<@) $1`],
    [compare("tags", "ov", "{a}"), `"works"."tags" operator("pg_catalog".&&) $1`],
    [compare("span", "sl", "[1,2)"), `"works"."span" << $1`],
    [compare("span", "sr", "[1,2)"), `"works"."span" >> $1`],
    [compare("span", "nxr", "[1,2)"), `"works"."span" &< $1`],
    [compare("span", "nxl", "[1,2)"), `"works"."span" &> $1`],
    [compare("span", "adj", "[1,2)"), `"works"."span" -|- $1`],
    [compare("title", "like", "{a%,b%}", "any"), `"works"."title" like any($1)`],
    [compare("year", "gt", "{1,2}", "all"), `"works"."year" > all($1)`],
    [filter("id", { kind: "in", values: ["1", "2"] }), `"works"."id" = any($1)`],
    [filter("id", { kind: "in", values: ["1", "2"] }, true), `not "works"."id" = any($1)`],
    [filter("year", { kind: "isdistinct", value: "1" }), `"works"."year" is distinct from $1`],
    [
      filter("tags", { kind: "isdistinct", value: "{a}" }),
      `not coalesce("works"."tags" operator("pg_catalog".=) $1, "works"."tags" is null and $1 is null)`,
    ],
    [isNull("year"), `"works"."year" is null`],
    [isNull("year", true), `not "works"."year" is null`],
    [filter("year", { kind: "is", value: "not_null" }), `"works"."year" is not null`],
    [filter("on_show", { kind: "is", value: "true" }), `"works"."on_show" is true`],
    [filter("on_show", { kind: "is", value: "false" }), `"works"."on_show" is false`],
    [filter("on_show", { kind: "is", value: "unknown" }), `"works"."on_show" is unknown`],
    [
      filter("title", { kind: "search", operator: "fts", language: null, value: "cat" }),
      `pg_catalog.to_tsvector("works"."title") @@ pg_catalog.to_tsquery($1)`,
    ],
    [
      filter("title", { kind: "search", operator: "plfts", language: "english", value: "cat" }),
      `pg_catalog.to_tsvector('english', "works"."title") @@ pg_catalog.plainto_tsquery('english', $1)`,
    ],
    [
      filter("title", { kind: "search", operator: "phfts", language: null, value: "cat" }),
      `pg_catalog.to_tsvector("works"."title") @@ pg_catalog.phraseto_tsquery($1)`,
    ],
    [
      filter("title", { kind: "search", operator: "wfts", language: null, value: "cat" }),
      `pg_catalog.to_tsvector("works"."title") @@ pg_catalog.websearch_to_tsquery($1)`,
    ],
    [
      eq(field("details", "size", { arrow: "->>", key: "width" }), "90"),
      `"works"."details" operator(pg_catalog.->) 'size' operator(pg_catalog.->>) 'width' = $1`,
    ],
    [eq(field("tags", 0), '"a"'), `pg_catalog.to_jsonb("works"."tags")->0 = $1`],
    [
      {
        kind: "or",
        negated: true,
        conditions: [eq("id", "1"), { kind: "and", negated: false, conditions: [eq("id", "2"), isNull("year")] }],
      },
      `not ("works"."id" = $1 or ("works"."id" = $2 and "works"."year" is null))`,
    ],
  ])("%j", (where, text) => {
    expect(fixture.text(chosen(where))).toBe(
      answering(`select "works"."id" from "api"."works" as "works" where ${text}`),
    );
  });

  test("on a tsvector without a conversion", () => {
    const where = filter("search", { kind: "search", operator: "fts", language: "english", value: "cat" });
    expect(fixture.text(read("documents", { select: columns("id"), where: [where] }))).toContain(
      `where "documents"."search" @@ pg_catalog.to_tsquery('english', $1)`,
    );
  });

  test("on a domain with its own cast from text, one by one in a list", async () => {
    const text = (where: RowCondition) => fixture.text(read("colours", { select: columns("id"), where: [where] }));
    expect(text(eq("shade", "#ff0000"))).toContain(`where "colours"."shade" = tools.shade_from_text($1)`);
    const list = filter("shade", { kind: "in", values: ["#ff0000", "#00ff00"] });
    expect(text(list)).toContain(
      `where "colours"."shade" = any(array(select tools.shade_from_text(pg_catalog.unnest($1::pg_catalog.text[]))))`,
    );
    expect(await ids("colours", list)).toEqual([1, 2]);
  });
});

describe("a value is cast by Postgres to the type of its column", () => {
  test.each<[string, RowCondition, number[]]>([
    ["types", eq("whole", "-1"), [1]],
    ["types", eq("big", "9223372036854775807"), [3]],
    ["types", eq("price", "20"), [2]],
    ["types", eq("flag", "yes"), [1]],
    ["types", eq("padded", "a"), [1]],
    ["types", eq("day", "infinity"), [3]],
    ["types", compare("moment_zone", "lt", "2020-03-01T00:00:00+01:00"), [1]],
    ["types", eq("key", "00000000-0000-0000-0000-000000000002"), [2]],
    ["types", eq("bytes", "\\x00ff"), [1]],
    ["types", eq("bits", "1010"), [2]],
    ["types", compare("host", "lt", "10.0.0.2"), [1]],
    ["types", compare("texts", "cs", '{"b c"}'), [1]],
    ["types", eq("wholes", "{1,2}"), [1]],
    ["types", compare("span", "cs", "[3,4)"), [1]],
    ["types", compare("span", "ov", "[4,6)"), [1, 3]],
    ["types", compare("spans", "cs", "{[8,9)}"), [1, 3]],
    ["types", eq("mood", "happy"), [3]],
    ["types", filter("mood", { kind: "in", values: ["sad", "calm"] }), [1, 2]],
    ["types", eq("positive", "2"), [2]],
    ["types", eq("code", "CC"), [3]],
    ["types", eq(field("address", { arrow: "->>", key: "street" }), "Hill"), [1]],
    ["types", compare("document", "cs", '{"c": {"d": "e"}}'), [1]],
    ["types", eq(field("plain", { arrow: "->>", key: 1 }), "two"), [2]],
    ["loose", eq("name", "vincent"), [2]],
    ["loose", filter("name", { kind: "in", values: ["CLAUDE"] }), [1]],
    ["loose", eq("flags", "0010"), [2]],
  ])("%s %j", async (table, where, expected) => {
    expect(await ids(table, where)).toEqual(expected);
  });

  test.each<[string, RowCondition, string]>([
    ["types", eq("whole", "x"), "22P02"],
    ["types", eq("whole", "3000000000"), "22003"],
    ["types", eq("mood", "angry"), "22P02"],
    ["types", eq("plain", "{}"), "42883"],
    ["types", compare("span", "cs", "3"), "22P02"],
    ["types", filter("texts", { kind: "in", values: ["{a}"] }), "42704"],
    ["types", compare("whole", "like", "1%"), "42883"],
    ["types", eq("nothing", "1"), "42703"],
    ["types", filter("words", { kind: "search", operator: "fts", language: "klingon", value: "x" }), "42704"],
  ])("and is refused by Postgres: %s %j", async (table, where, code) => {
    await expect(fixture.rows(read(table, { select: columns("id"), where: [where] }))).rejects.toMatchObject({ code });
  });

  test("a text is compared as it is", async () => {
    const odd = `'; "drop" -- \\ $1 %`;
    await fixture.owner.query("insert into api.empty values (1, $1)", [odd]);
    const where = eq("name", odd);
    expect(await fixture.rows(read("empty", { select: [column("name")], where: [where] }))).toEqual([{ name: odd }]);
    expect(await ids("empty", filter("name", { kind: "in", values: [odd, "x"] }))).toEqual([1]);
  });
});

describe("a row as a whole", () => {
  const select = [column("id"), column("title", { alias: "name" })];
  const withDigest = (values: readonly string[], negated = false) =>
    read("works", { select, where: [{ kind: "row", negated, operation: { kind: "digest", values } }] });
  const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");

  test("is identified by the digest of its selected columns, as in the body", async () => {
    expect(fixture.text(withDigest([]))).toContain(
      `where pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to((select pg_catalog.row_to_json("_".*)::pg_catalog.text from ` +
        `(select "works"."id", "works"."title" as "name") "_"), 'UTF8')), 'hex') = any($1)`,
    );
    const all = (await fixture.rows(read("works", { select }))) as object[];
    const [first, second] = all.map((row) => digestOf(JSON.stringify(row)));
    expect(await fixture.rows(withDigest([first!, "other"]))).toEqual([all[0]]);
    expect(await fixture.rows(withDigest([first!, second!]))).toEqual(all.slice(0, 2));
    expect(await fixture.rows(withDigest([first!], true))).toEqual(all.slice(1));
    expect(await fixture.rows(withDigest([]))).toEqual([]);
  });

  test("is found by a function", async () => {
    const by = { schema: "api", name: "works_about" };
    const found = (value: string, negated = false): RowCondition => ({
      kind: "row",
      negated,
      operation: { kind: "found", by, value },
    });
    expect(fixture.text(chosen(found("lilies")))).toContain(
      `where "works"."id" in (select "found"."id" from "api"."works_about"($1) as "found")`,
    );
    const [some, others] = [await ids("works", found("lilies")), await ids("works", found("lilies", true))];
    expect(some).toEqual([1]);
    expect(others).not.toContain(1);
  });
});

import { describe, expect, test } from "vitest";
import type { Intent, ReadIntent } from "../../../planner/intent/intent.ts";
import { type ReadPlan, toStreamedPlan } from "../../../planner/plan/plan.ts";
import {
  bodyFrame,
  buildEstimateQuery,
  buildQuery,
  buildRowsQuery,
  guardError,
  readResponseRow,
} from "../../../planner/query/build-query.ts";
import { useFixture } from "../../fixture.ts";
import { answering } from "../expected.ts";
import { type FixtureDatabase, type FixtureOptions, openFixture } from "../fixture-database.ts";
import {
  aggregate,
  call,
  column,
  columns,
  compare,
  eq,
  everyColumn,
  read,
  relation,
  remove,
  term,
} from "../intents.ts";

const fixture = useFixture(openFixture);

const planOf = (intent: ReadIntent, options?: Parameters<FixtureDatabase["plan"]>[1]) =>
  fixture.plan(intent, options) as ReadPlan;

describe("a total", () => {
  const window = { offset: 1, limit: 2 };

  test("counts all rows that match the conditions, inner relations included, and returns none of them", async () => {
    const intent = read(
      "works",
      {
        select: [column("title"), relation("artists", columns("name"), { join: "inner" })],
        where: [compare("year", "gt", "1800")],
        order: [term("id")],
        window,
      },
      { count: "exact" },
    );
    const where = `where "works"."year" > $1 and exists (select 1 from "api"."artists" as "artists_1" where "artists_1"."id" = "works"."artist_id")`;
    expect(fixture.text(intent)).toContain(
      `pg_catalog.count(*), (select pg_catalog.count(*) from "api"."works" as "works" ${where}), nullif(`,
    );
    expect(await fixture.run(intent)).toMatchObject({ rowCount: 2, total: 5 });
  });

  test("equals the page's own count if no rows are excluded", async () => {
    expect(await fixture.run(read("works", {}, { count: "exact" }))).toMatchObject({ rowCount: 7, total: 7 });
    expect(await fixture.run(read("works"))).toMatchObject({ rowCount: 7, total: null });
  });

  test("is counted no further than an estimate needs", async () => {
    const intent = read("numbers", { select: columns("n") }, { count: "estimated" });
    expect(fixture.text(intent, { maxRows: 10 })).toContain(
      `(select pg_catalog.count(*) from (select 1 from "api"."numbers" as "numbers" limit 11) "_")`,
    );
    expect(await fixture.run(intent, { maxRows: 10 })).toMatchObject({ rowCount: 10, total: 11 });
  });

  test("counts groups if rows are grouped", async () => {
    const intent = read("works", { select: [column("artist_id"), aggregate("count")], window }, { count: "exact" });
    expect(await fixture.run(intent)).toMatchObject({ rowCount: 2, total: 5 });
  });

  test("is estimated from Postgres's plan of the same rows", async () => {
    const intent = read("numbers", { where: [compare("n", "lt", "50")], window }, { count: "planned" });
    const plan = planOf(intent);
    expect(plan.needsEstimate).toBe(true);
    const query = buildEstimateQuery(plan);
    expect(query.text).toBe(
      `explain (format json) select 1 from "api"."numbers" as "numbers" where "numbers"."n" < $1`,
    );
    const [[text]] = (await fixture.lines(query, intent)) as [[string]];
    expect(JSON.parse(text)[0].Plan["Plan Rows"]).toBeGreaterThan(40);
  });
});

describe("streamed rows", () => {
  const CSV = { formats: [{ kind: "media", type: "text/csv" }] } as const;
  const STRIPPED = { formats: [{ kind: "array", type: "x/array", nulls: "stripped" }] } as const;
  const longPlanOf = (intent: Intent, options?: FixtureOptions) => toStreamedPlan(fixture.plan(intent, options))!;
  const some = read("works", {
    select: columns("id", "title"),
    where: [compare("id", "lt", "3")],
    order: [term("id")],
  });

  test("are a text each, with the values for the whole response beside it", async () => {
    const query = buildRowsQuery(longPlanOf({ ...some, count: "exact" }));
    expect(query.text).toBe(
      `select pg_catalog.row_to_json("_".*), (select pg_catalog.count(*) from "api"."works" as "works" where "works"."id" < $1), ` +
        "(select nullif(pg_catalog.current_setting('response.headers', true), '')), (select nullif(pg_catalog.current_setting('response.status', true), '')) " +
        `from (select "works"."id", "works"."title" from "api"."works" as "works" where "works"."id" < $1 order by "works"."id") "_"`,
    );
    expect(await fixture.lines(query, some)).toEqual([
      ['{"id":1,"title":"Water Lilies"}', "2", null, null],
      ['{"id":2,"title":"Impression, Sunrise"}', "2", null, null],
    ]);
  });

  test.each<[string, Intent, FixtureOptions]>([
    ["some", some, {}],
    ["all", read("works", { order: [term("id")] }), {}],
    ["without what is null", read("works", { order: [term("id")] }), STRIPPED],
    ["as CSV", read("works", { order: [term("id")] }), CSV],
    [
      "as CSV, with a name of another",
      read("artists", { select: [everyColumn(), column("id", { alias: "a b" })] }),
      CSV,
    ],
    ["with relations", read("artists", { select: [...columns("name"), relation("works", columns("title"))] }), {}],
    ["of groups", read("works", { select: [column("artist_id"), aggregate("count")] }), {}],
    ["of a function", call("works_by", { artist: "1" }, { where: [compare("id", "gt", "1")] }), {}],
    ["of a function, counted", call("all_works", {}, { window: { offset: 1, limit: 2 } }, { count: "exact" }), {}],
  ])("concatenate to the body that Postgres makes: %s", async (_name, intent, options) => {
    const plan = longPlanOf(intent, options);
    const lines = await fixture.lines(buildRowsQuery(plan), intent);
    const { opening, separator, closing } = bodyFrame(plan);
    const whole = await fixture.run(intent, options);
    expect(lines.length).toBeGreaterThan(0);
    expect(opening + lines.map(([line]) => line).join(separator) + closing).toBe(whole.body);
    expect(readResponseRow([whole.body, String(whole.rowCount), ...lines[0]!.slice(1)], plan)).toEqual(whole);
  });

  test("have the headers that a function sets with the first row", async () => {
    await fixture.owner.query(`
      create function api.speaking() returns setof api.works language plpgsql stable as $$ begin
        perform pg_catalog.set_config('response.status', '299', true);
        return query select * from api.works;
      end $$;
      grant execute on function api.speaking to anon`);
    await fixture.reload();
    const intent = call("speaking");
    const [first] = await fixture.lines(buildRowsQuery(longPlanOf(intent)), intent);
    expect(first!.slice(1)).toEqual([null, null, "299"]);
  });
});

describe("an explained statement", () => {
  const json = { kind: "media", type: "application/json" } as const;

  test("is the same one, and returns Postgres's plan", async () => {
    const formats = [{ kind: "plan", type: "x/plan", of: json, as: "json", options: ["verbose", "settings"] } as const];
    const intent = read("works", { where: [eq("id", "1")] });
    const query = buildQuery(fixture.plan(intent, { formats }));
    expect(query.text).toBe(
      `explain (format json, verbose, settings) ${answering(`select "works".* from "api"."works" as "works" where "works"."id" = $1`)}`,
    );
    const [[text]] = (await fixture.lines(query, intent)) as [[string]];
    expect(JSON.parse(text)[0].Plan["Node Type"]).toBe("Aggregate");
  });

  test("may be a text of several lines", async () => {
    const formats = [{ kind: "plan", type: "x/plan", of: json, as: "text", options: [] } as const];
    const intent = remove("works", { where: [eq("id", "1")] });
    const lines = await fixture.lines(buildQuery(fixture.plan(intent, { formats })), intent);
    expect(lines.length).toBeGreaterThan(2);
    expect(await fixture.rows(read("works", { select: columns("id"), where: [eq("id", "1")] }))).toEqual([{ id: 1 }]);
  });
});

test("is the same for all values, and stays valid after a change of the table", async () => {
  const texts = ["1", "2"].map((id) => fixture.text(read("countries", { where: [eq("code", id)] })));
  expect(texts[0]).toBe(texts[1]);
  const intent = read("countries", { where: [eq("code", "FR")] });
  await fixture.owner.query("alter table api.countries add column hymn text default 'la'");
  expect(await fixture.rows(intent)).toEqual([{ code: "FR", name: "France", hymn: "la" }]);
  await fixture.owner.query("alter table api.countries drop column hymn");
  expect(await fixture.rows(intent)).toEqual([{ code: "FR", name: "France" }]);
});

test("an error of Postgres itself is not an API error", () => {
  expect(guardError({ code: "22P02", message: 'invalid input syntax for type integer: "PGRST116 2"' })).toBeNull();
  expect(guardError({ code: "42704", message: 'unrecognized configuration parameter "app.user"' })).toBeNull();
  expect(guardError(new Error("x"))).toBeNull();
  const german = { code: "42704", message: "unbekannter Konfigurationsparameter »PGRST116 2«" };
  expect(guardError(german)).toMatchObject({ code: "PGRST116", details: "The result contains 2 rows" });
});

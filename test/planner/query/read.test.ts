import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { answering } from "../expected.ts";
import { openFixture } from "../fixture-database.ts";
import {
  aggregate,
  at,
  call,
  column,
  columns,
  compare,
  eq,
  everyColumn,
  field,
  isNull,
  read,
  relation,
  term,
} from "../intents.ts";

const fixture = useFixture(() =>
  openFixture(`
    create table api."_" ("_" int primary key, "result" text, "page" text);
    insert into api."_" values (1, 'r', 'p');
    create view api.doubled_artists as select a.id, a.name from api.artists a, pg_catalog.generate_series(1, 2);
    create table api.deep_works (id int primary key, works int references api.works, works_1 int references api.works);
    insert into api.deep_works values (1, 1, 2);
    create table api.species (id int primary key, name text);
    create table api.breeds () inherits (api.species);
    create table api.pets (id int primary key, species int references api.species);
    create table api.chips (pet int unique references api.pets, number text);
    create table api.old_chips () inherits (api.chips);
    insert into api.species values (1, 'cat'), (2, 'dog');
    insert into api.breeds values (1, 'Persian');
    insert into api.pets values (1, 1), (2, 2);
    insert into api.chips values (1, 'new');
    insert into api.old_chips values (1, 'old');
    grant select on all tables in schema api to anon;
  `),
);

describe("a SELECT statement", () => {
  test("of all columns leaves them to Postgres, so that new columns appear", async () => {
    const intent = read("countries", { order: [term("code", { direction: "desc" })], window: { offset: 1, limit: 2 } });
    expect(fixture.text(intent)).toBe(
      answering(
        `select "countries".* from "api"."countries" as "countries" order by "countries"."code" desc limit 2 offset 1`,
      ),
    );
    expect(await fixture.rows(intent)).toEqual([
      { code: "NL", name: "Netherlands" },
      { code: "JP", name: "Japan" },
    ]);
  });

  test("has columns with aliases, casts, JSON paths and computed ones", async () => {
    const intent = read("works", {
      select: [
        ...columns("id", "shouted"),
        column("year", { cast: "text", alias: "when" }),
        column("details", { field: field("details", "size", { arrow: "->>", key: "it's \\" }) }),
        column("tags", { field: field("tags", 0) }),
        column("x", { field: field("details", "media", 0, { arrow: "->>", key: -1 }) }),
      ],
      where: [eq("id", "1")],
    });
    expect(fixture.text(intent)).toBe(
      answering(
        `select "works"."id", "works"."shouted", cast("works"."year" as "text") as "when", ` +
          `"works"."details" operator(pg_catalog.->) 'size' operator(pg_catalog.->>)  E'it''s \\\\' as "it's \\", pg_catalog.to_jsonb("works"."tags")->0 as "tags", ` +
          `"works"."details" operator(pg_catalog.->) 'media'->0->>-1 as "media" from "api"."works" as "works" where "works"."id" = $1`,
      ),
    );
    expect(await fixture.rows(intent)).toEqual([
      { id: 1, shouted: "WATER LILIES", when: "1906", "it's \\": null, tags: "water", media: "oil" },
    ]);
  });

  test("of no columns returns an empty object for each row", async () => {
    const intent = read("works", { select: [relation("artists", [])], where: [eq("id", "1")] });
    expect(fixture.text(intent)).toBe(answering(`select from "api"."works" as "works" where "works"."id" = $1`));
    expect(await fixture.rows(intent)).toEqual([{}]);
  });

  test("lists each column if one has a data representation", () => {
    expect(fixture.text(read("colours"))).toBe(
      answering(
        `select "colours"."id", "colours"."name", tools.shade_to_json("colours"."shade") as "shade" from "api"."colours" as "colours"`,
      ),
    );
  });

  test("returns columns with the names that statements use internally", async () => {
    expect(await fixture.rows(read("_"))).toEqual([{ _: 1, result: "r", page: "p" }]);
  });
});

describe("an embedded relation", () => {
  test("to one row is an object", async () => {
    const intent = read("works", {
      select: [column("title"), relation("artists", [column("name"), relation("countries", columns("name"))])],
      where: [compare("id", "gt", "5")],
      order: [term("id")],
    });
    expect(fixture.text(intent)).toBe(
      answering(
        `select "works"."title", (select pg_catalog.row_to_json("_".*) from (select "artists_1"."name", ` +
          `(select pg_catalog.row_to_json("_".*) from (select "countries_2"."name" from "api"."countries" as "countries_2" ` +
          `where "countries_2"."code" = "artists_1"."country") "_") as "countries" from "api"."artists" as "artists_1" ` +
          `where "artists_1"."id" = "works"."artist_id") "_") as "artists" from "api"."works" as "works" ` +
          `where "works"."id" > $1 order by "works"."id"`,
      ),
    );
    expect(await fixture.rows(intent)).toEqual([
      { title: "The Great Wave", artists: { name: "Hokusai", countries: { name: "Japan" } } },
      { title: "Fragment", artists: null },
    ]);
  });

  test("to many rows is an array, with conditions, order and range of its own", async () => {
    const intent = read("artists", {
      select: [column("name"), relation("works", columns("title"), { alias: "late" })],
      where: [compare("id", "lt", "3")],
      conditions: [at("late", compare("year", "gt", "1880"))],
      orders: [at("late", [term("year", { direction: "desc", nulls: "last" })])],
      ranges: [at("late", { offset: 0, limit: 1 })],
    });
    expect(fixture.text(intent)).toBe(
      answering(
        `select "artists"."name", (select coalesce(pg_catalog.json_agg("_".*), '[]') from (select "works_1"."title" from "api"."works" as "works_1" ` +
          `where "works_1"."artist_id" = "artists"."id" and "works_1"."year" > $1 order by "works_1"."year" desc nulls last limit 1) "_") ` +
          `as "late" from "api"."artists" as "artists" where "artists"."id" < $2`,
      ),
    );
    expect(await fixture.rows(intent)).toEqual([
      { name: "Claude", late: [{ title: "Water Lilies" }] },
      { name: "Vincent", late: [{ title: "The Starry Night" }] },
    ]);
  });

  test("may use a junction", async () => {
    const intent = read("exhibitions", {
      select: [column("id"), relation("works", columns("id"))],
      where: [eq("id", "2")],
    });
    expect(fixture.text(intent)).toBe(
      answering(
        `select "exhibitions"."id", (select coalesce(pg_catalog.json_agg("_".*), '[]') from (select "works"."id" from "api"."works" as "works" ` +
          `join "api"."exhibits" as "exhibits" on "exhibits"."work_id" = "works"."id" where "exhibits"."exhibition_id" = "exhibitions"."id") "_") ` +
          `as "works" from "api"."exhibitions" as "exhibitions" where "exhibitions"."id" = $1`,
      ),
    );
    expect(await fixture.rows(intent)).toEqual([{ id: 2, works: [{ id: 3 }, { id: 5 }] }]);
  });

  test("may be a function of the row", async () => {
    const intent = read("artists", {
      select: [relation("masterpiece", columns("title")), relation("shown_works", columns("id"))],
      where: [eq("id", "2")],
    });
    expect(fixture.text(intent)).toBe(
      answering(
        `select (select pg_catalog.row_to_json("_".*) from (select "works_1"."title" from "api"."masterpiece"("artists".*) as "works_1" limit 1) "_") as "masterpiece", ` +
          `(select coalesce(pg_catalog.json_agg("_".*), '[]') from (select "works_1"."id" from "api"."shown_works"("artists".*) as "works_1") "_") as "shown_works" ` +
          `from "api"."artists" as "artists" where "artists"."id" = $1`,
      ),
    );
    expect(await fixture.rows(intent)).toEqual([
      { masterpiece: { title: "The Starry Night" }, shown_works: [{ id: 3 }] },
    ]);
  });

  test("may be the table itself, in both directions at once", async () => {
    const intent = read("people", {
      select: [
        column("id"),
        relation("people", columns("id"), { alias: "team" }),
        relation("boss_id", columns("id"), { alias: "boss" }),
      ],
      where: [eq("id", "2")],
    });
    expect(await fixture.rows(intent)).toEqual([{ id: 2, team: [{ id: 4 }], boss: { id: 1 } }]);
  });

  test("has an alias that no outer table has", async () => {
    const inner = relation("works", [relation("artists", [relation("works", columns("id"))])], { hint: "works_1" });
    const intent = read("deep_works", { select: [inner] });
    expect(fixture.text(intent)).toContain(`"api"."works" as "works_1" where "works_1"."id" = "deep_works"."works_1"`);
    expect(await fixture.rows(intent)).toEqual([{ works: { artists: { works: [{ id: 1 }, { id: 2 }] } } }]);
  });

  test("to one row stays one row if a view has several", async () => {
    const intent = read("works", { select: [relation("doubled_artists", columns("name"))], where: [eq("id", "1")] });
    expect(fixture.text(intent)).toContain(`= "works"."artist_id" limit 1) "_") as "doubled_artists"`);
    expect(await fixture.rows(intent)).toEqual([{ doubled_artists: { name: "Claude" } }]);
  });

  test("to one row stays one row if tables that inherit have the same key", async () => {
    const select = [column("id"), relation("species", columns("name")), relation("chips", columns("number"))];
    const intent = read("pets", { select, order: [term("id")] });
    expect(fixture.text(intent)).toContain(`= "pets"."species" limit 1) "_") as "species"`);
    expect(await fixture.rows(intent)).toEqual([
      { id: 1, species: { name: expect.any(String) }, chips: { number: expect.any(String) } },
      { id: 2, species: { name: "dog" }, chips: null },
    ]);
    const inner = relation("species", columns("name"), { join: "inner", spread: true });
    const spread = read("pets", { select: [column("id"), inner], order: [term("id", { relation: "species" })] });
    expect(await fixture.rows(spread)).toHaveLength(2);
  });

  test("excludes rows without it if it is inner, at any depth", async () => {
    const countries = relation("countries", columns("name"), { join: "inner" });
    const intent = read("works", {
      select: [column("id"), relation("artists", [column("name"), countries], { join: "inner" })],
      conditions: [at("artists.countries", eq("code", "JP"))],
    });
    expect(fixture.text(intent)).toBe(
      answering(
        `select "works"."id", (select pg_catalog.row_to_json("_".*) from (select "artists_1"."name", (select pg_catalog.row_to_json("_".*) from ` +
          `(select "countries_2"."name" from "api"."countries" as "countries_2" where "countries_2"."code" = "artists_1"."country" and "countries_2"."code" = $1) "_") as "countries" ` +
          `from "api"."artists" as "artists_1" where "artists_1"."id" = "works"."artist_id" and exists (select 1 from "api"."countries" as "countries_2" ` +
          `where "countries_2"."code" = "artists_1"."country" and "countries_2"."code" = $1)) "_") as "artists" from "api"."works" as "works" ` +
          `where exists (select 1 from "api"."artists" as "artists_1" where "artists_1"."id" = "works"."artist_id" and exists (select 1 from "api"."countries" as "countries_2" ` +
          `where "countries_2"."code" = "artists_1"."country" and "countries_2"."code" = $1))`,
      ),
    );
    expect(await fixture.rows(intent)).toEqual([{ id: 6, artists: { name: "Hokusai", countries: { name: "Japan" } } }]);
  });

  test("counts its rows by a column with the name count, as older clients do", async () => {
    const intent = read("artists", { select: [relation("works", columns("count"))], where: [eq("id", "1")] });
    expect(await fixture.rows(intent, { aggregates: false })).toEqual([{ works: [{ count: 2 }] }]);
  });
});

describe("conditions on relations", () => {
  const ids = async (intent: ReturnType<typeof read>) =>
    ((await fixture.rows(intent)) as { id: number }[]).map(({ id }) => id);

  test("filter rows by the existence of related rows", async () => {
    const select = [column("id"), relation("works", [])];
    expect(await ids(read("artists", { select, where: [isNull("works")] }))).toEqual([5]);
    expect(await ids(read("artists", { select, where: [isNull("works", true)] }))).toEqual([1, 2, 3, 4]);
  });

  test("filter by related rows that match their own conditions, in a tree too", async () => {
    const intent = read("works", {
      select: [column("id"), relation("artists", []), relation("labels", [])],
      conditions: [at("artists", eq("name", "Vincent")), at("labels", compare("body", "like", "A wave"))],
      where: [{ kind: "or", negated: false, conditions: [isNull("artists", true), isNull("labels", true)] }],
      order: [term("id")],
    });
    expect(fixture.text(intent)).toContain(
      `where (exists (select 1 from "api"."artists" as "artists_1" where "artists_1"."id" = "works"."artist_id" and "artists_1"."name" = $1) or exists `,
    );
    expect(await ids(intent)).toEqual([3, 4, 6]);
  });

  test("by a column of a relation that is not selected", async () => {
    const related = { kind: "related", relation: "artists", negated: false, condition: eq("name", "Claude") } as const;
    const intent = read("works", {
      select: columns("id"),
      where: [{ kind: "or", negated: false, conditions: [related, eq("id", "7")] }],
      order: [term("id")],
    });
    expect(fixture.text(intent)).toBe(
      answering(
        `select "works"."id" from "api"."works" as "works" where (exists (select 1 from "api"."artists" as "artists_1" ` +
          `where "artists_1"."id" = "works"."artist_id" and "artists_1"."name" = $1) or "works"."id" = $2) order by "works"."id"`,
      ),
    );
    expect(await ids(intent)).toEqual([1, 2, 7]);
    expect(
      await ids(read("works", { select: columns("id"), where: [{ ...related, negated: true }], order: [term("id")] })),
    ).toEqual([3, 4, 5, 6, 7]);
  });

  test("on a column may use the name of a relation", async () => {
    const intent = read("works", {
      select: [column("id"), relation("artist_id", columns("name"))],
      where: [eq("artist_id", "3")],
    });
    expect(await ids(intent)).toEqual([5]);
  });

  test("treat an empty range as no related rows", async () => {
    const intent = read("artists", {
      select: [column("id"), relation("works", columns("id"), { join: "inner" })],
      ranges: [at("works", { offset: 1, limit: null })],
      order: [term("id")],
    });
    expect(await ids(intent)).toEqual([1, 2]);
    const none = read("artists", {
      select: [column("id"), relation("works", [], { join: "inner" })],
      ranges: [at("works", { offset: 0, limit: 0 })],
    });
    expect(await ids(none)).toEqual([]);
  });
});

describe("the order by a relation's column", () => {
  test("may use a column that is not selected", async () => {
    const intent = read("works", {
      select: [column("id"), relation("artists", columns("name"))],
      order: [term("born", { relation: "artists", nulls: "first" }), term("id", { direction: "desc" })],
    });
    expect(fixture.text(intent)).toContain(
      `order by (select "artists_1"."born" from "api"."artists" as "artists_1" where "artists_1"."id" = "works"."artist_id" limit 1) nulls first, "works"."id" desc`,
    );
    expect(((await fixture.rows(intent)) as { id: number }[]).map(({ id }) => id)).toEqual([7, 5, 6, 2, 1, 4, 3]);
  });
});

describe("a spread relation", () => {
  test("to one row adds its columns to the parent row, through several levels", async () => {
    const country = relation("countries", [column("name", { alias: "land" })], { spread: true });
    const intent = read("works", {
      select: [
        column("id"),
        relation("artists", [column("name"), country, relation("works", columns("id"))], { spread: true }),
      ],
      where: [compare("id", "gt", "5")],
    });
    expect(fixture.text(intent)).toBe(
      answering(
        `select "works"."id", "spread_1"."c1" as "name", "spread_1"."c2" as "land", "spread_1"."c3" as "works" from "api"."works" as "works" ` +
          `left join lateral (select "artists_1"."name" as "c1", "spread_2"."c1" as "c2", (select coalesce(pg_catalog.json_agg("_".*), '[]') from ` +
          `(select "works_2"."id" from "api"."works" as "works_2" where "works_2"."artist_id" = "artists_1"."id") "_") as "c3" ` +
          `from "api"."artists" as "artists_1" left join lateral (select "countries_2"."name" as "c1" from "api"."countries" as "countries_2" ` +
          `where "countries_2"."code" = "artists_1"."country") as "spread_2" on true where "artists_1"."id" = "works"."artist_id") as "spread_1" on true ` +
          `where "works"."id" > $1`,
      ),
    );
    expect(await fixture.rows(intent)).toEqual([
      { id: 6, name: "Hokusai", land: "Japan", works: [{ id: 6 }] },
      { id: 7, name: null, land: null, works: null },
    ]);
  });

  test("adds all its columns", async () => {
    const intent = read("labels", {
      select: [relation("works", [everyColumn()], { spread: true })],
      where: [eq("work_id", "6")],
    });
    const [row] = (await fixture.rows(intent)) as object[];
    expect(Object.keys(row!)).toEqual([
      "id",
      "artist_id",
      "title",
      "year",
      "price",
      "mood",
      "on_show",
      "tags",
      "details",
    ]);
  });

  test("to many rows adds arrays of equal length", async () => {
    const intent = read("artists", {
      select: [column("id"), relation("works", columns("title", "year"), { spread: true })],
      where: [{ kind: "or", negated: false, conditions: [eq("id", "1"), eq("id", "5")] }],
      orders: [at("works", [term("year")])],
    });
    expect(fixture.text(intent)).toContain(
      `left join lateral (select coalesce(pg_catalog.json_agg("_"."c1"), '[]') as "c1", coalesce(pg_catalog.json_agg("_"."c2"), '[]') as "c2" from (select "works_1"."title" as "c1"`,
    );
    expect(await fixture.rows(intent)).toEqual([
      { id: 1, title: ["Impression, Sunrise", "Water Lilies"], year: [1872, 1906] },
      { id: 5, title: [], year: [] },
    ]);
  });

  test("can be the same table twice", async () => {
    const intent = read("exhibitions", {
      select: [
        relation("people", [column("name", { alias: "curator" })], { hint: "curator_id", spread: true }),
        relation("people", [column("name", { alias: "deputy" })], { hint: "deputy_id", spread: true }),
      ],
      where: [eq("id", "1")],
    });
    expect(await fixture.rows(intent)).toEqual([{ curator: "Ada", deputy: "Ben" }]);
  });
});

describe("aggregates", () => {
  test("are computed for all rows, or grouped by the other columns", async () => {
    const intent = read("works", {
      select: [
        column("artist_id", { alias: "by" }),
        aggregate("count"),
        aggregate("sum", "price", { aggregate: { name: "sum", cast: "text" } }),
      ],
      order: [term("artist_id", { nulls: "last" })],
      window: { offset: 0, limit: 2 },
    });
    expect(fixture.text(intent)).toBe(
      answering(
        `select "works"."artist_id" as "by", pg_catalog.count(*) as "count", cast(pg_catalog.sum("works"."price") as "text") as "sum" ` +
          `from "api"."works" as "works" group by 1 order by "works"."artist_id" nulls last limit 2`,
      ),
    );
    expect(await fixture.rows(intent)).toEqual([
      { by: 1, count: 2, sum: "179.50" },
      { by: 2, count: 2, sum: "100.00" },
    ]);
    expect(await fixture.rows(read("works", { select: [aggregate("max", "year", { alias: "last" })] }))).toEqual([
      { last: 1906 },
    ]);
  });

  test("are grouped by embedded relations and by JSON paths", async () => {
    const intent = read("works", {
      select: [
        column("details", { field: field("details", { arrow: "->>", key: "copies" }) }),
        relation("artists", columns("name")),
        aggregate("count"),
      ],
      where: [compare("artist_id", "gt", "3")],
    });
    expect(fixture.text(intent)).toContain(
      `as "jsonb") as "artists" from "api"."works" as "works" where "works"."artist_id" > $1 group by 1, 3`,
    );
    expect(await fixture.rows(intent)).toEqual([{ copies: "100", count: 1, artists: { name: "Hokusai" } }]);
  });

  test("of a spread relation are grouped by the outer rows", async () => {
    const intent = read("works", {
      select: [
        aggregate("count"),
        relation(
          "artists",
          [column("country"), aggregate("min", "born"), aggregate("count", null, { alias: "artists" })],
          { spread: true },
        ),
      ],
      order: [term("country", { relation: "artists", nulls: "last" })],
    });
    expect(fixture.text(intent)).toBe(
      answering(
        `select pg_catalog.count(*) as "count", "spread_1"."c1" as "country", pg_catalog.min("spread_1"."c2") as "min", pg_catalog.count("spread_1"."c3") as "artists" ` +
          `from "api"."works" as "works" left join lateral (select "artists_1"."country" as "c1", "artists_1"."born" as "c2", 1 as "c3" ` +
          `from "api"."artists" as "artists_1" where "artists_1"."id" = "works"."artist_id") as "spread_1" on true group by 2 order by "spread_1"."c1" nulls last`,
      ),
    );
    expect(await fixture.rows(intent)).toEqual([
      { count: 2, country: "FR", min: 1840, artists: 2 },
      { count: 1, country: "JP", min: 1760, artists: 1 },
      { count: 3, country: "NL", min: 1606, artists: 3 },
      { count: 1, country: null, min: null, artists: 0 },
    ]);
  });

  test("work in embedded relations, and beside all columns", async () => {
    const inner = read("artists", { select: [relation("works", [aggregate("sum", "price")])], where: [eq("id", "5")] });
    expect(await fixture.rows(inner)).toEqual([{ works: [{ sum: null }] }]);
    const whole = read("countries", { select: [everyColumn(), aggregate("count")], where: [eq("code", "FR")] });
    expect(await fixture.rows(whole)).toEqual([{ code: "FR", name: "France", count: 1 }]);
  });

  test("work on the rows of a function", async () => {
    expect(await fixture.rows(call("all_works", {}, { select: [aggregate("max", "id")] }))).toEqual([{ max: 7 }]);
  });
});

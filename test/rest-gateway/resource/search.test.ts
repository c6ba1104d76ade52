import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { connect } from "../../db/callers.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { CALLERS } from "../callers.ts";
import { searchedTexts, TOWN, townRows, wordings } from "../town.ts";
import { openResources } from "./open-resources.ts";

/** Nobody sees the ledgers of places; of visits, all see the texts, but not the places. */
const HIDDEN = `
  create table town.ledgers (id int primary key, place_id int references town.places, text text);
  create table town.visits (id int primary key, place_id int references town.places, text text);
  grant select (id, text) on town.visits to anon`;

const resources = useFixture(() => openResources({ sql: `${TOWN}${HIDDEN}`, settings: { PGRST_DB_SCHEMAS: "town" } }));
const caller = useFixture(() => connect(resources.databaseUrl));

/** The fields of the collection, and their names in the table interface. */
const FIELDS = { title: "title", story: "story", "owner.name": "owners.name", "notes.text": "notes.text" } as const;
type Name = keyof typeof FIELDS;

test("random searches find, rank and highlight as statements do", async () => {
  const outcomes = { none: 0, some: 0 };
  const requests = fc.record({
    fields: fc.uniqueArray(fc.constantFrom(...(Object.keys(FIELDS) as Name[])), { minLength: 2 }),
    words: wordings,
    as: fc.constantFrom(...CALLERS),
  });
  const property = fc.asyncProperty(requests, async ({ fields, words, as }) => {
    const { document, text } = searchedTexts(
      fields.map((name) => FIELDS[name]),
      words,
    );
    const own = fields.filter((name) => name === "title" || name === "story");
    const parameters = new URLSearchParams({
      search: `(${fields.join()}).${words.url}`,
      fields: ["id", "rank", "highlight", ...own.map((name) => `${name}_highlight`)].join(),
      sort: "rank:desc,id:asc",
      limit: "100",
    });
    const highlights = own.map((name) => `, ts_headline(${words.language}${name}, ${words.sql}) as ${name}_highlight`);
    const rows = await townRows(
      caller,
      `select id, ts_rank(${document}, ${words.sql}) as rank, ts_headline(${words.language}${text}, ${words.sql}) as highlight${highlights.join("")}
       from places p where ${document} @@ ${words.sql} order by rank desc, id`,
      as,
    );
    const { status, body } = await resources.ask(`/api/v1/places?${parameters}`, { as });
    expect({ parameters: String(parameters), status, rows: body.data }).toEqual({
      parameters: String(parameters),
      status: 200,
      rows,
    });
    expect(body.pagination.total).toBe(rows.length);
    outcomes[rows.length === 0 ? "none" : "some"] += 1;
  });
  await fc.assert(property, { numRuns: propertyRuns(1_000) });
  expect(Math.min(...Object.values(outcomes)), JSON.stringify(outcomes)).toBeGreaterThan(0);
});

describe("a search", () => {
  test("is combined with filters, and with the row above in the path", async () => {
    const { body } = await resources.ask(
      "/api/v1/owners/3/places?search=(story,notes.text).wfts.boats&fields=id,owner_id",
    );
    const expected = await townRows(
      caller,
      `select id, owner_id from places p where owner_id = 3 and ${searchedTexts(["story", "notes.text"], { language: "" }).document} @@ websearch_to_tsquery('boats') order by id`,
      { role: "anon" },
    );
    expect(body.data).toEqual(expected);
    expect(expected.length).toBeGreaterThan(0);
  });

  test("has the names of the version", async () => {
    const { body } = await resources.ask(
      "/api/v2/places?search=(title,owner.name).prefix(english).harb&fields=id,titleHighlight,rank&sort=rank:desc,id&limit=1",
    );
    expect(body.data).toEqual([
      { id: expect.any(Number), titleHighlight: expect.stringContaining("<b>"), rank: expect.any(Number) },
    ]);
  });

  test("of one tsvector has a rank, and no text to highlight", async () => {
    const found = await resources.ask("/api/v1/places?search=(words).plfts.cats&fields=id,rank&sort=rank:desc");
    expect(found.body.data.length).toBeGreaterThan(0);
    expect(await resources.ask("/api/v1/places?search=(words).plfts.cats&fields=highlight")).toMatchObject({
      status: 400,
    });
  });
});

test.each([
  ["fields=ledgerz", 'Unknown field "ledgerz".'],
  ["fields=ledgerz.text", 'Unknown field "ledgerz.text".'],
  ["fields=visitz.text", 'Unknown field "visitz.text".'],
  ["search=(ledgerz.text).wfts.cats", 'Unknown field "ledgerz.text".'],
  ["search=(ledgerz).wfts.cats", 'Unknown field "ledgerz".'],
  ["search=(visitz).wfts.cats", 'Unknown field "visitz".'],
  ["fields=notez.text", 'Unknown field "notez.text". Did you mean "notes"?'],
])(
  "a suggestion names no collection that the role may not see, nor one that refers by such a column: %s",
  async (query, message) => {
    const { status, body } = await resources.ask(`/api/v1/places?${query}`, { as: { role: "anon" } });
    expect([status, body.error.details[0].message]).toEqual([400, message]);
  },
);

describe("what is wrong", () => {
  test.each([
    ["search=cats", "search", "It must have the form"],
    ["search=(title).eq.cats", "search", "It must have the form"],
    ["search=(titel).wfts.cats", "search", 'Unknown field "titel". Did you mean "title"?'],
    ["search=(owner.nam).wfts.cats", "search", 'Unknown field "owner.nam". Did you mean "name"?'],
    ["search=(secret,title).wfts.boat", "search", 'Unknown field "secret".'],
    [
      "search=(owner.places.owner.places.title).wfts.cats",
      "search",
      "At most 3 relations may lead to a searched field.",
    ],
    ["search=(title).wfts.a%00", "search", "It must not contain the character U+0000."],
    ["search=(title).wfts.a&search=(title).wfts.b", "search", "It must be given only once."],
    ["fields=rank", "fields", 'Unknown field "rank".'],
    ["sort=rank", "sort", 'Unknown sort field "rank".'],
    ["search=(title).wfts.cats&sort=highlight", "sort", 'Unknown sort field "highlight".'],
  ])("is named: %s", async (query, field, message) => {
    const { status, body } = await resources.ask(`/api/v1/places?${query}`);
    expect({ status, ...body.error.details[0] }).toMatchObject({ status: 400, field });
    expect(body.error.details[0].message).toContain(message);
  });

  test.each(["(title).fts.cats dogs", "(title).wfts(klingon).cats", "(notes.text,owner.places.words).wfts.cats"])(
    "is refused: %s",
    async (search) => {
      const { status, body } = await resources.ask(`/api/v1/places?${new URLSearchParams({ search })}`);
      expect({ status, code: body.error.code }).toEqual({ status: 400, code: "VALIDATION_ERROR" });
    },
  );
});

test("a language of spaces is none", async () => {
  const { status } = await resources.ask("/api/v1/places?search=(title).wfts(%20%20).cats");
  expect(status).toBe(200);
});

test("a column that is called search is filtered as before", async () => {
  await resources.owner.query(`
    create table town.finds (id int primary key, search text, title text);
    insert into town.finds values (1, '(title).wfts.cats', 'dogs'), (2, 'other', 'cats');
    grant select on town.finds to anon`);
  await resources.seen("/api/v1/finds");
  const { body } = await resources.ask(
    `/api/v1/finds?${new URLSearchParams({ search: "(title).wfts.cats", fields: "id" })}`,
  );
  expect(body.data).toEqual([{ id: 1 }]);
});

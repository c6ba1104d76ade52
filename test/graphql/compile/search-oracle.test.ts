import fc from "fast-check";
import { expect, test } from "vitest";
import type { Service } from "../../../service/wiring/service.ts";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { CALLERS } from "../../rest-gateway/callers.ts";
import { tokenOf } from "../../rest-gateway/table/client.ts";
import { searchedTexts, TOWN, townRows, wordings } from "../../rest-gateway/town.ts";
import { answerOf, operationOutcomes, servePair } from "./oracle.ts";

const database = useDatabase({ sql: TOWN });
const caller = useClient(database.url);
const services = useFixture(() => servePair(database, { PGRST_DB_SCHEMAS: "town" }));

/** The fields of a search, and their names in the table interface. */
const FIELDS = {
  "{ title: TEXT }": "title",
  "{ story: TEXT }": "story",
  "{ owner: { name: TEXT } }": "owners.name",
  "{ notes: { text: TEXT } }": "notes.text",
} as const;
type SearchedField = keyof typeof FIELDS;

test("random searches find the rows of statements in the order of their ranks, compiled and by Grafast", async () => {
  const outcomes = { none: 0, some: 0 };
  const requests = fc.record({
    fields: fc.uniqueArray(fc.constantFrom(...(Object.keys(FIELDS) as SearchedField[])), { minLength: 2 }),
    words: wordings,
    not: fc.boolean(),
    as: fc.constantFrom(...CALLERS),
  });
  const property = fc.asyncProperty(requests, async ({ fields, words, not, as }) => {
    const names = fields.map((field) => FIELDS[field]);
    const { document, text } = searchedTexts(names, words);
    const search = `search: { fields: [${fields.join()}], ${words.operator}: $words }`;
    const operation = {
      query: `query ($words: FullTextSearchInput) {
        placeSearchResults(first: 100, where: { ${not ? `not: { ${search} }` : search} }, orderBy: [{ searchRank: { ${search} } }]) {
          edges { node { id } searchRank(${search}) searchHighlight(${search}) }
        }
      }`,
      variables: { words: { query: words.words, ...(words.configuration && { language: words.configuration }) } },
    };
    const rows = (await townRows(
      caller,
      `select json_build_object('id', id::text) as node, ts_rank(${document}, ${words.sql}) as "searchRank", ts_headline(${words.language}${text}, ${words.sql}) as "searchHighlight"
       from places p where ${not ? "not " : ""}(${document} @@ ${words.sql}) order by 2 desc, p.id desc`,
      as,
    )) as readonly object[];
    const data = JSON.stringify({ placeSearchResults: { edges: rows } });
    for (const service of [services.compiling, services.plain])
      expect({ operation, ...(await answerOf(service, operation, tokenOf(as))) }).toEqual({
        operation,
        data,
        errors: undefined,
      });
    outcomes[rows.length === 0 ? "none" : "some"] += 1;
  });
  await fc.assert(property, { numRuns: propertyRuns(500) });
  expect(Math.min(...Object.values(outcomes)), JSON.stringify(outcomes)).toBeGreaterThan(0);
  expect((await operationOutcomes(services.compiling)).compiled).toBeGreaterThan(0);
});

test("pages in the order of ranks have each row once", async () => {
  const search = { fields: [{ story: "TEXT" }, { owner: { name: "TEXT" } }], wfts: { query: "cats or green" } };
  const query = `query ($search: PlaceSearchInput!, $after: String, $first: Int) {
    placeSearchResults(first: $first, after: $after, orderBy: [{ owner: { searchRank: { search: { fields: [{ name: TEXT }], wfts: { query: "ann" } }, direction: ASC } } }, { searchRank: { search: $search } }]) {
      edges { node { id } searchRank(search: $search) } pageInfo { endCursor hasNextPage } }
  }`;
  type Page = { readonly edges: readonly unknown[]; readonly pageInfo: { readonly endCursor: string | null } };
  const read = async (service: Service, variables: object): Promise<Page> => {
    const { data, errors } = await answerOf(service, { query, variables: { search, ...variables } }, null);
    expect(errors).toBeUndefined();
    return JSON.parse(data!).placeSearchResults;
  };
  const { edges: all } = await read(services.plain, { first: 100 });
  const pages: unknown[] = [];
  let after: string | null = null;
  for (let turn = 0; pages.length < all.length; turn++) {
    // A cursor of one way is one of the other.
    const page: Page = await read(turn % 2 === 0 ? services.compiling : services.plain, { first: 4, after });
    pages.push(...page.edges);
    after = page.pageInfo.endCursor;
  }
  expect(pages).toEqual(all);
});

test("a search with several operators or none has no rank", async () => {
  for (const operators of [`wfts: { query: "a" }, plfts: { query: "b" }`, ""])
    for (const service of [services.compiling, services.plain]) {
      const query = `{ placeSearchResults { edges { searchRank(search: { fields: [{ story: TEXT }], ${operators} }) } } }`;
      expect(await answerOf(service, { query, variables: {} }, null)).toMatchObject({
        errors: [{ extensions: { code: "VALIDATION_ERROR" } }],
      });
    }
});

test("a rank without an operator is refused as an order even if rows are only counted", async () => {
  const orderBy = "[{ searchRank: { search: { fields: [{ story: TEXT }] } } }]";
  for (const size of ["", "first: 0, ", "last: 2, "])
    for (const service of [services.compiling, services.plain]) {
      const operation = { query: `{ places(${size}orderBy: ${orderBy}) { totalCount } }`, variables: {} };
      expect(await answerOf(service, operation, null)).toMatchObject({
        errors: [{ extensions: { code: "VALIDATION_ERROR" } }],
      });
    }
});

test("columns that the caller may not read are not searched", async () => {
  const operation = {
    query: `{ places(where: { search: { fields: [{ secret: TEXT }], wfts: { query: "boat" } } }) { totalCount } }`,
    variables: {},
  };
  const { data, errors } = await answerOf(services.compiling, operation, null);
  expect({ data, errors }).toMatchObject({ errors: [{ extensions: { code: "GRAPHQL_VALIDATION_FAILED" } }] });
});

test("a search without fields finds nothing", async () => {
  const operation = {
    query: `{ places(where: { search: { fields: [], wfts: { query: "boats" } } }) { totalCount } }`,
    variables: {},
  };
  for (const service of [services.compiling, services.plain])
    expect((await answerOf(service, operation, null)).data).toBe('{"places":{"totalCount":0}}');
});

test("at most three relations lead to a searched column", async () => {
  const nested = (relations: number) =>
    Array.from({ length: relations }).reduce<string>(
      (inner, _, place) => `{ ${(relations - place) % 2 === 1 ? "owner" : "places"}: ${inner} }`,
      relations % 2 === 1 ? "{ name: TEXT }" : "{ title: TEXT }",
    );
  for (const service of [services.compiling, services.plain]) {
    const search = (relations: number) => {
      const query = `{ places(where: { search: { fields: [${nested(relations)}], wfts: { query: "cats" } } }) { totalCount } }`;
      return answerOf(service, { query, variables: {} }, null);
    };
    expect((await search(3)).errors).toBeUndefined();
    expect(await search(4)).toMatchObject({
      errors: [{ message: "At most 3 relations may lead to a searched field." }],
    });
  }
});

import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { serve } from "../../serve.ts";
import { openClient } from "./client.ts";
import { openFixture } from "./differential/fixture.ts";

/** The ids of the rows that a filter chooses, and of those that its negation chooses; rows for which it is null are in neither. */
type Case = readonly [filter: string, chosen: readonly number[], others: readonly number[]];

const OF_WORKS: readonly Case[] = [
  ["title=eq.Fragment", [7], [1, 2, 3, 4, 5, 6]],
  ["artist_id=neq.1", [3, 4, 5, 6], [1, 2]],
  ["year=gt.1889", [1], [2, 3, 4, 5, 6]],
  ["year=gte.1889", [1, 3], [2, 4, 5, 6]],
  ["year=lt.1831", [5], [1, 2, 3, 4, 6]],
  ["year=lte.1831", [5, 6], [1, 2, 3, 4]],
  ["title=like.The*t*", [3, 5, 6], [1, 2, 4, 7]],
  ["title=like.the*", [], [1, 2, 3, 4, 5, 6, 7]],
  ["title=ilike.*NIGHT*", [3, 5], [1, 2, 4, 6, 7]],
  ["title=match.^The .*[ht]$", [3, 5], [1, 2, 4, 6, 7]],
  ["title=imatch.^the .*NIGHT$", [3], [1, 2, 4, 5, 6, 7]],
  ['title=in.("Impression, Sunrise",Fragment)', [2, 7], [1, 3, 4, 5, 6]],
  ["id=in.(1,3,99)", [1, 3], [2, 4, 5, 6, 7]],
  ["id=in.()", [], [1, 2, 3, 4, 5, 6, 7]],
  ["year=is.null", [7], [1, 2, 3, 4, 5, 6]],
  ["year=is.not_null", [1, 2, 3, 4, 5, 6], [7]],
  ["on_show=is.true", [1, 2, 3, 5, 6], [4, 7]],
  ["on_show=is.false", [4, 7], [1, 2, 3, 5, 6]],
  ["mood=isdistinct.happy", [1, 2, 5, 6, 7], [3, 4]],
  ["tags=cs.{water,flowers}", [1], [2, 3, 4, 5, 6, 7]],
  ["tags=cd.{water,morning}", [2, 6, 7], [1, 3, 4, 5]],
  ["tags=ov.{night,morning}", [2, 3, 5], [1, 4, 6, 7]],
  ["artist_id=eq(any).{1,3}", [1, 2, 5], [3, 4, 6]],
  ["artist_id=eq(all).{1,1}", [1, 2], [3, 4, 5, 6]],
  ["year=gt(any).{1888,1900}", [1, 3], [2, 4, 5, 6]],
  ["year=gt(all).{1888,1900}", [1], [2, 3, 4, 5, 6]],
  ["year=gte(any).{1889,1906}", [1, 3], [2, 4, 5, 6]],
  ["year=gte(all).{1889,1906}", [1], [2, 3, 4, 5, 6]],
  ["year=lt(any).{1700,1850}", [5, 6], [1, 2, 3, 4]],
  ["year=lt(all).{1700,1850}", [5], [1, 2, 3, 4, 6]],
  ["year=lte(any).{1642,1831}", [5, 6], [1, 2, 3, 4]],
  ["year=lte(all).{1642,1831}", [5], [1, 2, 3, 4, 6]],
  ["title=like(any).{Water*,*Wave}", [1, 6], [2, 3, 4, 5, 7]],
  ["title=like(all).{The*,*Night*}", [3, 5], [1, 2, 4, 6, 7]],
  ["title=ilike(any).{water*,*WAVE}", [1, 6], [2, 3, 4, 5, 7]],
  ["title=ilike(all).{the*,*WATCH}", [5], [1, 2, 3, 4, 6, 7]],
  ["title=match(any).{^Water,Wave$}", [1, 6], [2, 3, 4, 5, 7]],
  ["title=match(all).{^The,Night}", [3, 5], [1, 2, 4, 6, 7]],
  ["title=imatch(any).{^water,WAVE$}", [1, 6], [2, 3, 4, 5, 7]],
  ["title=imatch(all).{^the,WATCH$}", [5], [1, 2, 3, 4, 6, 7]],
  ['details=cs.{"media":["oil"]}', [1, 3], [2, 4, 6, 7]],
  ['details=cd.{"copies":100,"media":["ink","paper","glue"]}', [4, 6], [1, 2, 3, 7]],
  ["details->size->width=eq.92", [3], [1, 2]],
  ["details->size->width=gt.63", [1, 3], [2]],
  ["details->>copies=eq.100", [6], []],
  ["details->media->>0=eq.oil", [1, 3], [6]],
  ["details->media->>-1=in.(paper,canvas)", [3, 6], [1]],
  ["details->size=is.null", [4, 5, 6, 7], [1, 2, 3]],
  ['tags->0=eq."water"', [1, 2, 6], [3, 4, 5]],
  ["title=plfts(english).stars nights", [], [1, 2, 3, 4, 5, 6, 7]],
  ["title=wfts(english).night -watch", [3], [1, 2, 4, 5, 6, 7]],
  ["price=eq.80.50", [1], [2, 3, 5, 6]],
];

const OF_TYPES: readonly Case[] = [
  ["flag=is.unknown", [3, 4], [1, 2]],
  ["span=cs.[2,3]", [1], [2, 3]],
  ["span=cd.[0,6)", [1, 2], [3]],
  ["span=ov.[4,6)", [1, 3], [2]],
  ["span=sl.[5,6)", [1], [2, 3]],
  ["span=sr.[0,5)", [3], [1, 2]],
  ["span=nxr.[1,5)", [1], [2, 3]],
  ["span=nxl.[2,20)", [3], [1, 2]],
  ["span=adj.[10,12)", [3], [1, 2]],
  ["spans=cs.{[7,8)}", [1, 3], [2]],
  ["days=ov.[2020-01-20,2020-01-21]", [1, 3], [2]],
  ["wholes=ov.{2,3}", [1, 3], [2]],
  ["moods=cs.{sad}", [1], [2, 3]],
  ['document=cs.{"a":1}', [1], [2, 3]],
  ["key=eq.00000000-0000-0000-0000-000000000001", [1], [2, 3]],
  ["host=eq.10.0.0.1", [1], [2, 3]],
  ["moment_zone=gt.2021-01-01T00:00:00+00:00", [2, 3], [1]],
  ["duration=lt.1 hour", [2], [1, 3]],
  ["address->>street=eq.Hill", [1], [3]],
  ["words=eq.", [3], [1, 2]],
];

const OF_DOCUMENTS: readonly Case[] = [
  ["search=fts.rat", [1], [2, 3, 5]],
  ["search=fts(english).cats & rats", [1], [2, 3, 5]],
  ["search=fts(simple).also | fun", [3, 5], [1, 2]],
  ["search=plfts(english).the fat rats", [1], [2, 3, 5]],
  ["search=phfts(english).fat cats", [1], [2, 3, 5]],
  ["search=wfts(french).impossible", [2], [1, 3, 5]],
  ['search=wfts(english)."fat cats" or fun', [1, 3], [2, 5]],
  ["body=fts(english).rat", [1], [2, 3, 5]],
  ["body=phfts(english).fun to do", [3], [1, 2, 5]],
  ["data=fts.deep", [1], [2, 3, 5]],
];

/** PostgREST's documentation, and the client library that the contract speaks of. */
const OPERATORS =
  "eq neq gt gte lt lte like ilike match imatch in is isdistinct fts plfts phfts wfts cs cd ov sl sr nxr nxl adj";
const QUANTIFIABLE = "eq gt gte lt lte like ilike match imatch";
const STATES = "null not_null true false unknown";

const fixture = useFixture(openFixture);
const service = useFixture(() =>
  serve(fixture, {
    PGRST_DB_SCHEMAS: "api",
    PGRST_DB_EXTRA_SEARCH_PATH: "tools",
    PGRST_DB_TX_END: "rollback",
  }),
);
const client = useFixture(() => openClient(service.url));

async function ids(path: string, { method = "GET", body = null as object | null } = {}): Promise<number[]> {
  const response = await client.ask(path, { method, body, headers: { Prefer: "return=representation" } });
  expect(response, response.text).toMatchObject({ status: 200 });
  return response.body.map(({ id }: { id: number }) => id);
}

/** Returns `title`, `eq`, `a b` as parts of an address; a text that a logic tree would take for its own is quoted there. */
function spell([filter]: Case) {
  const equals = filter.indexOf("=");
  const [column, operation] = [filter.slice(0, equals), filter.slice(equals + 1)];
  const dot = operation.indexOf(").") < 0 ? operation.indexOf(".") : operation.indexOf(").") + 1;
  const [operator, value] = [operation.slice(0, dot), operation.slice(dot + 1)];
  const isPlain = operator === "in" || /^\{[^{}"]*\}$|^[^,()"{}]*$/.test(value);
  const quoted = isPlain ? value : `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
  const encoded = encodeURIComponent;
  return {
    plain: `${encoded(column)}=${encoded(operation)}`,
    negated: `${encoded(column)}=not.${encoded(operation)}`,
    related: (relation: string) => `${relation}.${encoded(column)}=${encoded(operation)}`,
    tree: encoded(`${column}.${operator}.${quoted}`),
    negatedTree: encoded(`${column}.not.${operator}.${quoted}`),
  };
}

describe.each([
  { table: "works", cases: OF_WORKS },
  { table: "types", cases: OF_TYPES },
  { table: "documents", cases: OF_DOCUMENTS },
])("$table", ({ table, cases }) => {
  let all: number[];
  beforeAll(async () => {
    all = await ids(`/${table}?select=id&order=id`);
    expect(all.length).toBeGreaterThan(1);
  });

  test.each(cases)("%s", async (...filter) => {
    const [, chosen, others] = filter;
    const { plain, negated, tree, negatedTree } = spell(filter);
    const read = (query: string) => ids(`/${table}?select=id&order=id&${query}`);
    // There are rows that the filter must not choose, so that choosing everything would be noticed.
    expect(chosen.length).toBeLessThan(all.length);

    expect(await read(plain)).toEqual(chosen);
    expect(await read(negated)).toEqual(others);
    expect(await read(`or=(${tree},id.eq.-1)`)).toEqual(chosen);
    expect(await read(`and=(${negatedTree},id.neq.-1)`)).toEqual(others);
    expect(await read(`not.or=(${tree})`)).toEqual(others);
  });
});

describe("the same filters in other positions", () => {
  test.each(OF_WORKS)("on the rows of a function, embedded rows, and changed rows: %s", async (...filter) => {
    const [, chosen] = filter;
    const { plain, related } = spell(filter);
    expect(await ids(`/rpc/all_works?select=id&order=id&${plain}`)).toEqual(chosen);
    expect(await ids(`/works?select=id&order=id&${plain}`, { method: "PATCH", body: { price: 1 } })).toEqual(chosen);
    const { body } = await client.ask(`/artists?select=works(id)&${related("works")}`);
    const embedded = body.flatMap(({ works }: { works: { id: number }[] }) => works.map(({ id }) => id));
    // Nobody made the fragment.
    expect(embedded.sort()).toEqual(chosen.filter((id) => id !== 7));
    const inner = await client.ask(`/artists?select=id,works!inner(id)&${related("works")}`);
    expect(inner.body.flatMap(({ works }: { works: object[] }) => works)).toHaveLength(embedded.length);
    expect(inner.body.every(({ works }: { works: object[] }) => works.length > 0)).toBe(true);
  });
});

test("every operator is tested", () => {
  const tried = [...OF_WORKS, ...OF_TYPES, ...OF_DOCUMENTS].map(([filter]) => filter.slice(filter.indexOf("=") + 1));
  const isTried = (start: string) => tried.some((operation) => operation.startsWith(start));
  const unquantified = OPERATORS.split(" ").filter((name) => !isTried(`${name}.`) && !isTried(`${name}(english).`));
  expect(unquantified).toEqual([]);
  const quantified = QUANTIFIABLE.split(" ").flatMap((name) => [`${name}(any).`, `${name}(all).`]);
  expect(quantified.filter((start) => !isTried(start))).toEqual([]);
  expect(STATES.split(" ").filter((state) => !isTried(`is.${state}`))).toEqual([]);
});

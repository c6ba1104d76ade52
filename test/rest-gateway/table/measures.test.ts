import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../../service/wiring/service.ts";
import { useClient, useDatabase } from "../../database.ts";
import { propertyRuns } from "../../property-runs.ts";
import { serve } from "../../serve.ts";
import { CALLERS } from "../callers.ts";
import { SEARCHED_TEXTS, searchedTexts, TOWN, townRows, wordings } from "../town.ts";
import { type Claims, type Client, openClient } from "./client.ts";

const SETTINGS = {
  PGRST_DB_SCHEMAS: "town",
  PGRST_DB_AGGREGATES_ENABLED: "true",
  PGRST_DB_PLAN_ENABLED: "true",
};

let service: Service;
let client: Client;

const database = useDatabase({ sql: TOWN });
const caller = useClient(database.url);
beforeAll(async () => {
  service = await serve(database, SETTINGS);
  client = openClient(service.url);
});
afterAll(async () => {
  client?.close();
  await service?.stop();
});

const rowsOf = (statement: string, claims: Claims = { role: "anon" }) => townRows(caller, statement, claims);

const askFor = (path: string, as?: Claims) => client.ask(path.replaceAll(" ", "%20"), as ? { as } : {});

async function expectSame(path: string, statement: string, as: Claims): Promise<unknown[]> {
  const response = await askFor(path, as);
  expect({ path, status: response.status, body: response.body }).toEqual({
    path,
    status: 200,
    body: await rowsOf(statement, as),
  });
  return response.body;
}

/** A part of a request, and of the statement. */
type Part = { readonly url: string; readonly sql: string };

const points = fc.tuple(fc.nat(100), fc.nat(100));
const measures: fc.Arbitrary<Part> = fc
  .oneof(
    points.map(([x, y]) => ({ url: `spot.distance((${x},${y}))`, sql: `spot <-> point(${x}, ${y})` })),
    fc.tuple(fc.constantFrom("l2", "inner"), points).map(([name, [x, y]]) => ({
      url: `embedding.${name}({${x},${y}})`,
      sql: `embedding ${name === "l2" ? "<->" : "<#>"} array[${x}, ${y}]::float8[]`,
    })),
    fc
      .tuple(fc.constantFrom("similarity", "distance"), fc.constantFrom("harbor", "mil", 'a "b" (c', ""))
      .map(([name, text]) => ({
        url: `title.${name}(%22${text.replaceAll('"', "\\%22")}%22)`,
        sql: name === "similarity" ? `similarity(title, '${text}')` : `title <-> '${text}'`,
      })),
    fc.constantFrom("mill", "harbour").map((text) => ({
      url: `facts->>kind.similarity(${text})`,
      sql: `similarity(facts->>'kind', '${text}')`,
    })),
    wordings.map(({ url, sql, language }) => ({
      url: `story.rank(${url})`,
      sql: `ts_rank(to_tsvector(${language}story), ${sql})`,
    })),
  )
  .map(({ url, sql }) => ({ url, sql: `(${sql})` }));

const COMPARISONS = { gt: ">", lte: "<=" } as const;
const filters = fc
  .tuple(measures, fc.boolean(), fc.constantFrom("gt", "lte"), fc.constantFrom(0, 0.1, 0.5, 5, 40))
  .map(([{ url, sql }, not, name, n]) => ({
    name: url.slice(0, url.indexOf(".")),
    value: `${url.slice(url.indexOf(".") + 1)}.${not ? "not." : ""}${name}.${n}`,
    sql: `${not ? "not " : ""}(${sql} ${COMPARISONS[name as "gt"]} ${n})`,
  }));
const conditions = fc.array(filters, { maxLength: 2 }).chain((list) =>
  fc.boolean().map((isTree): Part => {
    const all = list.map(({ sql }) => sql);
    return isTree && all.length > 0
      ? { url: `&or=(${list.map(({ name, value }) => `${name}.${value}`).join()})`, sql: `(${all.join(" or ")})` }
      : {
          url: list.map(({ name, value }) => `&${name}=${value}`).join(""),
          sql: ["true", ...all].join(" and "),
        };
  }),
);
const DIRECTIONS = { "": "", ".asc": "asc", ".desc": "desc", ".desc.nullslast": "desc nulls last" } as const;
const directions = fc.constantFrom(...(Object.keys(DIRECTIONS) as (keyof typeof DIRECTIONS)[]));

describe("random reads", () => {
  test("filter, order and show by distances, similarities and ranks as statements do, also by pages", async () => {
    const outcomes = { none: 0, some: 0 };
    const requests = fc.record({
      where: conditions,
      order: fc.tuple(measures, directions),
      shown: fc.option(measures),
      limit: fc.integer({ min: 1, max: 20 }),
      as: fc.constantFrom(...CALLERS),
    });
    const property = fc.asyncProperty(requests, async ({ where, order: [by, direction], shown, limit, as }) => {
      const order = `${by.url}${direction},id`;
      const path = `/places?select=id${shown ? `,shown:${shown.url}` : ""}${where.url}&order=${order}`;
      const statement = `select id${shown ? `, ${shown.sql} as shown` : ""} from places where ${where.sql} order by ${by.sql} ${DIRECTIONS[direction]}, id`;
      const rows = await expectSame(`${path}&limit=${limit}`, `${statement} limit ${limit}`, as);
      outcomes[rows.length === 0 ? "none" : "some"] += 1;
      const pages: unknown[] = [];
      let next: string | undefined = `${path}&limit=15&cursor=`;
      while (next !== undefined) {
        const page = await askFor(next, as);
        expect({ next, status: page.status, body: page.body }).toMatchObject({ status: 200 });
        pages.push(...page.body);
        next = /<\/rest\/v1([^>]*)>; rel="next"/.exec(String(page.headers.link))?.[1];
      }
      expect({ path, pages }).toEqual({ path, pages: await rowsOf(statement, as) });
    });
    await fc.assert(property, { numRuns: propertyRuns(1_000) });
    expect(Math.min(...Object.values(outcomes)), JSON.stringify(outcomes)).toBeGreaterThan(0);
  });

  test("search several columns and relations with rank and highlight as statements do", async () => {
    const outcomes = { none: 0, some: 0 };
    const requests = fc.record({
      fields: fc.uniqueArray(fc.constantFrom(...Object.keys(SEARCHED_TEXTS)), { minLength: 2 }),
      words: wordings,
      where: conditions,
      as: fc.constantFrom(...CALLERS),
    });
    const property = fc.asyncProperty(requests, async ({ fields, words, where, as }) => {
      const { document, text } = searchedTexts(fields, words);
      const path = `/places?search=(${fields.join()}).${words.url}${where.url}&select=id,r:search.rank(),h:search.highlight(),one:title.highlight()&order=r.desc,id`;
      const statement = `
        select id, ts_rank(${document}, ${words.sql}) as r, ts_headline(${words.language}${text}, ${words.sql}) as h, ts_headline(${words.language}title, ${words.sql}) as one
        from places p where ${document} @@ ${words.sql} and ${where.sql} order by r desc, id`;
      outcomes[(await expectSame(path, statement, as)).length === 0 ? "none" : "some"] += 1;
    });
    await fc.assert(property, { numRuns: propertyRuns(1_000) });
    expect(Math.min(...Object.values(outcomes)), JSON.stringify(outcomes)).toBeGreaterThan(0);
  });
});

describe("an index", () => {
  const planOf = async (path: string) => {
    const headers = { Accept: "application/vnd.pgrst.plan+text" };
    const { status, text } = await client.ask(path.replaceAll(" ", "%20"), { headers });
    expect({ path, status, text }).toMatchObject({ status: 200 });
    return text;
  };

  test.each([
    ["/stars?select=id&order=spot.distance((5,5))&limit=3", "stars_spot_idx", "Order By: "],
    ["/stars?select=id&order=spot.distance((5,5)),id&limit=3&cursor=", "stars_spot_idx", "Order By: "],
    ["/stars?select=id,d:name.distance(star 77)&order=d&limit=3", "stars_name_idx", "Order By: "],
    ["/stars?select=id&search=(name).wfts(english).2000", "stars_to_tsvector_idx", "Index Cond: "],
  ])("is used by %s", async (path, index, by) => {
    const plan = await planOf(path);
    expect(plan).toContain(index);
    expect(plan).toContain(by);
  });

  test("is not used by the similarity, whose order it does not have", async () => {
    expect(await planOf("/stars?select=id&order=name.similarity(star 77).desc&limit=3")).toContain("Seq Scan");
  });
});

describe("a related row", () => {
  test("orders and filters by its measures", async () => {
    expect(
      (await askFor("/places?select=id,owners(name)&order=owners(name.similarity(miller)).desc.nullslast,id")).body,
    ).toEqual(
      await rowsOf(
        `select p.id, (select json_build_object('name', o.name) from owners o where o.id = p.owner_id) as owners
         from places p order by (select similarity(o.name, 'miller') from owners o where o.id = p.owner_id) desc nulls last, id`,
      ),
    );
    const path =
      "/places?select=id&or=(owners.name.similarity(miller).gt.0.3,notes.any(text.rank(wfts.boats).gt.0))&order=id";
    const rows = await rowsOf(
      `select id from places p where exists (select from owners o where o.id = p.owner_id and similarity(o.name, 'miller') > 0.3)
         or exists (select from notes n where n.place_id = p.id and ts_rank(to_tsvector(n.text), websearch_to_tsquery('boats')) > 0) order by id`,
    );
    expect((await askFor(path)).body).toEqual(rows);
    expect(rows.length).toBeGreaterThan(0);
  });
});

describe("a search", () => {
  const [path, statement] = [
    "/places?search=(title,story).wfts.cats&select=id,score:search.rank()&order=score.desc,id",
    `select id, ts_rank(d, q) as score from (select id, websearch_to_tsquery('cats') as q,
       setweight(to_tsvector(coalesce(title, '')), 'A') || setweight(to_tsvector(coalesce(story, '')), 'B') as d from places) p
     where d @@ q order by score desc, id`,
  ];

  test("has pages", async () => {
    const rows = await rowsOf(statement);
    expect(rows.length).toBeGreaterThan(3);
    const first = await askFor(`${path}&limit=3&cursor=`);
    expect(first.body).toEqual(rows.slice(0, 3));
    const next = /<\/rest\/v1([^>]*)>; rel="next"/.exec(String(first.headers.link))![1]!;
    expect((await askFor(next)).body).toEqual(rows.slice(3, 6));
  });
});

describe("cursors of requests that differ in the values of their order only", () => {
  const pageOf = async (path: string) => {
    const { status, body, headers } = await askFor(path);
    expect({ path, status, body }).toMatchObject({ status: 200 });
    return { body, next: /<\/rest\/v1([^>]*)>; rel="next"/.exec(String(headers.link))![1]! };
  };
  const cursorOf = (path: string) => /&cursor=[^&]*/.exec(path)![0];

  test.each([
    ["a distance", (n: number) => `/places?select=id&order=spot.distance((${n * 5},${n * 5})),id`],
    ["a name", (n: number) => `/places?select=id,d:spot.distance((${n * 7},${n * 7}))&order=d,id`],
    [
      "the words of the search",
      (n: number) => `/places?select=id&search=(title,story).wfts.${["cats", "boats"][n]}&order=search.rank().desc,id`,
    ],
  ])("belong to the values: %s", async (_, pathOf) => {
    const [one, other] = [pathOf(0), pathOf(1)];
    const rowsOf = async (path: string) => (await askFor(path)).body;
    const firsts = [await pageOf(`${one}&limit=3&cursor=`), await pageOf(`${other}&limit=3&cursor=`)] as const;
    const [ofOne, ofOther] = [await rowsOf(one), await rowsOf(other)];
    expect(firsts.map(({ body }) => body)).toEqual([ofOne.slice(0, 3), ofOther.slice(0, 3)]);
    expect((await pageOf(firsts[1].next)).body).toEqual(ofOther.slice(3, 6));
    expect((await pageOf(firsts[0].next)).body).toEqual(ofOne.slice(3, 6));
    for (const path of [`${one}&limit=3${cursorOf(firsts[1].next)}`, `${other}&limit=3${cursorOf(firsts[0].next)}`])
      expect(await askFor(path)).toMatchObject({ status: 400, body: { code: "PGRST191" } });
  });
});

describe("functions and operators of strangers", () => {
  test("measure nothing", async () => {
    const measured = async () => (await askFor("/places?select=title.similarity(harbour)&id=eq.5")).body;
    const before = await measured();
    const owner = new pg.Client({ connectionString: database.ownerUrl });
    await owner.connect();
    await owner.query(`
      create schema aaa;
      create function aaa.similarity(text, text) returns float4 language sql return 7;
      alter function aaa.similarity owner to authenticated;
      grant usage on schema aaa to anon`);
    await owner.end();
    await service.stop();
    service = await serve(database, SETTINGS);
    client.close();
    client = openClient(service.url);
    expect(before).toEqual([{ similarity: expect.any(Number) }]);
    expect(await measured()).toEqual(before);
  });
});

describe("one order at two places", () => {
  test("has two values", async () => {
    const orders = (top: string, below: string) =>
      `/owners?select=id,places(id)&order=name.similarity(${top}),id&places.order=title.similarity(${below}),id`;
    await askFor(orders("mill", "mill"));
    const rows = await rowsOf(
      `select id, (select coalesce(json_agg(json_build_object('id', p.id) order by similarity(title, 'harbour'), p.id), '[]') from places p where p.owner_id = o.id) as places
       from owners o order by similarity(name, 'mill'), id`,
    );
    expect((await askFor(orders("mill", "harbour"))).body).toEqual(rows);
  });
});

describe("what is wrong", () => {
  const refusalOf = async (path: string) => {
    const { status, body } = await askFor(path);
    return { status, code: body.code, message: body.message, details: body.details };
  };

  test.each([
    ["/places?order=id,story.cosine((0,0))", "PGRST184", "'story' has no cosine (column 10)"],
    ["/places?order=facts.distance(1)", "PGRST184", "'facts' has no distance (column 7)"],
    ["/places?order=search.rank().desc", "PGRST183", "There is no search for 'search.rank()' (column 8)"],
    [
      "/places?search=(words).wfts.cats&select=words.highlight()",
      "PGRST183",
      "'words' has no text to highlight (column 7)",
    ],
    ["/owners?search=(places.words).wfts.cats", "PGRST183", "'places.words' cannot be searched"],
    [
      "/owners?search=(places.owners.places.owners.name).wfts.cats",
      "PGRST183",
      "'places.owners.places.owners.name' cannot be searched",
    ],
    [
      "/places?order=spot.distance((0,0)",
      "PGRST100",
      '"failed to parse order (spot.distance((0,0))" (line 1, column 20)',
    ],
    ["/places?search=(title).cats", "PGRST100", '"failed to parse search ((title).cats)" (line 1, column 9)'],
    ["/places?order=unknown.distance((0,0))", "42703", "column places.unknown does not exist"],
    ["/places?order=spot.distance(far)", "22P02", 'invalid input syntax for type point: "far"'],
  ])("is named: %s", async (path, code, message) => {
    expect(await refusalOf(path)).toMatchObject({ status: 400, code, message });
  });

  test("columns that the caller may not read are not searched", async () => {
    expect(await refusalOf("/places?select=id&search=(secret,title).wfts.boat")).toMatchObject({
      status: 401,
      code: "42501",
    });
    expect(await refusalOf("/places?select=id&order=secret.similarity(boat)")).toMatchObject({
      status: 401,
      code: "42501",
    });
  });

  test("the key of a PUT is a column, not its distance", async () => {
    const put = { as: { role: "service_role" }, method: "PUT", body: { id: 1, spot: "(0,0)", name: "one" } } as const;
    const { status, body } = await client.ask("/stars?id=distance(5).eq.1", put);
    expect({ status, code: body.code }).toEqual({ status: 405, code: "PGRST105" });
  });

  test("a column that is called search is filtered as ever", async () => {
    expect(await refusalOf("/places?search=eq.x")).toMatchObject({ code: "42703" });
  });
});

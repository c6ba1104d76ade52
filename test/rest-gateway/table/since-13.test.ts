import { randomUUID } from "node:crypto";
import jwt from "jsonwebtoken";
import pg from "pg";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { connect } from "../../db/callers.ts";
import { useFixture } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { openClient, type TestRequest, tokenOf } from "./client.ts";
import { openFixture } from "./differential/fixture.ts";

// The tests check answers of PostgREST since release 13, which the 12.0.2 that ours is compared with lacks.

const fixture = useFixture(openFixture);
const owner = useFixture(() => connect(fixture.ownerUrl));
const service = useFixture(() =>
  serve(fixture, {
    PGRST_DB_SCHEMAS: "api,other",
    PGRST_DB_EXTRA_SEARCH_PATH: "public,tools",
    PGRST_DB_AGGREGATES_ENABLED: "true",
    PGRST_DB_PLAN_ENABLED: "true",
    PGRST_DB_TX_END: "rollback-allow-override",
  }),
);
const client = useFixture(() => openClient(service.url));

type Example = readonly [path: string, body: unknown, asked?: TestRequest, headers?: Readonly<Record<string, unknown>>];
type Refused = readonly [path: string, error: object, asked?: TestRequest];

function examples(all: readonly Example[], status = 200): void {
  for (const [path, body, request = {}, headers = {}] of all) {
    test(path, async () => {
      const response = await client.ask(path, request);
      expect(response, response.text).toMatchObject({ status, headers });
      expect(response.body).toEqual(body);
    });
  }
}

function refusals(all: readonly Refused[], status = 400): void {
  for (const [path, error, request] of all) {
    test(path, async () => {
      expect(await client.ask(path, request)).toMatchObject({ status, body: error });
    });
  }
}

/** The library would refuse to sign them. */
const unchecked = (claims: object) => jwt.sign(JSON.stringify(claims), SECRET);

const rowsBack = { Prefer: "return=representation" };

describe("13: errors of a token", () => {
  const role = "authenticated";
  const past = 1446678149;
  const future = 9999999999;
  const unsigned = `${tokenOf({ role }).split(".").slice(0, 2).join(".")}.AAAA`;
  const invalidBySeconds = expect.stringMatching(/^Invalid by \d+ seconds$/);
  const byNoKey = "None of the keys was able to decode the JWT";
  const unsecured = "JWT is unsecured but expected 'alg' was not 'none'";
  const withHead = (head: object, payload = "{}") =>
    [...[JSON.stringify(head), payload].map((part) => Buffer.from(part).toString("base64url")), "AAAA"].join(".");

  test.each([
    ["PGRST301", "Empty JWT is sent in Authorization header", "", null],
    ["PGRST301", "Expected 3 parts in JWT; got 1", "nonsense", null],
    ["PGRST301", "Expected 3 parts in JWT; got 2", "a.b", null],
    ["PGRST301", "No suitable key or wrong key type", unsigned, byNoKey],
    [
      "PGRST301",
      "No suitable key or wrong key type",
      withHead({ alg: "HS512" }),
      "No suitable key was found to decode the JWT",
    ],
    ["PGRST301", "No suitable key or wrong key type", withHead({ typ: "JWT", alg: "HS256" }, "no JSON"), byNoKey],
    ["PGRST301", "Wrong or unsupported encoding algorithm", withHead({ alg: "none" }), unsecured],
    ["PGRST301", "JWT cryptographic operation failed", "quifquirndsj.fonvoienqhhdj.iuqvnvhojah", null],
    ["PGRST303", "Parsing claims failed", jwt.sign("no claims", SECRET), null],
    ["PGRST303", "JWT expired", tokenOf({ role, exp: past }), invalidBySeconds],
    ["PGRST303", "JWT not yet valid", tokenOf({ role, nbf: future }), invalidBySeconds],
    ["PGRST303", "JWT issued at future", unchecked({ role, iat: future }), invalidBySeconds],
    ["PGRST303", "The JWT 'exp' claim must be a number", unchecked({ role, exp: "soon" }), null],
    ["PGRST303", "The JWT 'nbf' claim must be a number", unchecked({ role, nbf: "soon" }), null],
    ["PGRST303", "The JWT 'aud' claim must be a string or an array of strings", unchecked({ role, aud: [7] }), null],
  ])("%s: %s", async (code, message, token, details) => {
    const response = await client.ask("/works", { headers: { Authorization: `Bearer ${token}` } });
    expect(response).toMatchObject({ status: 401, body: { code, message, details, hint: null } });
    const challenge = `Bearer error="invalid_token", error_description="${message}"`;
    expect(response.headers["www-authenticate"]).toBe(challenge);
  });

  test("the details say by how many seconds the times of a token are off", async () => {
    const exp = Math.floor(Date.now() / 1000) - 3600;
    const { body } = await client.ask("/works", { headers: { Authorization: `Bearer ${tokenOf({ role, exp })}` } });
    const seconds = Number(/\d+/.exec((body as { details: string }).details)![0]);
    expect(Math.abs(Date.now() / 1000 - exp - seconds)).toBeLessThan(60);
  });
});

describe("16: a relation with an alias", () => {
  const warningOf = async (path: string) => (await client.ask(path)).headers.warning;
  const words =
    "Embedded resource was referenced by relation name even though it has an alias. This is deprecated and will stop " +
    "working in a future release. Update";

  test("may be referred to by its name, with a warning", async () => {
    const response = await client.ask("/works?select=id,maker:artists(name)&artists.id=eq.1&limit=1");
    expect(response.status).toBe(200);
    expect(response.headers.warning).toBe(
      `299 PostgREST "${words} \`artists\` to \`maker\` in query string filters, orders or limits."`,
    );
    const twice = await warningOf("/artists?select=name,a:works(id)&works.order=id&works.limit=1");
    expect(twice).toContain("`works` to `a` in");
  });

  test("is referred to by its alias without a warning", async () => {
    expect(await warningOf("/works?select=id,maker:artists(name)&maker.id=eq.1&limit=1")).toBeUndefined();
    expect(await warningOf("/works?select=id,artists(name)&artists.id=eq.1&limit=1")).toBeUndefined();
  });

  test("is named in a header in any characters", async () => {
    const warning = await warningOf(
      `/works?select=id,${encodeURIComponent('"M"')}:artists(name)&artists.id=eq.1&limit=1`,
    );
    expect(warning).toContain("`artists` to `");
    const beyond = await warningOf(`/works?select=id,${encodeURIComponent("Künstler")}:artists(name)&artists.id=eq.1`);
    expect(Buffer.from(beyond!, "latin1").toString()).toContain("`artists` to `Künstler`");
  });
});

describe("16: errors with fewer details", () => {
  test("have only a code and a message, and the same status and headers", async () => {
    const minimal = await serve(fixture, { PGRST_DB_SCHEMAS: "api,other", PGRST_CLIENT_ERROR_VERBOSITY: "minimal" });
    onTestFinished(() => minimal.stop());
    const reader = openClient(minimal.url);
    onTestFinished(() => reader.close());
    for (const path of [
      "/workz",
      "/works?select=nothing",
      "/works?id=eq.x",
      "/rpc/ad?a=1",
      "/works?select=id,nowhere(*)",
    ]) {
      const [verbose, short] = [await client.ask(path), await reader.ask(path)];
      expect(short.status).toBe(verbose.status);
      expect(short.headers["proxy-status"]).toBe(verbose.headers["proxy-status"]);
      const { code, message } = verbose.body as { code: string; message: string };
      expect(short.body).toEqual({ code, message });
    }
  });
});

describe("16: Vary is sent", () => {
  test("unless SQL sets it", async () => {
    expect((await client.ask("/works?select=id")).headers.vary).toBe(
      "Accept, Prefer, Range, Authorization, apikey, X-API-Key, Cookie",
    );
    const body = { headers: '[{"vary": "X-Mood"}]' };
    expect((await client.ask("/rpc/told", { method: "POST", body })).headers.vary).toBe(
      "X-Mood, Authorization, apikey, X-API-Key, Cookie",
    );
  });
});

describe("13: relations to many are spread as lists", () => {
  const titles = [
    { name: "Claude", title: ["Water Lilies", "Impression, Sunrise"] },
    { name: "Vincent", title: ["The Starry Night", "Sunflowers"] },
  ];
  examples([
    ["/artists?select=name,...works(title)&works.order=id&id=lte.2&order=id", titles],
    ["/artists?select=name,...shown_works(title)&id=eq.2", [{ name: "Vincent", title: ["The Starry Night"] }]],
    [
      "/artists?select=name,...works(titles:title,years:year)&works.order=year&id=eq.1",
      [{ name: "Claude", titles: ["Impression, Sunrise", "Water Lilies"], years: [1872, 1906] }],
    ],
    [
      "/artists?select=name,...works(title)&works.order=price.desc.nullslast&works.limit=1&id=lte.2&order=id",
      [
        { name: "Claude", title: ["Impression, Sunrise"] },
        { name: "Vincent", title: ["The Starry Night"] },
      ],
    ],
    ["/artists?select=name,...works(title)&works=is.null", [{ name: "Anonymous", title: [] }]],
    [
      "/artists?select=name,...works!inner(title)&works.title=like.*Night*&order=id",
      [
        { name: "Vincent", title: ["The Starry Night"] },
        { name: "Rembrandt", title: ["The Night Watch"] },
      ],
    ],
    [
      "/works?select=title,...exhibitions(shows:title)&exhibitions.order=title&id=in.(1,4)&order=id",
      [
        { title: "Water Lilies", shows: ["Everything", "Water"] },
        { title: "Sunflowers", shows: [] },
      ],
    ],
    [
      "/people?select=name,...visits(*)&id=eq.1&visits.order=on_day",
      [{ name: "Ada", on_day: ["2024-03-01", "2025-01-02"], person_id: [1, 1], rating: [5, 4] }],
    ],
    [
      "/artists?select=name,...works(title,...labels(label:body),placements(room_floor))&works.order=id&id=eq.1",
      [
        {
          name: "Claude",
          title: ["Water Lilies", "Impression, Sunrise"],
          label: ["Lilies in a pond", null],
          placements: [{ room_floor: 0 }, null],
        },
      ],
    ],
    [
      "/artists?select=name,...works(title,...exhibitions(shows:title))&works.order=id&works.exhibitions.order=id&id=eq.1",
      [{ name: "Claude", title: ["Water Lilies", "Impression, Sunrise"], shows: [["Water", "Everything"], ["Water"]] }],
    ],
    [
      "/countries?select=name,artists(name,...works(title))&artists.works.order=id&code=eq.FR",
      [{ name: "France", artists: [titles[0]] }],
    ],
    [
      "/rpc/works_by?artist=2&select=title,...exhibitions(shows:title)&order=id&limit=1&exhibitions.order=id",
      [{ title: "The Starry Night", shows: ["Night", "Everything"] }],
    ],
    [
      "/artists?id=eq.2&select=name,...works(title)&works.order=id",
      [titles[1]],
      { method: "PATCH", body: { born: 1 }, headers: rowsBack },
    ],
  ]);
  refusals([
    [
      "/artists?select=name,...works(price.sum())",
      { code: "PGRST127", details: "Aggregates are not implemented for one-to-many or many-to-many spreads." },
    ],
  ]);
});

describe("13: aggregates within spreads are grouped by the outer rows", () => {
  examples([
    [
      "/works?select=price.sum(),...artists(name)&artists.name=not.is.null&artist_id=lte.2&order=artists(name)",
      [
        { sum: 179.5, name: "Claude" },
        { sum: 100, name: "Vincent" },
      ],
    ],
    ["/works?select=...artists(count())&artist_id=eq.1", [{ count: 2 }]],
    ["/works?select=...artists(all:count(),country)&artist_id=eq.2", [{ all: 2, country: "NL" }]],
    ["/works?select=...artists(...countries(name),count())&artist_id=lte.1", [{ name: "France", count: 2 }]],
    [
      "/works?select=count(),...artists(country,...countries(land:name))&artist_id=not.is.null&order=count.desc,artists(country)&limit=2",
      [
        { count: 3, country: "NL", land: "Netherlands" },
        { count: 2, country: "FR", land: "France" },
      ],
    ],
    [
      "/artists?select=name,works(price.sum(),count())&id=eq.1",
      [{ name: "Claude", works: [{ sum: 179.5, count: 2 }] }],
    ],
    [
      "/artists?select=country,count(),...works(title)&country=eq.FR&works.order=id",
      [{ country: "FR", count: 1, title: ["Water Lilies", "Impression, Sunrise"] }],
    ],
  ]);
});

describe("13: resources that exist", () => {
  examples([
    ["/works?select=id&year=is.not_null&year=lt.1800", [{ id: 5 }]],
    ["/works?select=id&year=not.is.not_null", [{ id: 7 }]],
    ["/works?select=id&or=(year.is.not_null,id.eq.7)&id=gte.6&order=id", [{ id: 6 }, { id: 7 }]],
    ["/works?select=id,artists(name)&artists=is.not_null&id=gte.6", [{ id: 6, artists: { name: "Hokusai" } }]],
    ["/documents?select=id&body=fts(english).rats", [{ id: 1 }]],
    ["/documents?select=id&data=plfts(english).deep", [{ id: 1 }]],
    ["/documents?select=id&title=wfts.fat or fun&order=id", [{ id: 1 }, { id: 3 }]],
  ]);
});

describe("13: resources that do not exist", () => {
  refusals(
    [
      [
        "/nothing_like_it",
        { code: "PGRST205", message: "Could not find the table 'api.nothing_like_it' in the schema cache", hint: null },
      ],
      ["/artist", { code: "PGRST205", hint: "Perhaps you meant the table 'api.artists'" }],
      ["/works/1/title", { code: "PGRST125", message: "Invalid path specified in request URL" }],
      ["/rpc/add/1", { code: "PGRST125" }],
    ],
    404,
  );
  refusals(
    [
      ["/visits_2024", { code: "PGRST205" }],
      ["/works_id_seq", { code: "PGRST205" }],
    ],
    404,
  );
  test.each(["POST", "PATCH", "PUT", "DELETE"])("%s is not allowed at the root", async (method) => {
    const response = await client.ask("/", { method, body: method === "DELETE" ? null : {} });
    expect(response).toMatchObject({ status: 405, headers: { allow: "OPTIONS,GET,HEAD" }, body: { code: "PGRST117" } });
  });
});

describe("13: written rows are returned in the requested order", () => {
  examples([
    [
      "/items?id=lte.3&select=id&order=id.desc",
      [{ id: 3 }, { id: 2 }, { id: 1 }],
      { method: "PATCH", body: { note: "x" }, headers: rowsBack },
    ],
    [
      "/exhibits?exhibition_id=eq.4&select=work_id&order=place.desc",
      [{ work_id: 6 }, { work_id: 3 }, { work_id: 1 }],
      { method: "DELETE", headers: rowsBack },
    ],
    [
      "/items?id=lte.3&select=id&order=id&limit=1",
      [{ id: 1 }, { id: 2 }, { id: 3 }],
      { method: "PATCH", body: { note: "x" }, headers: rowsBack },
      { "content-range": "0-2/*" },
    ],
  ]);
  examples(
    [
      [
        "/items?select=name&order=name.desc",
        [{ name: "b" }, { name: "a" }],
        { method: "POST", body: [{ name: "a" }, { name: "b" }], headers: rowsBack },
      ],
    ],
    201,
  );
});

describe("12.1: a merge without inserts is 200", () => {
  const merge = (body: object) => ({
    method: "POST",
    body,
    headers: { Prefer: "return=representation, resolution=merge-duplicates" },
  });
  examples([
    ["/keyed?select=code", [{ code: "one" }], merge({ code: "one", name: "Uno" })],
    ["/keyed", [], merge([])],
    ["/keyless", [], merge([])],
  ]);
  examples([["/keyless?select=a", [{ a: 9 }], merge({ a: 9 })]], 201);
});

describe("HEAD", () => {
  test.each(["/rpc/stable_write", "/rpc/null_text", "/rpc/abyss", "/rpc/settings", "/rpc/word_table?up_to=3"])(
    "calls the function as GET does: %s",
    async (path) => {
      const [head, get] = [await client.ask(path, { method: "HEAD" }), await client.ask(path)];
      expect(head).toMatchObject({ status: get.status, text: "" });
      expect(head.headers["content-range"]).toBe(get.headers["content-range"]);
    },
  );

  test("finds an error too", async () => {
    expect(await client.ask("/rpc/stable_write", { method: "HEAD" })).toMatchObject({ status: 400 });
  });
});

describe("Content-Location", () => {
  test("has the parameters in their order, and is omitted if the head would be too long for proxies and clients", async () => {
    const read = (ids: readonly number[]) => client.ask(`/works?select=id&id=in.(${ids})`);
    const short = await read([1, 2]);
    expect(short.headers["content-location"]).toBe("/works?id=in.%281%2C2%29&select=id");
    const long = await read(Array.from({ length: 2_900 }, (_, index) => index));
    expect(long).toMatchObject({ status: 200 });
    expect(long.body.length).toBeGreaterThan(1);
    expect(long.headers["content-location"]).toBeUndefined();
  });
});

describe("13: a function's rows are filtered by columns that are not selected", () => {
  examples([
    ["/rpc/works_by?artist=1&select=title&year=gt.1900", [{ title: "Water Lilies" }]],
    ["/rpc/word_table?up_to=10&select=word&n=gt.8&order=n.desc", [{ word: "zero" }, { word: "four" }]],
    [
      "/rpc/all_works?select=title&or=(year.lt.1700,id.eq.7)&order=id",
      [{ title: "The Night Watch" }, { title: "Fragment" }],
    ],
  ]);
});

describe("13: max-affected", () => {
  const strict = (most: number | string) => ({ Prefer: `handling=strict, max-affected=${most}` });
  const lenient = { Prefer: "handling=lenient, max-affected=0" };
  const notes = { method: "PATCH", body: { note: "x" } } as const;
  examples(
    [
      [
        "/items?id=lte.3",
        "",
        { ...notes, headers: strict(3) },
        { "preference-applied": "handling=strict, max-affected=3" },
      ],
      ["/items?id=lte.2", "", { ...notes, headers: lenient }, { "preference-applied": "handling=lenient" }],
      ["/exhibits?work_id=eq.99", "", { method: "DELETE", headers: strict(0) }],
      ["/items?id=lte.1", "", { ...notes, headers: strict("many") }, { "preference-applied": "handling=strict" }],
    ],
    204,
  );
  examples([
    [
      "/works?select=id&id=lte.2&order=id",
      [{ id: 1 }, { id: 2 }],
      { headers: strict(1) },
      { "preference-applied": "handling=strict" },
    ],
    ["/rpc/series", [1, 2], { method: "POST", body: { up_to: 2 }, headers: strict(2) }],
  ]);
  refusals([
    ["/items?id=lte.3", { code: "PGRST124", details: "The query affects 3 rows" }, { ...notes, headers: strict(2) }],
    [
      "/exhibits?work_id=eq.1",
      { code: "PGRST124", details: "The query affects 2 rows" },
      { method: "DELETE", headers: strict(1) },
    ],
    ["/items?id=eq.1", { code: "PGRST124" }, { ...notes, headers: strict(-1) }],
    ["/rpc/write_items", { code: "PGRST124" }, { method: "POST", body: { names: ["a", "b"] }, headers: strict(1) }],
    [
      "/rpc/series",
      { code: "PGRST124", details: "The query affects 3 rows" },
      { method: "POST", body: { up_to: 3 }, headers: strict(2) },
    ],
    ["/rpc/write_item", { code: "PGRST128" }, { method: "POST", body: { name: "a" }, headers: strict(1) }],
    ["/rpc/nap", { code: "PGRST128" }, { method: "POST", body: {}, headers: strict(1) }],
  ]);

  test("an excess of changes is rolled back", async () => {
    const commit = { Prefer: "tx=commit, handling=strict, max-affected=1" };
    expect(await client.ask("/items?id=lte.3", { ...notes, headers: commit })).toMatchObject({ status: 400 });
    expect((await owner.query("select count(*) from api.items where note = 'x'")).rows).toEqual([{ count: "0" }]);
  });
});

describe("13: JSON without nulls", () => {
  const array = { Accept: "application/vnd.pgrst.array+json;nulls=stripped" };
  const object = { Accept: "application/vnd.pgrst.object+json;nulls=stripped" };
  const types = {
    array: { "content-type": "application/vnd.pgrst.array+json;nulls=stripped; charset=utf-8" },
    object: { "content-type": "application/vnd.pgrst.object+json;nulls=stripped; charset=utf-8" },
  };
  examples([
    [
      "/works?select=id,year,mood&id=gte.6&order=id",
      [{ id: 6, year: 1831, mood: "sad" }, { id: 7 }],
      { headers: array },
      types.array,
    ],
    ["/works?select=id,year,artists(name,born)&id=eq.7", { id: 7 }, { headers: object }, types.object],
    ["/rpc/series?up_to=1", [1], { headers: array }, types.array],
    ["/rpc/one_work?id=7&select=id,year", { id: 7 }, { headers: object }, types.object],
    [
      "/items?id=eq.2&select=id,note",
      [{ id: 2 }],
      { method: "PATCH", body: { note: null }, headers: { ...array, ...rowsBack } },
    ],
  ]);
});

describe("14.4: a logic tree filters the rows to write, not the returned ones", () => {
  examples([
    [
      "/items?or=(id.eq.1,note.eq.soft)&select=id,note",
      [{ id: 1, note: "changed" }],
      { method: "PATCH", body: { note: "changed" }, headers: rowsBack },
    ],
    [
      "/items?and=(id.lte.2,note.not.is.null)&select=id,note",
      [{ id: 1, note: null }],
      { method: "PATCH", body: { note: null }, headers: rowsBack },
    ],
  ]);
});

describe("14.6: hints reveal no names", () => {
  beforeAll(() =>
    owner.query(
      "create table api.secret_plans (id int); create function api.secret_plan() returns int language sql return 1; revoke execute on function api.secret_plan() from public; notify pgrst",
    ),
  );

  test("to roles without access to them", async () => {
    const server = { as: { role: "service_role" } };
    await owner.query(
      "grant select on api.secret_plans to service_role; grant execute on function api.secret_plan() to service_role; notify pgrst",
    );
    await until(async () => (await client.ask("/secret_planz", server)).body.hint !== null);
    expect((await client.ask("/secret_planz", server)).body.hint).toBe(
      "Perhaps you meant the table 'api.secret_plans'",
    );
    expect((await client.ask("/rpc/secret_plam", server)).body.hint).toMatch(/api\.secret_plan$/);
    expect(await client.ask("/secret_planz")).toMatchObject({ status: 404, body: { code: "PGRST205", hint: null } });
    expect((await client.ask("/rpc/secret_plam")).body.hint).toBeNull();
  });
});

describe("14: roles", () => {
  test("may have names with capitals and spaces, and settings that a caller may not change", async () => {
    const role = `Web User ${randomUUID().slice(0, 8)}`;
    const quoted = pg.escapeIdentifier(role);
    await owner.query(
      `create role ${quoted}; grant ${quoted} to authenticator; grant usage on schema api to ${quoted}`,
    );
    onTestFinished(async () => {
      await owner.query(`drop owned by ${quoted}; drop role ${quoted}`);
    });
    await owner.query(`grant select on api.works to ${quoted}`);
    expect(await client.ask("/works?select=id&limit=1", { as: { role } })).toMatchObject({ status: 200 });
    const settings = [
      "work_mem = '8MB'",
      "log_min_messages = 'debug1'",
      "search_path = nothing",
      "intervalstyle = iso_8601",
      "default_text_search_config = german",
      "app.colour = 'blue'",
    ];
    for (const setting of settings) await owner.query(`alter role ${quoted} set ${setting}`);
    await owner.query("notify pgrst, 'reload config'");
    const setting = async (name: string) => (await client.ask(`/rpc/setting?name=${name}`, { as: { role } })).body;
    await until(async () => (await setting("work_mem")) === "8MB");
    expect(await setting("app.colour")).toBe("blue");
    expect(await setting("default_text_search_config")).toBe("pg_catalog.german");
    expect(await setting("intervalstyle")).toBe("postgres");
    const path = (await setting("search_path")).split(", ").map((name: string) => name.replace(/^"(.*)"$/, "$1"));
    expect(path).toEqual(["api", "public", "tools"]);
  });

  test("may be read-only by setting, with any grants", async () => {
    const role = `reader_${randomUUID().slice(0, 8)}`;
    await owner.query(`create role ${role}; grant ${role} to authenticator; grant usage on schema api to ${role}`);
    onTestFinished(async () => {
      await owner.query(`drop owned by ${role}; drop role ${role}`);
    });
    await owner.query(`grant select, update on api.items to ${role}`);
    const write = () =>
      client.ask("/items?id=eq.1", { method: "PATCH", body: { note: "x" }, as: { role }, headers: rowsBack });
    expect(await write()).toMatchObject({ status: 200 });
    await owner.query(`alter role ${role} set default_transaction_read_only = on; notify pgrst, 'reload config'`);
    await until(async () => (await write()).status !== 200);
    expect(await write()).toMatchObject({ status: 405, body: { code: "25006" } });
    expect(await client.ask("/items?id=eq.1&select=id", { as: { role } })).toMatchObject({ status: 200 });
  });
});

describe("16: the alias of a relation takes precedence over its name", () => {
  examples([
    [
      "/artists?select=name,old:works(id),new:works(id)&old.year=lt.1890&new.year=gte.1890&old.order=id.desc&id=lte.2&order=id",
      [
        { name: "Claude", old: [{ id: 2 }], new: [{ id: 1 }] },
        { name: "Vincent", old: [{ id: 4 }, { id: 3 }], new: [] },
      ],
    ],
    [
      "/artists?select=name,first:works(id),all:works(id)&first.limit=1&first.order=id&all.order=id&id=eq.1",
      [{ name: "Claude", first: [{ id: 1 }], all: [{ id: 1 }, { id: 2 }] }],
    ],
    [
      "/exhibitions?select=title,curator:people!curator_id(name),deputy:people!deputy_id(name)&deputy.name=eq.Ben&deputy=not.is.null",
      [{ title: "Water", curator: { name: "Ada" }, deputy: { name: "Ben" } }],
    ],
    [
      "/works?select=id,by:artists(name)&order=by(name).desc.nullslast,id&limit=1",
      [{ id: 3, by: { name: "Vincent" } }],
    ],
    ["/artists?select=name,w:works()&w=is.null", [{ name: "Anonymous" }]],
    // The name of the relation filters: in the path, in a tree, in an order and in a window.
    ["/artists?select=name,w:works!inner(id)&works.id=eq.1", [{ name: "Claude", w: [{ id: 1 }] }]],
    ["/artists?select=name,w:works(id)&works.or=(id.eq.1,id.eq.3)&id=eq.1", [{ name: "Claude", w: [{ id: 1 }] }]],
    [
      "/artists?select=name,w:works(id)&works.order=id.desc&works.limit=1&id=eq.1",
      [{ name: "Claude", w: [{ id: 2 }] }],
    ],
    [
      "/countries?select=name,a:artists!inner(name,w:works!inner(title))&artists.works.year=gt.1900",
      [{ name: "France", a: [{ name: "Claude", w: [{ title: "Water Lilies" }] }] }],
    ],
    // One that has no other name is meant before one that has.
    [
      "/artists?select=name,old:works(id),works(id)&old.year=lt.1890&works.year=gte.1890&id=eq.1",
      [{ name: "Claude", old: [{ id: 2 }], works: [{ id: 1 }] }],
    ],
    [
      "/artists?id=eq.1&select=name,w:works(id)&works.id=eq.2",
      [{ name: "Claude", w: [{ id: 2 }] }],
      { method: "PATCH", body: { born: 1 }, headers: rowsBack },
    ],
  ]);
  refusals([
    [
      "/works?select=by:artists(name)&order=artists(name)",
      { code: "PGRST108", hint: "Verify that 'artists' is included in the 'select' query parameter." },
    ],
  ]);
});

describe("16: a timezone may be an offset", () => {
  const moment = "/types?select=moment_zone&id=eq.1";
  const preferred = (timezone: string) => ({ headers: { Prefer: `timezone=${timezone}` } });
  const at = (text: string) => [{ moment_zone: text }];
  // Postgres counts hours with minutes from where the sun sets, as POSIX has it.
  examples([
    [moment, at("2020-02-29T21:00:00+09:00"), preferred("Asia/Tokyo"), { "preference-applied": "timezone=Asia/Tokyo" }],
    [moment, at("2020-02-29T08:00:00-04:00"), preferred("-4"), { "preference-applied": "timezone=-4" }],
    [moment, at("2020-02-29T06:30:00-05:30"), preferred("+05:30"), { "preference-applied": "timezone=+05:30" }],
    [moment, at("2020-02-29T12:00:00+00:00"), preferred("0")],
    [moment, at("2020-02-29T21:00:00+09:00"), preferred("asia/tokyo"), { "preference-applied": "timezone=asia/tokyo" }],
  ]);

  test.each(["Nowhere", "99", "05:30:15", `${"A".repeat(200)}0`, "<+05>5", "localtime; drop", ""])(
    "and is refused if it is invalid, whatever the handling is: %j",
    async (timezone) => {
      for (const handling of ["", "handling=lenient, ", "handling=strict, "]) {
        const response = await client.ask(moment, { headers: { Prefer: `${handling}timezone=${timezone}` } });
        const message = `invalid value for parameter "TimeZone": "${timezone}"`;
        expect(response).toMatchObject({ status: 400, body: { code: "22023", message, details: null, hint: null } });
        expect(response.headers["preference-applied"]).toBeUndefined();
      }
    },
  );
});

describe("behaviour of 12 that a later release checks more strictly", () => {
  const form = { "Content-Type": "application/x-www-form-urlencoded" };
  examples([
    // These have nested inner joins, filters on hidden columns, and orders by related rows.
    [
      "/countries?select=name,artists!inner(name,works!inner(title))&artists.works.year=gt.1900",
      [{ name: "France", artists: [{ name: "Claude", works: [{ title: "Water Lilies" }] }] }],
    ],
    ["/countries?select=name,artists!inner(works!inner())&artists.works.year=gt.1900", [{ name: "France" }]],
    [
      "/artists?select=name,works(id,labels(body))&works.order=labels(body).desc.nullslast,id&id=eq.1",
      [
        {
          name: "Claude",
          works: [
            { id: 1, labels: { body: "Lilies in a pond" } },
            { id: 2, labels: null },
          ],
        },
      ],
    ],
    ["/works?select=id,artists()&order=artists(name),id&limit=3", [{ id: 1 }, { id: 2 }, { id: 6 }]],
    [
      "/works?select=id,artists(name)&not.and=(artists.not.is.null,id.gt.1)&order=id",
      [
        { id: 1, artists: { name: "Claude" } },
        { id: 7, artists: null },
      ],
    ],
    [
      "/artists?select=name,works(labels())&works.labels=not.is.null&works=not.is.null&order=id&limit=2",
      [{ name: "Claude" }, { name: "Vincent" }],
    ],
    // Domains that read and write themselves.
    ["/colours?select=s:shade&shade=in.(%2300ff00,%23ff0000)&order=id", [{ s: "#ff0000" }, { s: "#00ff00" }]],
    ["/colours?select=name&or=(shade.eq.%2300ff00,shade.is.null)&order=id", [{ name: "green" }, { name: "none" }]],
    [
      "/colours?id=eq.1&select=shade",
      [{ shade: "#000001" }],
      { method: "PATCH", body: { shade: "#000001" }, headers: rowsBack },
    ],
    ["/colours?select=s:shade,count()&id=eq.1", [{ s: "#ff0000", count: 1 }]],
    // These count the rows of functions.
    [
      "/rpc/all_works?select=id&order=id&limit=2&offset=5",
      [{ id: 6 }, { id: 7 }],
      { headers: { Prefer: "count=planned" } },
      { "content-range": "5-6/*" },
    ],
  ]);
  examples(
    [
      [
        "/rpc/all_works?select=id&order=id&limit=2",
        [{ id: 1 }, { id: 2 }],
        { headers: { Prefer: "count=exact" } },
        { "content-range": "0-1/7" },
      ],
      ["/rpc/series?up_to=5&limit=2", [1, 2], { headers: { Prefer: "count=estimated" } }, { "content-range": "0-1/5" }],
    ],
    206,
  );
  examples([
    ["/rpc/add", 3, { method: "POST", body: "a=1&b=2", headers: form }],
    ["/rpc/join_words", "a+b", { method: "POST", body: "words=a&words=b", headers: form }],
    ["/artists?select=&id=eq.5", [{ id: 5, name: "Anonymous", born: null, died: null, country: null }]],
  ]);

  test("a plan reports no applied preference", async () => {
    const response = await client.ask("/works?select=id", {
      headers: { Accept: "application/vnd.pgrst.plan", Prefer: "count=exact" },
    });
    expect(response.status).toBe(200);
    expect(response.headers["preference-applied"]).toBeUndefined();
  });

  test("the plan of a binary body is text", async () => {
    const accept = 'application/vnd.pgrst.plan; for="image/png"; options=verbose';
    const response = await client.ask("/rpc/picture", { headers: { Accept: accept } });
    expect(response.headers["content-type"]).toContain('for="image/png"');
    expect(response.body).toMatch(/^Aggregate .*\n {2}Output: \(array_agg/);
  });

  test.each([
    ["/works", "OPTIONS,GET,HEAD,POST,PUT,PATCH,DELETE"],
    ["/keyless", "OPTIONS,GET,HEAD,POST,PATCH,DELETE"],
    ["/inbox", "OPTIONS,GET,HEAD,POST,PATCH,DELETE"],
    ["/yearly", "OPTIONS,GET,HEAD"],
    ["/shown", "OPTIONS,GET,HEAD"],
    ["/rpc/add", "OPTIONS,GET,HEAD,POST"],
    ["/rpc/write_item", "OPTIONS,POST"],
    ["/", "OPTIONS,GET,HEAD"],
  ])("OPTIONS of %s allows %s", async (path, allow) => {
    expect(await client.ask(path, { method: "OPTIONS" })).toMatchObject({ status: 200, headers: { allow }, text: "" });
  });
});

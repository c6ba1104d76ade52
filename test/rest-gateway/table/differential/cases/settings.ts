import { ADA, type Area, ask, get, group, head, patch, post, remove, returning } from "../case.ts";

const GUARD = { role: "museum_guard" };
const PLAN = "application/vnd.pgrst.plan";
const own = { compared: "all but the body" } as const;

export const fewRows: Area = {
  name: "PGRST_DB_MAX_ROWS",
  settings: { PGRST_DB_MAX_ROWS: "3" },
  groups: [
    group("reads", [
      get("/numbers?select=n"),
      get("/numbers?select=n&limit=2"),
      get("/numbers?select=n&limit=10"),
      get("/numbers?select=n&limit=10&offset=98"),
      get("/numbers?select=n&offset=5"),
      get("/numbers?select=n&limit=0"),
      get("/numbers?select=n", { range: "0-9" }),
      get("/numbers?select=n", { range: "0-1" }),
      get("/numbers?select=n", { prefer: "count=exact" }),
      get("/numbers?select=n", { prefer: "count=planned" }),
      get("/numbers?select=n", { prefer: "count=estimated" }),
      get("/numbers?select=n&n=lt.3", { prefer: "count=estimated" }),
      get("/numbers?select=n&limit=1", { prefer: "count=estimated" }),
      head("/numbers?select=n", { prefer: "count=exact" }),
      get("/artists?select=name,works(title)&order=id&works.order=id"),
      get("/countries?select=name,artists(name,works(title))&artists.order=id&artists.works.order=id"),
      get("/numbers?select=n", { accept: "text/csv" }),
    ]),
    group("calls", [
      get("/rpc/all_works?select=id"),
      post("/rpc/all_works?select=id", {}),
      get("/rpc/series?up_to=10"),
      get("/rpc/series?up_to=10&limit=2", { prefer: "count=exact" }),
      get("/rpc/series?up_to=10", { prefer: "count=estimated" }),
      get("/rpc/add?a=1&b=2"),
    ]),
    group("writes are whole", [
      returning(patch("/works?id=gt.0&select=id", { price: 1 })),
      returning(remove("/exhibits?work_id=gt.0&select=work_id")),
      returning(
        post(
          "/keyless",
          Array.from({ length: 5 }, (_, a) => ({ a })),
        ),
      ),
      returning(patch("/artists?id=eq.1&select=works(id)&works.order=id", { born: 1 })),
    ]),
  ],
};

export const nothingExtra: Area = {
  name: "without aggregates and plans, of one schema",
  settings: { PGRST_DB_AGGREGATES_ENABLED: "false", PGRST_DB_PLAN_ENABLED: "false", PGRST_DB_SCHEMAS: "api" },
  groups: [
    group("aggregates", [
      get("/works?select=count()", { fails: "PGRST123" }),
      get("/works?select=price.sum()", { fails: "PGRST123" }),
      get("/artists?select=name,works(count())", { fails: "PGRST123" }),
      get("/works?select=title,...artists(born.max())", {
        fails: "any",
        differs: "aggregates inside a spread",
        ours: { status: 400, body: { code: "PGRST123" } },
      }),
      get("/artists?select=name,...works(price.sum())", {
        fails: "any",
        differs: "aggregates inside a spread",
        ours: { status: 400, body: { code: "PGRST123" } },
      }),
      get("/rpc/all_works?select=count()", { fails: "PGRST123" }),
      returning(patch("/works?id=eq.1&select=count()", { year: 1 }, { fails: "PGRST123" })),
      get("/works?select=count", { name: "a call of count(works), by the rules of Postgres" }),
      get("/works?select=json_agg", {
        differs: "aggregates by name",
        ours: { status: 400, body: { code: "PGRST123" } },
      }),
      get("/works?select=count&order=count"),
      get("/works?select=count&order=array_agg", {
        differs: "aggregates by name",
        ours: { status: 400, body: { code: "PGRST123" } },
      }),
      get("/artists?select=name,works(count)", { fails: "any" }),
    ]),
    group("plans", [
      get("/works", { accept: PLAN, fails: "PGRST107" }),
      get("/works", { accept: `${PLAN}+json`, fails: "PGRST107" }),
      get("/works?select=id&limit=1", { accept: `${PLAN}, application/json` }),
    ]),
    group("the only schema", [
      get("/works?select=id&limit=1"),
      get("/works?select=id&limit=1", { profile: "api" }),
      get("/works", { profile: "other", fails: "PGRST106" }),
      returning(post("/items", { name: "x" })),
      returning(post("/items", { name: "x" }, { profile: "api" })),
      get("/rpc/add?a=1&b=2"),
      get("/rpc/settings"),
    ]),
  ],
};

export const plans: Area = {
  name: "execution plans",
  groups: [
    group("media types", [
      get("/works", { accept: PLAN, ...own }),
      get("/works", { accept: `${PLAN}+text`, ...own }),
      get("/works", { accept: `${PLAN}+json`, ...own }),
      get("/works", { accept: `${PLAN}; options=analyze|verbose`, ...own }),
      get("/works", { accept: `${PLAN}+json; options=analyze|verbose|settings|buffers|wal`, ...own }),
      get("/works", { accept: `${PLAN}; for="application/vnd.pgrst.object"`, ...own }),
      get("/works", { accept: `${PLAN}+json; for="text/csv"; options=buffers`, ...own }),
      get("/works", { accept: `${PLAN}; options=nonsense`, ...own }),
      get("/works", { accept: `${PLAN}; for="image/png"`, fails: "any", ...own }),
      get("/rpc/picture", { accept: `${PLAN}; for="image/png"`, ...own }),
      head("/works", { accept: PLAN, ...own }),
      post("/items", { name: "x" }, { accept: PLAN, ...own }),
      returning(post("/items", { name: "x" }, { accept: `${PLAN}+json`, ...own })),
      patch("/items?id=eq.1", { note: "x" }, { accept: PLAN, ...own }),
      remove("/exhibits?work_id=eq.1", { accept: PLAN, ...own }),
      get("/rpc/works_by?artist=1", { accept: PLAN, ...own }),
      post("/rpc/works_by", { artist: 1 }, { accept: `${PLAN}+json`, ...own }),
      get("/works?select=nothing", { accept: PLAN, fails: "42703" }),
      get("/closed", { accept: PLAN, fails: "42501" }),
      get("/works", { accept: PLAN, as: ADA, ...own }),
    ]),
  ],
};

export const beforeEach: Area = {
  name: "PGRST_DB_PRE_REQUEST",
  settings: { PGRST_DB_PRE_REQUEST: "private.before_request" },
  groups: [
    group("is called before all", [
      get("/works?select=id&limit=1"),
      get("/works?select=id&limit=1", { headers: { "X-Say": "hello" } }),
      get("/works", { headers: { "X-Refuse": "PT403" }, fails: "PT403" }),
      get("/works", { headers: { "X-Refuse": "P0001" }, fails: "P0001" }),
      get("/nothing", {
        headers: { "X-Refuse": "PT403" },
        fails: "any",
        differs: "the table is looked for first",
        ours: { status: 404, body: { code: "PGRST205" } },
      }),
      get("/works?select=nothing", { headers: { "X-Refuse": "PT403" }, fails: "PT403" }),
      get("/rpc/setting?name=museum.setting", { headers: { "X-Setting": "before" } }),
      get("/rpc/setting?name=museum.setting"),
      get("/notes?order=id", { headers: { "X-Role": "service_role" } }),
      get("/notes?order=id"),
      post("/items", { name: "x" }, { headers: { "X-Say": "hello" } }),
      post("/items", { name: "x" }, { headers: { "X-Refuse": "PT402" }, fails: "PT402" }),
      post("/rpc/add", { a: 1, b: 2 }, { headers: { "X-Say": "hello" } }),
      post("/rpc/told", { headers: '[{"X-Fixture-Two": "later"}]' }, { headers: { "X-Say": "earlier" } }),
      get("/works", { headers: { "X-Refuse": "42501" }, fails: "42501" }),
      get("/works", { headers: { "X-Refuse": "42501" }, fails: "any", as: { role: "service_role" } }),
      head("/works?select=id", { headers: { "X-Say": "hello" } }),
    ]),
  ],
};

export const committed: Area = {
  name: "PGRST_DB_TX_END=commit",
  settings: { PGRST_DB_TX_END: "commit" },
  groups: [
    group("a preference for the end is not heard", [
      post("/scratch", { id: 2, note: "kept" }, { prefer: "tx=rollback, return=representation" }),
      get("/scratch", { name: "the row is kept" }),
      remove("/scratch", { prefer: "tx=rollback, return=representation" }),
      get("/scratch", { name: "the row is gone" }),
      post("/deferred", { id: 5, n: 1 }, { fails: "23505" }),
      patch("/items?id=eq.1", { quantity: -1 }, { prefer: "tx=rollback", fails: "23514" }),
      get("/works?select=id&limit=1", { prefer: "tx=rollback" }),
    ]),
  ],
};

export const settingsOfRoles: Area = {
  name: "settings of roles and functions",
  // PostgREST reads those of roles only together with its own.
  settings: { PGRST_DB_CONFIG: "true" },
  groups: [
    group("roles", [
      get("/rpc/time_zone", { as: GUARD }),
      get("/rpc/time_zone", { as: GUARD, prefer: "timezone=UTC" }),
      get("/rpc/setting?name=statement_timeout", { as: GUARD }),
      get("/rpc/setting?name=transaction_isolation", { as: GUARD, fails: "any" }),
      get("/rpc/time_zone"),
    ]),
    group("functions", [
      get("/rpc/patient"),
      get("/rpc/serial"),
      get("/rpc/strict_time"),
      post("/rpc/hurried", {}, { fails: "57014" }),
    ]),
  ],
};

export const root: Area = {
  name: "the root",
  groups: [
    group("media types", [
      get("/", { accept: "application/openapi+json", ...own }),
      head("/", { accept: "application/openapi+json", ...own }),
      get("/", { accept: "application/openapi+json", profile: "other", ...own }),
      get("/", { accept: "application/openapi+json", profile: "nothing", fails: "PGRST106" }),
      get("/", { accept: "text/csv", fails: "PGRST107" }),
      get("/", { accept: "image/png", fails: "PGRST107" }),
      ask("OPTIONS", "/", null),
    ]),
  ],
};

export const noDocument: Area = {
  name: "PGRST_OPENAPI_MODE=disabled",
  settings: { PGRST_OPENAPI_MODE: "disabled" },
  groups: [
    group("nothing at the root", [
      get("/", { fails: "any", differs: "no document at the root", ours: { status: 404, body: { code: "PGRST126" } } }),
      get("/works?select=id&limit=1"),
    ]),
  ],
};

export const ownRoot: Area = {
  name: "PGRST_DB_ROOT_SPEC",
  settings: { PGRST_DB_ROOT_SPEC: "api.root" },
  groups: [
    group("a function answers", [
      get("/"),
      get("/", { accept: "application/json" }),
      head("/"),
      ask("OPTIONS", "/", null),
    ]),
  ],
};

import { ADA, type Area, get, group, post, SERVICE } from "../case.ts";

const raise = (state: string, more: object = {}) => post("/rpc/raise", { state, ...more }, { fails: state });
const pgrst = (message: unknown, detail: unknown) =>
  post(
    "/rpc/raise",
    {
      state: "PGRST",
      message: typeof message === "string" ? message : JSON.stringify(message),
      ...(detail !== undefined && { detail: typeof detail === "string" ? detail : JSON.stringify(detail) }),
    },
    { fails: "any" },
  );
const TEA = { code: "TEA", message: "short and stout" };

const emptyToken = {
  differs: "an empty token",
  ours: { status: 401, body: { code: "PGRST301", message: "Empty JWT is sent in Authorization header" } },
} as const;

export const refusals: Area = {
  name: "refusals",
  groups: [
    // Not 40001 and 40P01: PostgREST 12 runs such a transaction again, for ever.
    group(
      "the status of an SQLSTATE",
      [
        ..."08000 08006 09000 0A000 0B000 0L000 0P000 20000 21000 22000 22012 22023 22P02 23000 23502 23503 23505 23514".split(
          " ",
        ),
        ..."23P01 24000 25000 25006 28000 28P01 2B000 2D000 2F000 34000 38000 39000 3B000 3D000 3F000 40000".split(" "),
        ..."42000 42501 42601 42703 42883 42P01 42P17 44000 53000 53100 53300 53400 54000 54001 55000 55P03".split(" "),
        ..."57000 57014 57P01 58000 58P01 72000 F0000 HV000 P0000 P0001 P0002 P0003 P0004 XX000 XX001".split(" "),
        ..."ZZZZZ 12345 ABCDE A0000".split(" "),
      ].map((state) => ({ ...raise(state), outcome: "any" })),
    ),
    group("what an error tells", [
      raise("P0001", { message: "m", hint: "h", detail: "d" }),
      raise("22023", { message: "m", hint: "h", detail: "d" }),
      raise("P0001", { message: "" }),
      raise("P0001", { message: 'quotes " and \\ and é' }),
      raise("22023", { message: 'role "nobody" does not exist' }),
      raise("21000", { message: "UPDATE requires a WHERE clause" }),
      post("/rpc/fail", {}, { fails: "P0001" }),
      post("/rpc/zero_division", {}, { fails: "22012" }),
      post("/rpc/missing_table", {}, { fails: "42P01" }),
      post("/rpc/missing_function", {}, { fails: "any" }),
      post("/rpc/too_many", {}, { fails: "21000" }),
      post("/rpc/hurried", {}, { fails: "57014" }),
      post("/rpc/hurried", {}, { fails: "57014", as: ADA }),
    ]),
    group(
      "a status of one's own",
      ["PT200", "PT201", "PT204", "PT301", "PT400", "PT402", "PT404", "PT418", "PT500", "PT599"].map((state) => ({
        ...raise(state, { message: "mine", hint: "h", detail: "d" }),
        outcome: "any",
      })),
    ),
    group("the whole answer by PGRST", [
      pgrst(TEA, { status: 418, headers: {} }),
      pgrst({ ...TEA, details: "d", hint: "h" }, { status: 418, headers: { "X-Tea": "green" } }),
      pgrst(TEA, { status: 418, headers: {}, status_text: "I am a teapot" }),
      pgrst({ ...TEA, details: null, hint: null }, { status: 200, headers: {} }),
      pgrst(TEA, { status: 402, headers: { "X-Tea": "a", "X-Tea-Two": "b" } }),
      pgrst(TEA, { status: 418 }),
      pgrst(TEA, { headers: {} }),
      pgrst({ code: "TEA" }, { status: 418, headers: {} }),
      pgrst({ message: "x" }, { status: 418, headers: {} }),
      pgrst("not json", { status: 418, headers: {} }),
      pgrst(TEA, "not json"),
      pgrst(TEA, undefined),
      pgrst("", ""),
      pgrst([TEA], { status: 418, headers: {} }),
      pgrst({ ...TEA, code: 7 }, { status: 418, headers: {} }),
      pgrst(TEA, { status: "418", headers: {} }),
      pgrst(TEA, { status: 418, headers: { "X-Tea": 1 } }),
      get("/rpc/raise?state=PGRST&message=x", { fails: "any" }),
    ]),
    group("what SQL says of its answer", [
      post("/rpc/told", { status: "202" }),
      post("/rpc/told", { status: "418" }, { fails: "any" }),
      post("/rpc/told", { status: "404" }, { fails: "any" }),
      post("/rpc/told", { status: "nonsense" }, { fails: "PGRST112" }),
      post("/rpc/told", { status: "" }),
      post("/rpc/told", { headers: '[{"X-Fixture": "one"}]' }),
      post("/rpc/told", { headers: '[{"X-Fixture": "one"}, {"X-Fixture-Two": "two"}]' }),
      post("/rpc/told", { headers: '[{"X-Fixture": "one"}, {"X-Fixture": "two"}]' }),
      post("/rpc/told", { headers: '[{"Cache-Control": "max-age=5"}, {"Set-Cookie": "a=1"}]' }),
      post("/rpc/told", { headers: '[{"Set-Cookie": "a=1"}, {"Set-Cookie": "b=2"}]' }),
      post("/rpc/told", { headers: '[{"Content-Type": "text/x-told"}]' }),
      post("/rpc/told", { headers: '[{"content-range": "1-2/3"}]' }),
      post("/rpc/told", { headers: "[]" }),
      post("/rpc/told", { headers: "nonsense" }, { fails: "PGRST111" }),
      post("/rpc/told", { headers: '{"X-Fixture": "an object"}' }, { fails: "PGRST111" }),
      post("/rpc/told", { headers: '[{"X-Fixture": 1}]' }, { fails: "PGRST111" }),
      post("/rpc/told", { headers: '[{"X-Fixture": "a", "X-Fixture-Two": "b"}]' }, { fails: "PGRST111" }),
      post("/rpc/told", { status: "202", headers: '[{"X-Fixture": "one"}]' }, { as: SERVICE }),
      get("/rpc/told?status=202"),
    ]),
    group("what does not exist", [
      get("/nothing", { fails: "any" }),
      get("/work", { fails: "any" }),
      get("/workz", { fails: "any" }),
      get("/vault", { fails: "any" }),
      get("/pg_class", { fails: "any" }),
      get("/pg_catalog.pg_class", { fails: "any" }),
      get("/information_schema.tables", { fails: "any" }),
      get("/works;drop table api.works", { fails: "any" }),
      get('/works"', { fails: "any" }),
      get("/%00", { fails: "any" }),
      get("/a/b", { fails: "any" }),
      get("/a/b/c", { fails: "any" }),
      get("/works?select=*,nothings(*)", { fails: "PGRST200" }),
      get("/works?select=*,artistz(*)", { fails: "PGRST200" }),
      get("/nothing?select=*,artists(*)", {
        fails: "any",
        differs: "the table is looked for first",
        ours: { status: 404, body: { code: "PGRST205" } },
      }),
      get("/workz?select=*,artists(*)", {
        fails: "any",
        differs: "the table is looked for first",
        ours: { status: 404, body: { code: "PGRST205", hint: "Perhaps you meant the table 'api.works'" } },
      }),
      get("/works?nothing=eq.1", { fails: "42703" }),
      get("/works?select=titel", { fails: "42703" }),
      get("/works?order=titel", { fails: "42703" }),
      get("/tg__inbox", { fails: "any" }),
      get("/artists_country_fkey", { fails: "any" }),
      get("/works_id_seq", {
        fails: "any",
        differs: "what is no table of its own",
        ours: { status: 404, body: { code: "PGRST205" } },
      }),
      get("/address", {
        fails: "any",
        differs: "what is no table of its own",
        ours: { status: 404, body: { code: "PGRST205" } },
      }),
    ]),
  ],
};

const anHour = 3600;
const now = Math.floor(Date.now() / 1000);

export const callers: Area = {
  name: "callers",
  groups: [
    group("roles", [
      get("/notes?order=id"),
      get("/notes?order=id", { as: ADA }),
      get("/notes?order=id", { as: { role: "authenticated", sub: "ben" } }),
      get("/notes?order=id", { as: { role: "authenticated" } }),
      get("/notes?order=id", { as: { role: "authenticated", sub: "nobody" } }),
      get("/notes?order=id", { as: SERVICE }),
      get("/notes?order=id", { as: { role: "anon" } }),
      get("/closed", { fails: "42501" }),
      get("/closed", { as: ADA }),
      get("/closed", { as: SERVICE, fails: "any" }),
      get("/half_open", { fails: "42501" }),
      get("/half_open?select=id,name"),
      get("/half_open?select=id,secret", { fails: "42501" }),
      get("/half_open?select=id&secret=eq.x", { fails: "42501" }),
      get("/half_open?select=id&order=secret", { fails: "42501" }),
      get("/half_open?select=id,name", { as: ADA, fails: "42501" }),
      get("/append_only", { fails: "42501" }),
      get("/invoker_view", { as: ADA }),
      get("/invoker_view", { fails: "42501" }),
      get("/vault_view"),
      get("/rpc/definer"),
      get("/rpc/closed_function", { fails: "42501" }),
      get("/rpc/settings", { as: { role: "authenticated", sub: "ada", app: { deep: [1, "é"] } } }),
      get("/rpc/setting?name=request.jwt.claims"),
      get("/rpc/setting?name=role", { as: ADA }),
    ]),
    group("tokens", [
      get("/notes?order=id", { as: { role: "authenticated", sub: "ada", exp: now + anHour } }),
      get("/notes", { as: { role: "authenticated", sub: "ada", exp: now - anHour }, fails: "any", name: "expired" }),
      get("/notes", { as: { role: "authenticated", nbf: now + anHour }, fails: "any", name: "not yet valid" }),
      get("/notes", { as: { role: "authenticated", iat: now + anHour }, fails: "any", name: "from the future" }),
      get("/notes", { as: { role: "nobody_at_all" }, fails: "any" }),
      get("/notes", {
        as: { role: "postgres" },
        fails: "42501",
        differs: "a token for a role that is not served",
        ours: { status: 401, body: { code: "42501" } },
      }),
      get("/notes", {
        as: { role: "" },
        fails: "22023",
        differs: "a token for a role that is not served",
        ours: { status: 401, body: { code: "PGRST303" } },
      }),
      get("/notes?order=id", { as: { token: "" }, fails: "any", ...emptyToken }),
      get("/notes", { as: { token: "nonsense" }, fails: "any" }),
      get("/notes", { as: { token: "a.b.c" }, fails: "any" }),
      get("/notes", { as: { token: "a.b" }, fails: "any" }),
      get("/notes", {
        as: {
          token: "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        },
        fails: "any",
        name: "signed by somebody else",
      }),
      get("/notes", {
        as: { token: "eyJhbGciOiJub25lIn0.eyJyb2xlIjoic2VydmljZV9yb2xlIn0." },
        fails: "any",
        name: "not signed at all",
      }),
      get("/notes?order=id", {
        headers: { Authorization: "Basic YTpi" },
        name: "another scheme",
        differs: "an Authorization header of another scheme",
        ours: { status: 401, body: { code: "PGRST301", message: "Unsupported authorization scheme" } },
      }),
      get("/notes?order=id", { headers: { Authorization: "" } }),
      get("/notes", { headers: { Authorization: "Bearer" }, fails: "any", ...emptyToken }),
      get("/notes", { headers: { Authorization: "Bearer a b" }, fails: "any" }),
      post("/items", { name: "x" }, { as: { token: "nonsense" }, fails: "any" }),
      get("/nothing", { as: { token: "nonsense" }, fails: "any", name: "the token is looked at first" }),
    ]),
  ],
};

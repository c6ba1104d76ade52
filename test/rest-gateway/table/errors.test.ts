import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../../service/wiring/service.ts";
import { connect } from "../../db/callers.ts";
import { useFixture } from "../../fixture.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { type Client, openClient, type TestRequest, type TestResponse } from "./client.ts";
import { openFixture } from "./differential/fixture.ts";
import { like, post, REFUSALS, type Refusal } from "./refusals.ts";

/** Objects for the errors that the fixture has no occasion for. */
const MISHAPS = `
  create table api.bookings (id int primary key, during int4range, constraint bookings_during_excl exclude using gist (during with &&));
  insert into api.bookings values (1, '[1,5)');
  create view api.circle as with recursive r as (select 1 as n union all select n from r) select n from r limit 3;
  create table api.guarded (id int primary key, owner text);
  insert into api.guarded values (1, 'ada');
  alter table api.guarded enable row level security;
  create policy read_all on api.guarded for select using (true);
  create policy write_own on api.guarded for insert with check (owner = current_setting('request.jwt.claims', true)::json ->> 'sub');
  create table api.mirrors (id int primary key);
  alter table api.mirrors enable row level security;
  create policy itself on api.mirrors using (exists (select from api.mirrors));
  create function api.reword(n int, word text) returns setof api.numbers language sql volatile
    set default_transaction_isolation = 'repeatable read'
    as $$ update api.numbers set word = reword.word where numbers.n = reword.n returning * $$;
  create function api.lock_both(first int, second int) returns void language plpgsql volatile as $$
  begin
    update api.numbers set half = half where n = first;
    update api.numbers set half = half where n = second;
  end $$;
  create function api.spread_thin() returns setof api.works language sql volatile as $$ select * from api.works $$;
  grant all on all tables in schema api to anon, authenticated, service_role;
  revoke all on api.closed, api.half_open, api.append_only from anon;
  grant select (id, name) on api.half_open to anon;
`;

const FIXTURE_SETTINGS = {
  PGRST_DB_SCHEMAS: "api,other",
  PGRST_DB_EXTRA_SEARCH_PATH: "public,tools",
  PGRST_DB_AGGREGATES_ENABLED: "true",
  PGRST_DB_TX_END: "rollback-allow-override",
  MAX_BODY_BYTES: "100000",
};

const running: { service: Service; client: Client }[] = [];
/** The clients by the names that the cases use. */
const clients = {} as Record<NonNullable<Refusal["by"]>, Client>;

const fixture = useFixture(openFixture);
const owner = useFixture(() => connect(fixture.ownerUrl));
beforeAll(async () => {
  await owner.query(MISHAPS);
  clients.usual = await open(FIXTURE_SETTINGS);
  clients.austere = await open({
    ...FIXTURE_SETTINGS,
    PGRST_DB_AGGREGATES_ENABLED: "false",
    PGRST_OPENAPI_MODE: "disabled",
    PGRST_URL_USE_LEGACY_TARGET_NAMES: "false",
    PGRST_DB_PRE_REQUEST: "private.before_request",
  });
});
afterAll(async () => {
  for (const { client, service } of running) {
    client.close();
    await service.stop();
  }
});

async function open(settings: Record<string, string>): Promise<Client> {
  const service = await serve(fixture, settings);
  const client = openClient(service.url, { connections: 64 });
  running.push({ service, client });
  return client;
}

/** Details of the service that no refusal may reveal. */
const INSIDE =
  /\bselect\b.*\bfrom\b|json_agg|to_recordset|set_config|search_path|pgrst_|node:|\.ts\b|node_modules|\bat .+:\d+:\d+/i;
const HIDDEN = [
  "vault",
  "gold",
  "private",
  "tools",
  "secret",
  "hidden",
  "closed",
  "authenticator",
  "museum_guard",
  "lock_both",
];

function expectPlainError(
  { text, body, headers }: TestResponse,
  request: TestRequest & { readonly path: string },
): void {
  expect(headers["content-type"]).toBe("application/json; charset=utf-8");
  expect(headers["proxy-status"]).toBe(`PostgREST; error=${body.code}`);
  expect(Object.keys(body).sort()).toEqual(["code", "details", "hint", "message"]);
  expect(body.message).toEqual(like(/\S/));
  expect(text).not.toMatch(INSIDE);
  const known = JSON.stringify(request);
  expect(HIDDEN.filter((name) => text.includes(name) && !known.includes(name))).toEqual([]);
}

describe("a request that is refused", () => {
  test.each(REFUSALS)(
    "$code: $method $path",
    async ({ code, status, path, says = {}, told: result = {}, by = "usual", ...request }) => {
      const answer = await clients[by].ask(path, request);
      expect(answer, answer.text).toMatchObject({ status, headers: result, body: { code, ...says } });
      expectPlainError(answer, { path, ...request });
    },
  );

  test("has no body for HEAD, and the same status", async () => {
    for (const [path, status, code] of [
      ["/nothing", 404, "PGRST205"],
      ["/works?id=eq.one", 400, "22P02"],
      ["/closed", 401, "42501"],
    ] as const) {
      const headers = { "proxy-status": `PostgREST; error=${code}` };
      expect(await clients.usual.ask(path, { method: "HEAD" })).toMatchObject({ status, headers, text: "" });
    }
  });

  test("rolls back all changes of the request", async () => {
    const { rows } = await owner.query(
      "select (select count(*) from api.items) items, (select count(*) from api.works) works",
    );
    expect(rows).toEqual([{ items: "3", works: "7" }]);
  });
});

describe("the reason phrase", () => {
  const raised = (state: string, message: string, detail = "") =>
    clients.usual.ask("/rpc/raise", post({ state, message, detail }));
  const pgrst = (status: number, text?: string, code = "TEA") =>
    raised("PGRST", JSON.stringify({ code, message: "m" }), JSON.stringify({ status, status_text: text, headers: {} }));

  test.each([
    ["PT402", 402, "Payment by Pléiade 支払い only"],
    ["PT599", 599, "nobody knows this one"],
  ])("of %s is the message", async (state, status, message) => {
    expect(await raised(state, message)).toMatchObject({ status, reason: message, body: { code: state, message } });
  });

  test("of an invalid PT status is that of the default status", async () => {
    expect(await raised("PTXYZ", "nonsense")).toMatchObject({ status: 500, reason: "Internal Server Error" });
  });

  test.each([
    [418, "Short and Stout", "Short and Stout"],
    [418, "", ""],
    [404, undefined, "Not Found"],
    [599, undefined, ""],
  ])("of %d raised by PGRST with status_text %j is %j", async (status, text, reason) => {
    expect(await pgrst(status, text)).toMatchObject({ status, reason, body: { code: "TEA" } });
  });

  test("has no line end, and a limited length", async () => {
    expect(await raised("PT400", "one\r\nSet-Cookie: two\u007f\u0085")).toMatchObject({
      status: 400,
      reason: "one  Set-Cookie: two  ",
      headers: expect.not.objectContaining({ "set-cookie": expect.anything() }),
      body: { message: "one\r\nSet-Cookie: two\u007f\u0085" },
    });
    const long = "x".repeat(50_000);
    expect(await raised("PT400", long)).toMatchObject({
      status: 400,
      reason: like(/^x{200}$/),
      body: { message: long },
    });
  });

  test("of an unregistered status that SQL sets is empty", async () => {
    const { reason, status } = await clients.usual.ask("/rpc/told", post({ status: "299" }));
    expect({ reason, status }).toEqual({ reason: "", status: 299 });
  });

  test("a code that is not a valid header value is in the body only", async () => {
    for (const code of ["two\r\nlines", "a, b", "支", ""]) {
      const { headers, body } = await pgrst(418, undefined, code);
      expect(body.code).toBe(code);
      expect(headers).not.toHaveProperty("proxy-status");
    }
  });
});

describe("concurrent requests that conflict", () => {
  const isWaiting = async () => {
    const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    return (await watcher.query(waiting)).rowCount! > 0;
  };
  let watcher: pg.Client;
  let other: pg.Client;
  beforeAll(async () => {
    watcher = new pg.Client({ connectionString: fixture.ownerUrl });
    other = new pg.Client({ connectionString: fixture.ownerUrl });
    await Promise.all([watcher.connect(), other.connect()]);
  });
  afterAll(() => Promise.all([watcher.end(), other.end()]));

  test("40001: a row that another request has changed meanwhile", async () => {
    await other.query("begin; update api.numbers set word = 'theirs' where n = 1");
    const answer = clients.usual.ask("/rpc/reword", post({ n: 1, word: "ours" }));
    await until(isWaiting);
    await other.query("commit");
    const result = await answer;
    expect(result).toMatchObject({ status: 500, body: { code: "40001", message: like(/could not serialize access/) } });
    expectPlainError(result, { path: "/rpc/reword" });
  });

  test("without one, a function with an isolation level is undone or kept as the request prefers", async () => {
    const wordOf = async () => (await owner.query("select word from api.numbers where n = 3")).rows[0].word;
    const before = await wordOf();
    const undone = await clients.usual.ask("/rpc/reword", post({ n: 3, word: "ours" }));
    expect(undone).toMatchObject({ status: 200, body: [{ n: 3, word: "ours" }] });
    expect(await wordOf()).toBe(before);
    const { headers, ...kept } = post({ n: 3, word: "kept" });
    await clients.usual.ask("/rpc/reword", { ...kept, headers: { ...headers, Prefer: "tx=commit" } });
    expect(await wordOf()).toBe("kept");
    await owner.query("update api.numbers set word = $1 where n = 3", [before]);
  });

  test("40P01: a deadlock", async () => {
    // The one that waited first looks first whether it waits for itself; if that is not the request, it is tried again.
    for (;;) {
      await other.query("begin; update api.numbers set half = half where n = 2");
      const answer = clients.usual.ask("/rpc/lock_both", post({ first: 1, second: 2 }));
      await until(isWaiting);
      const theirs = await other.query("update api.numbers set half = half where n = 1").catch((error) => error);
      await other.query("rollback");
      const result = await answer;
      if (theirs.code === "40P01") continue;
      expect(result).toMatchObject({ status: 500, body: { code: "40P01", message: "deadlock detected" } });
      // Postgres tells the numbers of processes, and its log the statements.
      expectPlainError(result, { path: "/rpc/lock_both" });
      break;
    }
  });
});

describe("an unavailable database", () => {
  const RETRY = { "retry-after": like(/^\d+$/) };
  const isServed = async (client: Client) => (await client.ask("/works?limit=1")).status === 200;
  const kill = (words: string) =>
    owner.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'authenticator' and datname = current_database() and query like $1 and state = 'active'",
      [words],
    );

  let hasty: Promise<Client> | undefined;
  /** Its requests wait for a connection for a second, and are then refused. */
  const openHasty = () => (hasty ??= open({ ...FIXTURE_SETTINGS, DB_POOL: "4", DB_ACQUIRE_TIMEOUT_SECONDS: "1" }));

  // A router accepts connections although Postgres does not.
  test.skipIf(process.env.ROUTER)("PGRST000: it is unavailable, and the service recovers by itself", async () => {
    const impatient = await openHasty();
    const name = pg.escapeIdentifier(fixture.name);
    const maintenance = new pg.Client({ connectionString: fixture.ownerUrl.replace(fixture.name, "postgres") });
    await maintenance.connect();
    await maintenance.query(`alter database ${name} allow_connections false`);
    await maintenance.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and usename = 'authenticator'",
      [fixture.name],
    );
    for (;;) {
      const result = await impatient.ask("/works?limit=1");
      if (result.body.code !== "PGRST000") continue;
      expect(result).toMatchObject({ status: 503, headers: RETRY });
      expectPlainError(result, { path: "/works" });
      break;
    }
    await maintenance.query(`alter database ${name} allow_connections true`);
    await maintenance.end();
    await until(() => isServed(impatient));
    await until(() => isServed(clients.usual));
  });

  test("PGRST001: a read whose connection is lost twice", async () => {
    await owner.query(
      "create or replace function api.doze() returns int language sql stable as $$ select 1 from pg_sleep(60) $$; notify pgrst",
    );
    await until(async () => (await clients.usual.ask("/rpc/doze", { method: "OPTIONS" })).status === 200);
    const answer = clients.usual.ask("/rpc/doze");
    let isOver = false;
    answer.then(() => (isOver = true));
    while (!isOver) {
      await kill("%doze%");
      await sleep(5);
    }
    expect(await answer).toMatchObject({
      status: 503,
      headers: RETRY,
      body: { code: "PGRST001", message: like(/Nothing was changed/) },
    });
    expectPlainError(await answer, { path: "/rpc/doze" });
  });

  test("08007: a write with unknown outcome", async () => {
    const answer = clients.usual.ask("/rpc/slow", post({ seconds: 60 }, { headers: { Prefer: "tx=commit" } }));
    await until(async () => (await kill("%slow%")).rowCount !== 0);
    expect(await answer).toMatchObject({
      status: 503,
      headers: RETRY,
      body: { code: "08007", message: like(/Look before you try again/), hint: like(/Idempotency-Key/) },
    });
    expectPlainError(await answer, { path: "/rpc/slow" });
  });

  test("PGRST003: no connection is available in time", async () => {
    const busy = await openHasty();
    const answers = await Promise.all(Array.from({ length: 40 }, () => busy.ask("/rpc/slow", post({ seconds: 2 }))));
    const late = answers.find(({ status }) => status === 504)!;
    expect(late).toMatchObject({
      headers: RETRY,
      body: { code: "PGRST003", message: like(/Timed out acquiring connection/) },
    });
    expectPlainError(late, { path: "/rpc/slow" });
    expect(answers.some(({ status }) => status === 204)).toBe(true);
  });
});

describe("every code is tested", () => {
  const provoked = new Set([
    ...REFUSALS.map(({ code }) => code),
    "40001",
    "40P01",
    "PGRST000",
    "PGRST001",
    "PGRST003",
    "08007",
  ]);

  test("in the contract's table", () => {
    for (const code of ["23505", "23503", "42501", "PGRST116", "22P02"]) expect(provoked).toContain(code);
  });

  test("in PostgREST's documentation, except for those that cannot occur", () => {
    const documented = [
      ...["000", "001", "002", "003"],
      ...[
        "100",
        "101",
        "102",
        "103",
        "105",
        "106",
        "107",
        "108",
        "111",
        "112",
        "114",
        "115",
        "116",
        "117",
        "118",
        "120",
      ],
      ...["121", "122", "123", "124", "125", "126", "127", "128"],
      ...["200", "201", "202", "203", "204", "205"],
      ...["300", "301", "302", "303"],
      "X00",
    ].map((number) => `PGRST${number}`);
    const impossible = [
      "PGRST002", // The service does not listen before it has read the catalogue, and keeps the old one when it cannot be read again.
      "PGRST300", // It does not start without a key to verify tokens by.
      "PGRSTX00", // A fault inside is XX000.
    ];
    expect(documented.filter((code) => !provoked.has(code))).toEqual(impossible);
  });

  test("for the statuses of SQLSTATEs in PostgREST", () => {
    const table =
      "08 09 0L 0P 23503 23505 25006 25 28 2D 38 39 3B 40 53400 53 54 55 57 58 F0 HV P0001 P0 XX 42883 42P01 42P17 42501 22 42";
    const codes = [...provoked];
    expect(table.split(" ").filter((start) => !codes.some((code) => code.startsWith(start)))).toEqual([]);
  });
});

import { createHash, randomBytes } from "node:crypto";
import pg from "pg";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { signToken } from "../../../accounts/identity/tokens.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";

const OTHER_SECRET = "another secret that is long enough to sign with";

let database: TestDatabase;
let owner: pg.Client;
let service: Service;

beforeEach(async () => {
  database = await cloneDatabase();
  owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  await owner.query(`
    create table public.numbers as select n from generate_series(1, 10) as n;
    grant select on public.numbers to anon;
    create schema reports;
    grant usage on schema reports to anon;
    create table reports.totals as select 42 as total;
    grant select on reports.totals to anon`);
});
afterEach(async () => {
  await service.stop();
  await owner.query(`alter role authenticator in database ${database.name} reset all`);
  await owner.end();
  await database.drop();
});

async function start(settings: NodeJS.ProcessEnv = {}): Promise<void> {
  service = await serve(database, settings);
}

const keyOf = (jwtSecret: string) =>
  signToken({ role: "anon" }, makeTokenKeys({ jwtSecret, jwtSecretIsBase64: false, jwtPrivateKey: null }));

const ask = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${service.url}${path}`, { headers: { apikey: keyOf(SECRET), ...headers } });

async function rowsOf(path: string, headers: Record<string, string> = {}): Promise<unknown[]> {
  return (await (await ask(path, headers)).json()) as unknown[];
}

const say = (name: string, value: string) =>
  owner.query(`alter role authenticator in database ${database.name} set ${name} = ${pg.escapeLiteral(value)}`);
const reload = () => owner.query("notify pgrst, 'reload config'");

describe("settings in the database", () => {
  test("take effect at the start, and take precedence over the environment", async () => {
    await say("pgrst.db_max_rows", "3");
    await start({ PGRST_DB_MAX_ROWS: "5" });
    expect(await rowsOf("/rest/v1/numbers")).toHaveLength(3);
  });

  test("take effect on NOTIFY, and no request fails meanwhile", async () => {
    await start();
    expect(await rowsOf("/rest/v1/numbers")).toHaveLength(10);

    const statuses = new Set<number>();
    let busy = true;
    const crowd = Array.from({ length: 4 }, async () => {
      while (busy) statuses.add((await ask("/rest/v1/numbers")).status);
    });
    for (const rows of [3, 7]) {
      await say("pgrst.db_max_rows", String(rows));
      await reload();
      await until(async () => (await rowsOf("/rest/v1/numbers")).length === rows);
    }
    busy = false;
    await Promise.all(crowd);
    expect([...statuses]).toEqual([200]);
  });

  test("can set the exposed schemas", async () => {
    await start();
    expect((await ask("/rest/v1/totals")).status).toBe(404);
    await say("pgrst.db_schemas", "public, reports");
    await reload();
    await until(async () => (await ask("/rest/v1/totals", { "Accept-Profile": "reports" })).status === 200);
    expect(await rowsOf("/rest/v1/totals", { "Accept-Profile": "reports" })).toEqual([{ total: 42 }]);
    expect(await rowsOf("/rest/v1/numbers")).toHaveLength(10);
  });

  test("can change the secret: keys of the old one are rejected, those of the new one accepted", async () => {
    await start();
    expect((await ask("/rest/v1/numbers", { apikey: keyOf(OTHER_SECRET) })).status).toBe(401);
    await say("pgrst.jwt_secret", OTHER_SECRET);
    await reload();
    await until(async () => (await ask("/rest/v1/numbers", { apikey: keyOf(OTHER_SECRET) })).status === 200);
    expect((await ask("/rest/v1/numbers")).status).toBe(401);
  });

  test("that are invalid change nothing", async () => {
    await say("pgrst.db_max_rows", "3");
    await start();
    await say("pgrst.db_max_rows", "many");
    await reload();
    await owner.query("create table public.fresh (id int); grant select on public.fresh to anon");
    await until(async () => (await ask("/rest/v1/fresh")).status === 200);
    expect(await rowsOf("/rest/v1/numbers")).toHaveLength(3);
  });

  test("that name a missing function are warned about, at the start and later", async () => {
    const warned: string[] = [];
    const log = pino({ level: "warn" }, { write: (line: string) => void warned.push(JSON.parse(line).msg) });
    service = await serve(database, { PGRST_DB_PRE_REQUEST: "reports.check" }, { log });
    expect(warned).toEqual([expect.stringMatching(/^PGRST_DB_PRE_REQUEST names the function reports\.check,/)]);
    await say("pgrst.db_root_spec", "reports.root");
    await owner.query("create function reports.check() returns void language sql return null");
    await reload();
    await until(async () => warned.length > 1);
    expect(warned.slice(1)).toEqual([expect.stringMatching(/^PGRST_DB_ROOT_SPEC names the function reports\.root,/)]);
  });

  test("may be returned by a function", async () => {
    await owner.query(`
      create function reports.settings() returns void language sql security definer set search_path = '' as $$
        select pg_catalog.set_config('pgrst.db_max_rows', total::text, true) from reports.totals
      $$;
      update reports.totals set total = 2;
      grant usage on schema reports to authenticator;
      grant execute on function reports.settings to authenticator`);
    await start({ PGRST_DB_PRE_CONFIG: "reports.settings" });
    expect(await rowsOf("/rest/v1/numbers")).toHaveLength(2);
    await owner.query("update reports.totals set total = 4");
    await reload();
    await until(async () => (await rowsOf("/rest/v1/numbers")).length === 4);
  });

  test("can disable time zones, as if none existed", async () => {
    const prefer = (more = "") => ask("/rest/v1/numbers", { Prefer: `timezone=Asia/Tokyo${more}` });
    await start();
    expect((await prefer()).headers.get("preference-applied")).toBe("timezone=Asia/Tokyo");
    await say("pgrst.db_timezone_enabled", "false");
    await reload();
    await until(async () => (await prefer(", handling=strict")).status === 400);
    expect(await (await prefer(", handling=strict")).json()).toMatchObject({ code: "PGRST122" });
    expect((await prefer()).status).toBe(200);
    expect((await prefer()).headers.get("preference-applied")).toBeNull();
    await say("pgrst.db_timezone_enabled", "true");
    await reload();
    await until(async () => (await prefer(", handling=strict")).status === 200);
  });
});

test("PGRST_SERVER_TRACE_HEADER is echoed by every interface, in errors too", async () => {
  await start({ PGRST_SERVER_TRACE_HEADER: "X-Trace" });
  for (const path of ["/rest/v1/numbers", "/rest/v1/nothing", "/health", "/nothing"]) {
    expect((await ask(path, { "x-trace": "abc 1" })).headers.get("X-Trace")).toBe("abc 1");
    expect((await ask(path)).headers.get("X-Trace")).toBeNull();
  }
});

test("a key of auth.api_keys gives access to /rest/v1 until it is revoked", async () => {
  await start();
  const key = randomBytes(24).toString("base64url");
  const asKey = () => ask("/rest/v1/numbers", { apikey: key, Authorization: `Bearer ${key}` });
  expect((await asKey()).status).toBe(401);
  expect(await (await asKey()).json()).toMatchObject({ code: "PGRST301" });

  const another = randomBytes(24).toString("base64url");
  await owner.query("insert into auth.api_keys (key_hash, prefix, role) values ($1, $2, 'service_role')", [
    createHash("sha256").update(another).digest(),
    another.slice(0, 8),
  ]);
  await owner.query("grant insert on public.numbers to service_role");
  const write = () =>
    fetch(`${service.url}/rest/v1/numbers`, {
      method: "POST",
      headers: { apikey: another, "Content-Type": "application/json" },
      body: '{"n":11}',
    });
  expect((await write()).status).toBe(201);
  await owner.query("update auth.api_keys set revoked_at = now()");
  await until(async () => (await write()).status === 401);
});

test("DIRECT_DATABASE_URL is used for LISTEN and the task queue, and OWNER_DATABASE_URL for the owner's statements", async () => {
  const named = (name: string) => `${database.ownerUrl}&application_name=${name}`;
  await start({ OWNER_DATABASE_URL: named("owner"), DIRECT_DATABASE_URL: named("direct") });
  const sessions = "select application_name as name, query from pg_stat_activity where datname = current_database()";
  const namesOf = async (pattern: RegExp) => {
    const { rows } = await owner.query<{ name: string; query: string }>(sessions);
    return new Set(rows.filter(({ query }) => pattern.test(query)).map(({ name }) => name));
  };
  for (const pattern of [/^listen "/i, /\bjobs\.job_queue_id\b/]) {
    await until(async () => (await namesOf(pattern)).size > 0);
    expect(await namesOf(pattern)).toEqual(new Set(["direct"]));
  }
  expect(await namesOf(/./)).toContain("owner");
});

test("a service without requests keeps at most six connections, one of which listens", async () => {
  await start();
  const sessions = `
    select query from pg_stat_activity
    where datname = current_database() and backend_type <> 'background worker' and pid <> pg_backend_pid()`;
  const queries = async () => (await owner.query<{ query: string }>(sessions)).rows.map(({ query }) => query);
  // Connections of the start are closed after some seconds without use.
  await until(async () => (await queries()).length <= 6);
  expect((await queries()).filter((query) => /^(un)?listen |^notify /i.test(query))).toHaveLength(1);
});

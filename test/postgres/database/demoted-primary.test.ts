import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { signToken } from "../../../accounts/identity/tokens.ts";
import { readConfig } from "../../../config/config.ts";
import { startJobRunner } from "../../../jobs/queue/job-runner.ts";
import { runMigrations } from "../../../migrate/migrate.ts";
import { openListener } from "../../../postgres/client/listen.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { openDatabase } from "../../../postgres/database/database.ts";
import { OwnerPool } from "../../../postgres/database/owner-pool.ts";
import { makeLogger } from "../../../runtime/log/log.ts";
import { type Service, startService } from "../../../service/wiring/service.ts";
import { openWire } from "../../postgres-wire.ts";
import { PGBOUNCER, startPgBouncer } from "../../routers/pgbouncer.ts";
import { socketAddressOf } from "../../routers/router.ts";
import { SECRET } from "../../secret.ts";
import { type Pair, startPair } from "../../standby.ts";
import { until } from "../../until.ts";
import { anon } from "./open.ts";

const SCHEMA = `
  create role anon; create role authenticated; create role service_role bypassrls;
  create role authenticator login noinherit; grant anon, authenticated, service_role to authenticator;
  create table public.notes (id text primary key);
  grant select, insert on public.notes to anon;
  create function public.add_note(id text) returns void language sql as 'insert into public.notes values (id)'`;
const KEYS = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
const HEADERS = { apikey: signToken({ role: "anon" }, KEYS), "Content-Type": "application/json" };
const NO_PRIMARY = "There is no primary: the database servers that answer are standbys.";
const ONE_MINUTE_MS = 60_000;
const WRITE_PAUSE_MS = 10;
const log = { info() {}, warn() {} };

let root: string;
let pair: Pair;
let closing: AsyncDisposableStack;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "demoted-"));
  await chmod(root, 0o755);
  pair = await startPair(root);
  await withClient(pair.primary("postgres", "postgres"), async (client) => {
    await client.query(SCHEMA);
    await client.query("create database content");
  });
  await pair.caughtUp();
  closing = new AsyncDisposableStack();
});
afterEach(async () => {
  await closing.disposeAsync();
  await pair.stop();
  await rm(root, { recursive: true, force: true });
});

async function serveDatabase(settings: NodeJS.ProcessEnv): Promise<Service> {
  const { config } = readConfig({
    PORT: "0",
    LOG_LEVEL: "silent",
    JWT_SECRET: SECRET,
    RATE_LIMIT: "0",
    DRAIN_TIMEOUT_SECONDS: "0",
    DB_ACQUIRE_TIMEOUT_SECONDS: "1",
    ...settings,
  });
  const giveUp = (reason: Error) => {
    throw reason;
  };
  const service = await startService(config, { log: makeLogger(config), report: () => {}, onFatalError: giveUp });
  closing.defer(() => service.stop());
  return service;
}

/** Writes through a service again and again, and keeps the answers. */
class Writer {
  readonly answers = new Set<string>();
  readonly acknowledged: string[] = [];
  readonly #service: Service;
  readonly #name: string;
  #isBusy = true;
  readonly #ended: Promise<unknown>;

  constructor(service: Service, name: string) {
    this.#service = service;
    this.#name = name;
    this.#ended = Promise.all([this.#write("notes"), this.#write("rpc/add_note")]);
  }

  /** Resolves when writes that begin from now on succeed. */
  async succeeds(): Promise<void> {
    const { length } = this.acknowledged;
    await until(() => this.acknowledged.length > length + 4);
  }

  async stop(): Promise<void> {
    this.#isBusy = false;
    await this.#ended;
  }

  async #write(path: string): Promise<void> {
    // Without a pause, refused writes alone would keep a processor busy.
    for (let number = 0; this.#isBusy; number++, await sleep(WRITE_PAUSE_MS)) {
      const id = `${this.#name} ${path} ${number}`;
      const request = { method: "POST", headers: HEADERS, body: JSON.stringify({ id }) };
      const response = await fetch(`${this.#service.url}/rest/v1/${path}`, request);
      if (response.ok) this.acknowledged.push(id);
      else {
        const { code } = (await response.json()) as { code: string };
        this.answers.add(`${response.status} ${code} ${response.headers.has("retry-after")}`);
      }
    }
  }
}

const healthOf = async ({ url }: Service) => (await fetch(`${url}/health`)).json() as Promise<{ reason?: string }>;
const lacksPrimary = (service: Service) => until(async () => (await healthOf(service)).reason === NO_PRIMARY);

/** The sessions of services on the server at the former primary's address. */
const sessionsOnFormer = () =>
  withClient(pair.primary("postgres", "postgres"), async (client) => {
    const { rowCount } = await client.query(
      "select from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
    );
    return rowCount;
  });

async function idsIn(url: string): Promise<string[]> {
  const { rows } = await withClient(url, (client) => client.query<{ id: string }>("select id from notes order by id"));
  return rows.map(({ id }) => id);
}

test("a switchover is followed, by both hosts and by a relay, and no acknowledged write is lost", async () => {
  const relay = await openWire(pair.primary("authenticator", "postgres"));
  closing.defer(() => relay.close());
  const OWNER_DATABASE_URL = pair.both("postgres", "postgres");
  const direct = await serveDatabase({ DATABASE_URL: pair.both("authenticator", "postgres"), OWNER_DATABASE_URL });
  const relayed = await serveDatabase({ DATABASE_URL: relay.url, OWNER_DATABASE_URL });
  const ofDirect = new Writer(direct, "direct");
  const ofRelayed = new Writer(relayed, "relayed");
  const writers = [ofDirect, ofRelayed];
  for (const writer of writers) closing.defer(() => writer.stop());
  await Promise.all(writers.map((writer) => writer.succeeds()));

  await pair.stopPrimary();
  await lacksPrimary(direct);
  await pair.promoteStandby();
  await ofDirect.succeeds();
  // The work that listens starts again a moment later.
  await until(async () => (await healthOf(direct)).reason === undefined);

  // The relay still leads to the former primary.
  await pair.startFormerPrimary();
  await lacksPrimary(relayed);
  ofRelayed.answers.clear();
  await until(() => ofRelayed.answers.has("503 PGRST000 true"));
  await until(async () => (await sessionsOnFormer()) === 0);
  relay.leadTo(pair.standby("authenticator", "postgres"));
  await ofRelayed.succeeds();

  await Promise.all(writers.map((writer) => writer.stop()));
  const answers = writers.flatMap((writer) => [...writer.answers]);
  // A busy machine may open no connection within the time that a request waits for one: 504.
  expect(
    answers.filter((answer) => !/^(?:503 (?:PGRST000|PGRST001|08007|57P0[1-3])|504 PGRST003) true$/.test(answer)),
  ).toEqual([]);
  const kept = new Set(await idsIn(pair.standby("postgres", "postgres")));
  expect(writers.flatMap(({ acknowledged }) => acknowledged).filter((id) => !kept.has(id))).toEqual([]);
});

test("migrations, LISTEN and the task queue follow the primary", async () => {
  const urlOf = (name: string) => `${pair.both("postgres", name)}&target_session_attrs=primary`;
  await runMigrations(
    { name: "migrate" },
    { url: urlOf("content"), shadowUrl: urlOf("shadow"), rootUrl: urlOf("postgres") },
  );
  const listener = openListener({ url: urlOf("content"), log: { ...log, error() {} } });
  closing.defer(() => listener.close());
  const heard: string[] = [];
  let gaps = 0;
  listener.onGap(() => gaps++);
  await listener.listen("news", (payload) => heard.push(payload));
  const done: unknown[] = [];
  const jobs = await startJobRunner({
    url: urlOf("content"),
    listener,
    lanes: [{ name: "notes", tasks: { note: async (payload) => void done.push(payload) }, concurrency: 2 }],
    maintain: async () => {},
    cancelRunning: async () => {},
    log: makeLogger(readConfig({ LOG_LEVEL: "silent" }).config),
  });
  closing.defer(() => jobs.close(0));
  const send = (payload: string) =>
    withClient(urlOf("content"), async (client) => {
      await client.query("select pg_notify('news', $1)", [payload]);
      await client.query("select graphile_worker.add_job('note', to_json($1::text))", [payload]);
    });
  await send("before");
  await until(() => heard.length === 1 && done.length === 1);

  await pair.stopPrimary();
  await pair.promoteStandby();
  await pair.startFormerPrimary();
  await until(() => gaps > 0);
  await send("after");
  await until(() => heard.length === 2 && done.length === 2);
  expect({ heard, done }).toEqual({ heard: ["before", "after"], done: ["before", "after"] });
  // The former primary is the first host.
  await runMigrations(
    { name: "migrate" },
    { url: urlOf("content"), shadowUrl: urlOf("shadow"), rootUrl: urlOf("postgres") },
  );
});

// The sessions with PgBouncer stay open while the server behind it becomes a standby.
test.skipIf(!existsSync(PGBOUNCER))("behind PgBouncer, requests that meet a standby wait for a primary", async () => {
  const router = await startPgBouncer(socketAddressOf(pair.primary("postgres", "postgres")));
  closing.defer(() => router.close());
  const urlOf = (role: string) => `postgresql://${role}@127.0.0.1:${router.port}/postgres`;
  const [url, ownerUrl] = [urlOf("authenticator"), urlOf("postgres")].map(
    (each) => `${each}?target_session_attrs=primary`,
  );
  const database = openDatabase({
    url: url!,
    ownerUrl: ownerUrl!,
    log,
    preparedStatements: false,
    acquireTimeout: ONE_MINUTE_MS,
  });
  closing.defer(() => database.close());
  const owner = new OwnerPool({ url: ownerUrl!, applicationName: "owner", acquireTimeout: ONE_MINUTE_MS });
  closing.defer(() => owner.close());
  const reader = await serveDatabase({
    DATABASE_URL: urlOf("authenticator"),
    OWNER_DATABASE_URL: urlOf("postgres"),
    DIRECT_DATABASE_URL: pair.both("postgres", "postgres"),
    DB_PREPARED_STATEMENTS: "false",
  });
  const insert = (id: string) => ({ text: "insert into public.notes values ($1)", values: [id] });
  await database.run(anon, insert("before"));
  await owner.lend((client) => client.query("select"));
  const read = () => fetch(`${reader.url}/rest/v1/notes?id=eq.before`, { headers: HEADERS });
  expect(await (await read()).json()).toHaveLength(1);

  await pair.stopPrimary();
  await pair.promoteStandby();
  await pair.startFormerPrimary();
  // PgBouncer refuses each login for a moment.
  for (const role of ["authenticator", "postgres"]) {
    await until(() =>
      withClient(urlOf(role), (client) => client.query("select")).then(
        () => true,
        () => false,
      ),
    );
  }
  const work = Promise.all([
    database.run(anon, insert("run")),
    database.run(anon, insert("rolled back"), { rollback: true }),
    database.transaction(anon, async (query) => {
      await query(insert("transaction"));
      await query(insert("transaction, too"));
    }),
    owner.lend((client) => client.query("insert into public.notes values ('owner')")),
  ]);
  await until(() => database.state().lacksPrimary);
  expect(database.state().reason).toBe(`no primary: 127.0.0.1:${router.port} is a standby`);
  // It only reads, and finds out by itself.
  await lacksPrimary(reader);
  expect((await read()).status).toBe(503);

  await pair.killStandby();
  await withClient(pair.primary("postgres", "postgres"), (client) => client.query("select pg_promote()"));
  await work;
  await until(async () => (await read()).status === 200);
  expect(await idsIn(pair.primary("postgres", "postgres"))).toEqual([
    "before",
    "owner",
    "run",
    "transaction",
    "transaction, too",
  ]);
});

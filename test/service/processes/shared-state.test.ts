import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { runMigrations } from "../../../migrate/migrate.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useClient, useDatabase } from "../../database.ts";
import { SEED } from "../../db/callers.ts";
import { useFixture } from "../../fixture.ts";
import { type Program, startGateway } from "../../program.ts";
import { anonKey, makeClient, subscribed } from "../../realtime/service.ts";
import { SECRET } from "../../secret.ts";
import { startPair } from "../../standby.ts";
import { until } from "../../until.ts";
import { ask } from "./traffic.ts";

const LIMIT = 40;
const MAX_SOCKETS = 4;
const PASSWORD = "Tangerine-Boat-7";

const serviceKey = jwt.sign({ role: "service_role" }, SECRET);

const database = useDatabase({ sql: SEED });
const owner = useClient(database.ownerUrl);
beforeAll(() =>
  owner.query(`
    create table public.ledger (id bigint generated always as identity, note text not null);
    grant select, insert on public.ledger to service_role;
    create function public.note(note text) returns void language sql as 'insert into public.ledger (note) values ($1)';
    grant execute on function public.note to service_role`),
);
const program = useFixture(() =>
  startGateway(database, {
    WEB_CONCURRENCY: "2",
    RATE_LIMIT: String(LIMIT),
    WEBSOCKET_MAX_CONNECTIONS: String(MAX_SOCKETS),
  }),
);

const at = (path: string) => `${program.url}${path}`;

/** Each caller has a limit of its own. */
let callers = 0;
const newCaller = () => jwt.sign({ role: "service_role", sub: `caller-${++callers}` }, SECRET);

/** Sends a request on a connection of its own: the workers take turns. */
const send = (path: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
  fetch(at(path), {
    method: "POST",
    headers: { "Content-Type": "application/json", Connection: "close", ...headers },
    body: JSON.stringify(body),
  });

describe("the limits of two workers are those of the service", () => {
  test("RATE_LIMIT", async () => {
    const headers = { apikey: anonKey, Authorization: `Bearer ${newCaller()}` };
    const reported = async () => {
      const { rows } = await owner.query("select coalesce(max(points), 0) as points from content_service.rate_limits");
      return Number(rows[0].points);
    };
    const statuses: number[] = [];
    let admitted = 0;
    for (let sent = 0; sent < 3 * LIMIT; sent++) {
      const { status } = await ask(at("/rest/v1/ledger?limit=1"), { headers });
      statuses.push(status);
      if (status === 200) admitted++;
      // Requests that arrive during a report are counted later.
      await until(async () => (await reported()) > admitted - LIMIT / 10);
    }
    expect(admitted).toBeGreaterThanOrEqual(LIMIT);
    // Each worker may admit a twentieth of the limit that it has not reported.
    expect(admitted).toBeLessThan(1.5 * LIMIT);
    expect(new Set(statuses.slice(-LIMIT))).toEqual(new Set([429]));
  });

  test("WEBSOCKET_MAX_CONNECTIONS", async () => {
    const open = async () => {
      const socket = new WebSocket(`${program.url.replace("http", "ws")}/graphql`, "graphql-transport-ws");
      const refusal = once(socket, "unexpected-response").then(([, { statusCode }]) => statusCode as number);
      const status = await Promise.race([once(socket, "open").then(() => 101), refusal]);
      return { socket, status };
    };
    const sockets: WebSocket[] = [];
    // The worker learns of the other one's connections a moment later.
    await until(async () => {
      const { socket, status } = await open();
      if (status === 101) sockets.push(socket);
      return status === 503;
    });
    expect(sockets.length).toBeLessThanOrEqual(MAX_SOCKETS + 1);
    expect([(await open()).status, (await open()).status]).toEqual([503, 503]);
    for (const socket of sockets) socket.close();
    await until(async () => {
      const { socket, status } = await open();
      socket.close();
      return status === 101;
    });
  });
});

describe("two workers", () => {
  test("run a write with an Idempotency-Key once", async () => {
    const headers = { apikey: serviceKey, Authorization: `Bearer ${newCaller()}`, "Idempotency-Key": "once" };
    const sent = Array.from({ length: 6 }, () => send("/rest/v1/ledger", { note: "once" }, headers));
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    expect(statuses).toContain(201);
    const { rows } = await owner.query("select count(*)::int as rows from public.ledger where note = 'once'");
    expect(rows).toEqual([{ rows: 1 }]);
    expect([(await send("/rest/v1/ledger", { note: "once" }, headers)).status]).toEqual([201]);
    expect((await owner.query("select from public.ledger where note = 'once'")).rowCount).toBe(1);
  });

  test("both report the state of a task", async () => {
    const headers = { apikey: serviceKey, Authorization: `Bearer ${newCaller()}` };
    const queued = await send("/rest/v1/rpc/note", { note: "later" }, { ...headers, Prefer: "respond-async" });
    expect(queued.status).toBe(202);
    const location = queued.headers.get("location")!;
    const statesOf = () =>
      Promise.all(
        Array.from({ length: 4 }, async () => {
          const { text } = await ask(new URL(location, program.url).href, { headers });
          return (JSON.parse(text) as { status: string }).status;
        }),
      );
    await until(async () => (await statesOf()).every((state) => state === "done"));
  });

  test("both accept a session and its CSRF token, and both end it", async () => {
    const account = { email: "edda@example.org", password: PASSWORD, name: "Edda" };
    expect((await send("/auth/register", account)).status).toBe(201);
    const login = await send("/api/auth/login", { username: account.email, password: PASSWORD });
    const Cookie = login.headers.get("set-cookie")!.split(";")[0]!;
    const statuses = async () => {
      const responses = Array.from({ length: 4 }, () => ask(at("/api/auth/me"), { headers: { Cookie } }));
      return (await Promise.all(responses)).map(({ status }) => status);
    };
    expect(await statuses()).toEqual([200, 200, 200, 200]);
    const { csrfToken } = JSON.parse((await ask(at("/csrf-token"), { headers: { Cookie } })).text);
    const logout = () => send("/api/auth/logout", {}, { Cookie, "X-CSRF-Token": csrfToken });
    expect((await logout()).status).toBe(200);
    await until(async () => (await statuses()).every((status) => status === 401));
  });
});

describe("two workers of a database without logical replication", () => {
  test("share broadcasts and presence", async () => {
    const name = `${database.name}_plain`;
    await owner.query(`create role ${name} login in role postgres`);
    await owner.query(`grant create on database ${database.name} to ${name}`);
    const service = await startGateway(database, {
      WEB_CONCURRENCY: "2",
      DIRECT_DATABASE_URL: database.ownerUrl.replace("postgres@", `${name}@`),
    });
    // The workers take turns, so each has two.
    const clients = Array.from({ length: 4 }, () => makeClient(service.url));
    try {
      const received = clients.map(() => new Set<string>());
      const channels = clients.map((client, number) =>
        client
          .channel("room", { config: { presence: { key: `client ${number}` }, broadcast: { self: true } } })
          .on("broadcast", { event: "word" }, ({ payload }) => received[number]!.add(payload.from))
          .on("presence", { event: "sync" }, () => {}),
      );
      for (const channel of channels.slice(0, 3)) {
        await subscribed(channel);
        await channel.track({});
      }
      await subscribed(channels[3]!);
      await until(() => channels.every((channel) => Object.keys(channel.presenceState()).length === 3));
      for (const [number, channel] of channels.entries()) {
        await channel.send({ type: "broadcast", event: "word", payload: { from: `client ${number}` } });
      }
      await until(() => received.every(({ size }) => size === 4));
      await channels[0]!.untrack();
      await expect
        .poll(() => channels.every((channel) => Object.keys(channel.presenceState()).length === 2))
        .toBe(true);
    } finally {
      await Promise.all(clients.map((client) => client.removeAllChannels()));
      await service.kill();
      await owner.query(`drop owned by ${name}`);
      await owner.query(`drop role ${name}`);
    }
  });
});

describe("two workers with a read replica", () => {
  test("read each other's writes of a caller, however far the replica is behind", async () => {
    const root = await mkdtemp(join(tmpdir(), "content-service-workers-"));
    await chmod(root, 0o755);
    const pair = await startPair(root);
    const urlOf = (name: string) => pair.primary("postgres", name);
    let service: Program | null = null;
    try {
      await withClient(urlOf("postgres"), (client) => client.query("create database content"));
      const migrate = { url: urlOf("content"), shadowUrl: urlOf("shadow"), rootUrl: urlOf("postgres") };
      await runMigrations({ name: "migrate" }, migrate);
      await withClient(urlOf("content"), (client) =>
        client.query(`
          create table public.counters (id int primary key, count int not null);
          insert into public.counters values (1, 0);
          grant select, update on public.counters to service_role`),
      );
      await pair.caughtUp();
      const external = { url: pair.primary("authenticator", "content"), ownerUrl: urlOf("content") };
      service = await startGateway(external, {
        WEB_CONCURRENCY: "2",
        RATE_LIMIT: "0",
        READ_DATABASE_URLS: pair.standby("authenticator", "content"),
      });
      const { url } = service;
      const headers = { apikey: anonKey, Authorization: `Bearer ${newCaller()}` };
      const counts = () =>
        Promise.all(
          Array.from({ length: 4 }, async () => {
            const { text } = await ask(`${url}/rest/v1/counters?select=count`, { headers });
            return (JSON.parse(text) as [{ count: number }])[0].count;
          }),
        );
      const isReadByReplica = () =>
        withClient(pair.standby("postgres", "content"), async (client) => {
          const { rowCount } = await client.query(
            "select from pg_stat_activity where usename = 'authenticator' and query like '%counters%'",
          );
          return rowCount! > 1;
        });
      await until(async () => {
        await counts();
        return isReadByReplica();
      });
      await withClient(pair.standby("postgres", "content"), (client) => client.query("select pg_wal_replay_pause()"));
      for (let count = 1; count <= 5; count++) {
        const written = await fetch(`${url}/rest/v1/counters?id=eq.1`, {
          method: "PATCH",
          headers: { ...headers, "Content-Type": "application/json", Connection: "close" },
          body: JSON.stringify({ count }),
        });
        expect(written.status).toBe(204);
        expect(await counts()).toEqual([count, count, count, count]);
      }
    } finally {
      await service?.kill();
      await pair.stop();
      await rm(root, { recursive: true, force: true });
    }
  });
});

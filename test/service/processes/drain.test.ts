import { once } from "node:events";
import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "graphql-ws";
import { afterEach, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { useClient, useDatabase } from "../../database.ts";
import { type Program, startGateway } from "../../program.ts";
import { anonKey } from "../../realtime/service.ts";
import { until } from "../../until.ts";
import { ask } from "./traffic.ts";

/** Waits until the test says so, wherever it is asked for. */
const SCHEMA = `
  create table public.gate (is_open boolean not null default false);
  insert into public.gate default values;
  create function public.wait() returns text volatile security definer set search_path = '' language plpgsql as $$
  begin
    -- Read committed: each look sees what was committed by then.
    while not (select is_open from public.gate) loop perform pg_sleep(0.02); end loop;
    return 'waited';
  end $$;
  grant execute on function public.wait to anon;
`;

let program: Program;

const database = useDatabase({ sql: SCHEMA });
const owner = useClient(database.ownerUrl);
afterEach(async () => {
  await program.kill();
  // A session whose client was killed goes on waiting, and would pass for one of the next test.
  await openGate();
  await until(async () => !(await isWaiting()));
  await owner.query("update public.gate set is_open = false");
});

async function start(settings: NodeJS.ProcessEnv): Promise<void> {
  // Requests in flight end sooner, even on a slow machine.
  const patience = { DRAIN_TIMEOUT_SECONDS: "300", DB_STATEMENT_TIMEOUT_SECONDS: "300" };
  program = await startGateway(database, { ...patience, ...settings });
}

const openGate = () => owner.query("update public.gate set is_open = true");

/** Returns the outcome of a request that is in flight until the gate is opened, with others so that so many are. */
async function sendWaiting(count = 1): Promise<{ readonly outcome: Promise<unknown> }> {
  const answer = ask(`${program.url}/rest/v1/rpc/wait`, { headers: { apikey: anonKey }, method: "POST" });
  const outcome = answer.then(
    ({ status, text, headers }) => ({ status, text, connection: headers.connection }),
    (error: Error) => error.message,
  );
  await until(() => isWaiting(count));
  return { outcome };
}

/** The same of an operation on a GraphQL socket of its own. */
function startWaitingOperation(): { readonly result: Promise<unknown>; readonly closeCode: Promise<number> } {
  const closed = Promise.withResolvers<number>();
  const client = createClient({
    url: `${program.url.replace("http", "ws")}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
    on: { closed: (event) => closed.resolve((event as { code: number }).code) },
  });
  const result = new Promise((resolve, reject) => {
    client.subscribe({ query: "mutation { wait }" }, { next: resolve, error: reject, complete() {} });
  });
  return { result, closeCode: closed.promise };
}

async function isWaiting(count = 1): Promise<boolean> {
  const { rowCount } = await owner.query(
    String.raw`select from pg_stat_activity
      where datname = current_database() and usename = 'authenticator' and state = 'active' and query ~ '\mwait\M'`,
  );
  return rowCount! >= count;
}

async function socketAt(path: string, protocol?: string): Promise<{ socket: WebSocket; closed: Promise<unknown[]> }> {
  const socket = new WebSocket(`${program.url.replace("http", "ws")}${path}`, protocol);
  const closed = once(socket, "close").then(([code, reason]) => [code, String(reason)]);
  await once(socket, "open");
  return { socket, closed };
}

const turnsAway = async () => (await ask(`${program.url}/health/live`)).status === 503;

describe.each([
  ["one process", "1"],
  ["several processes", "2"],
])("SIGTERM to %s", (_size, workers) => {
  test("finishes open requests and GraphQL operations, closes sockets with a reason, refuses new requests, and exits with 0", async () => {
    await start({ WEB_CONCURRENCY: workers, GRAPHQL_PRELOAD: "on" });
    const operation = startWaitingOperation();
    const { outcome } = await sendWaiting(2);
    const channel = await socketAt(`/realtime/v1/websocket?vsn=2.0.0&apikey=${anonKey}`);
    const graphql = await socketAt("/graphql", "graphql-transport-ws");
    const ended = once(program.child, "close");
    program.child.kill("SIGTERM");
    expect(await channel.closed).toEqual([1001, "Going away"]);
    expect(await graphql.closed).toEqual([1001, "Going away"]);
    await until(turnsAway);
    await openGate();
    expect(await outcome).toEqual({ status: 200, text: '"waited"', connection: "close" });
    expect(await operation.result).toMatchObject({ data: { wait: expect.anything() } });
    expect(await operation.closeCode).toBe(1001);
    expect((await ended)[0]).toBe(0);
  });

  test("answers all connections until the end and refuses them then, and resets none, though all connect again at once", async () => {
    await start({ WEB_CONCURRENCY: workers, LOG_LEVEL: "silent", RATE_LIMIT: "0" });
    const ended = once(program.child, "close");
    let answered = 0;
    const whileStopping = new Set<string>();
    const request = async () => {
      const { status, headers } = await ask(`${program.url}/rest/v1/gate`, { headers: { apikey: anonKey } });
      if (status !== 401)
        whileStopping.add(`${status}, ${headers.connection}, again after ${headers["retry-after"]} s`);
    };
    const address = `${program.url.replace("http", "ws")}/realtime/v1/websocket?vsn=2.0.0&apikey=${anonKey}`;
    const connectSocket = () => once(new WebSocket(address), "close");
    const lastErrors = [...Array(32).fill(request), ...Array(24).fill(connectSocket)].map(async (attempt) => {
      for (;;) {
        const error = await attempt().then(
          () => null,
          (thrown: NodeJS.ErrnoException) => thrown,
        );
        answered++;
        // A refused upgrade has an HTTP status.
        if (error && !error.message.startsWith("Unexpected server response")) return error.code;
      }
    });
    await until(() => answered > 200);
    program.child.kill("SIGTERM");
    expect(new Set(await Promise.all(lastErrors))).toEqual(new Set(["ECONNREFUSED"]));
    expect([...whileStopping]).toEqual(["503, close, again after 1 s"]);
    expect((await ended)[0]).toBe(0);
  });

  test("serves requests and keeps sockets for DRAIN_DELAY_SECONDS, during which it is not ready", async () => {
    await start({ WEB_CONCURRENCY: workers, DRAIN_DELAY_SECONDS: "300" });
    const channel = await socketAt(`/realtime/v1/websocket?vsn=2.0.0&apikey=${anonKey}`);
    program.child.kill("SIGTERM");
    await until(async () => (await ask(`${program.url}/health/ready`)).status === 503);
    const { status, headers } = await ask(`${program.url}/health/live`, { agent: new Agent({ keepAlive: true }) });
    expect({ status, connection: headers.connection }).toEqual({ status: 200, connection: "keep-alive" });
    expect(channel.socket.readyState).toBe(WebSocket.OPEN);
    const late = await socketAt(`/realtime/v1/websocket?vsn=2.0.0&apikey=${anonKey}`);
    expect(late.socket.readyState).toBe(WebSocket.OPEN);
  });

  test("a second signal ends the process immediately", async () => {
    await start({ WEB_CONCURRENCY: workers });
    const { outcome } = await sendWaiting();
    const ended = once(program.child, "close");
    program.child.kill("SIGTERM");
    await until(turnsAway);
    // An earlier signal would count as the same one, which npm and a terminal both send.
    await sleep(300);
    program.child.kill("SIGTERM");
    expect((await ended)[0]).toBe(1);
    expect(await outcome).toBe("socket hang up");
  });
});

describe("SIGTERM", () => {
  test("cancels requests that exceed DRAIN_TIMEOUT_SECONDS, gives tasks no more time, and leaves unfinished ones to another gateway", async () => {
    // The work that is closed after both takes less.
    await start({ DRAIN_TIMEOUT_SECONDS: "7", DB_ANON_STATEMENT_TIMEOUT_SECONDS: "60" });
    const headers = { apikey: anonKey, Prefer: "respond-async" };
    const { status } = await ask(`${program.url}/rest/v1/rpc/wait`, { headers, method: "POST" });
    expect(status).toBe(202);
    await until(() => isWaiting());
    const { outcome } = await sendWaiting(2);
    const ended = once(program.child, "close");
    program.child.kill("SIGTERM");
    expect(await outcome).toBe("socket hang up");
    expect((await ended)[0]).toBe(0);
    const { rows } = await owner.query(
      "select status, locked_by from content_service.tasks, graphile_worker._private_jobs",
    );
    expect(rows).toEqual([{ status: "queued", locked_by: null }]);
    await owner.query("delete from graphile_worker._private_jobs; delete from content_service.tasks");
  });
});

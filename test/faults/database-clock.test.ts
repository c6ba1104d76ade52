import { randomUUID } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Receiver, startReceiver } from "../jobs/webhooks/receiver.ts";
import { anonKey } from "../realtime/service.ts";
import { until } from "../until.ts";
import { MAY_MOVE_CLOCK, type MovedClock, makeMovedClock } from "./moved-clock.ts";
import { type OwnPostgres, startOwnPostgres } from "./own-postgres.ts";
import { type ServiceProcess, startServiceProcess } from "./service-process.ts";

if (!MAY_MOVE_CLOCK)
  console.log("A clock of the database that jumps is not tried: Debian's package faketime is missing.");

const HOUR = 3_600;
let opened: AsyncDisposableStack;
let clock: MovedClock;
let postgres: OwnPostgres;
let service: ServiceProcess;
let receiver: Receiver;
let last = 0;

const received = new Set<number>();

beforeAll(async () => {
  opened = new AsyncDisposableStack();
  if (!MAY_MOVE_CLOCK) return;
  const folder = await mkdtemp(join(tmpdir(), "content-service-clock-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o755);
  clock = await makeMovedClock(folder);
  postgres = opened.use(await startOwnPostgres({ binaries: clock.binaries }));
  receiver = opened.adopt(await startReceiver(), (each) => each.close());
  receiver.respond = (response, { body }) => {
    received.add(Number((JSON.parse(body) as { record: { number: number } }).record.number));
    response.end();
  };
  await postgres.execute(`
    grant select on public.marks to service_role;
    create table public.done (number bigint);
    create function public.mark(number bigint) returns void language sql security definer as 'insert into public.done values (number)';
    grant execute on function public.mark to anon;
    insert into api.webhooks (name, table_name, events, url, role)
      values ('marks', 'public.marks', '{INSERT}', '${receiver.url}', 'service_role')`);
  service = opened.use(
    await startServiceProcess({
      DATABASE_URL: postgres.url,
      OWNER_DATABASE_URL: postgres.ownerUrl,
      WEBHOOK_NETWORK: "loopback",
      AUTH_AUTOCONFIRM: "true",
      RATE_LIMIT: "6000",
      DB_ACQUIRE_TIMEOUT_SECONDS: "10",
    }),
  );
});
afterAll(() => opened.disposeAsync());

function post(path: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(service.url + path, {
    method: "POST",
    headers: { apikey: anonKey, "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

async function health(): Promise<string> {
  return ((await (await fetch(`${service.url}/health`)).json()) as { status: string }).status;
}

const countDone = async (number: number): Promise<number> =>
  (await postgres.execute(`select count(*)::int as count from public.done where number = ${number}`)).rows[0].count;

/** Resolves when each part has worked again, with rows that are written from now on. */
async function allWorks(): Promise<void> {
  const number = ++last;
  expect((await post("/rest/v1/marks", { number }, { "Idempotency-Key": randomUUID() })).status).toBe(201);
  await until(() => received.has(number));
  expect((await post("/rest/v1/rpc/mark", { number }, { Prefer: "respond-async" })).status).toBe(202);
  await until(async () => (await countDone(number)) === 1);
  await signInWorks();
  await until(async () => (await health()) === "ok");
}

/** A token that is issued now is accepted now, and so is its successor. */
async function signInWorks(): Promise<void> {
  const credentials = { email: `user${++last}@example.com`, password: `Correct-Horse-${last}` };
  const { access_token, refresh_token } = await bodyOf(await post("/auth/v1/signup", credentials));
  expect(await userStatus(access_token!)).toBe(200);
  const successor = await bodyOf(await post("/auth/v1/token?grant_type=refresh_token", { refresh_token }));
  expect(await userStatus(successor.access_token!)).toBe(200);
}

const bodyOf = async (response: Response) => (await response.json()) as Readonly<Record<string, string>>;

async function userStatus(token: string): Promise<number> {
  const headers = { apikey: anonKey, Authorization: `Bearer ${token}` };
  return (await fetch(`${service.url}/auth/v1/user`, { headers })).status;
}

describe.runIf(MAY_MOVE_CLOCK)("everything works", () => {
  test.each([
    ["before the database's clock jumps", 0],
    ["after it was set forward by an hour", HOUR],
    ["after it was set back by an hour", 0],
    ["after it was set back by another hour", -HOUR],
    ["after it was set right", 0],
  ])("%s", async (_, seconds) => {
    await clock.moveTo(seconds);
    const { rows } = await postgres.execute("select extract(epoch from clock_timestamp())::float as now");
    expect(Math.abs(rows[0].now - Date.now() / 1_000 - seconds)).toBeLessThan(60);
    await allWorks();
  });
});

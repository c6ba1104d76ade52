import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../../service.ts";
import { type Client, openClient, type Told } from "../table/client.ts";
import { SECRET } from "../table/differential/answer.ts";
import { serve } from "../table/differential/service.ts";
import { newOrder, openShop, type Shop } from "./orders.ts";
import { openTunnel, type Tunnel } from "./tunnel.ts";

const REPOSITORY = join(import.meta.dirname, "../../..");

let shop: Shop;
/** Survives. */
let service: Service;
let client: Client;
let tunnel: Tunnel;

beforeAll(async () => {
  shop = await openShop();
  tunnel = await openTunnel(shop);
  service = await serve(shop);
  client = openClient(service.url);
});
afterAll(async () => {
  client.close();
  await service.stop();
  await tunnel[Symbol.asyncDispose]();
  await shop.drop();
});

const isReplay = ({ headers }: Told) => headers["idempotent-replayed"] === "true";
/** The sessions that are making a slow change. */
const underWay = async () => {
  const { rows } = await shop.owner.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'",
  );
  return rows.map(({ pid }) => pid);
};

async function until<T>(find: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await find();
    if (found !== undefined) return found;
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** A gateway in a process of its own, which reaches the database through the tunnel. */
async function startGateway(): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const child = spawn(process.execPath, [join(REPOSITORY, "server.ts")], {
    cwd: REPOSITORY,
    env: {
      PATH: process.env.PATH,
      PORT: "0",
      LOG_LEVEL: "silent",
      DATABASE_URL: tunnel.url,
      OWNER_DATABASE_URL: shop.ownerUrl,
      JWT_SECRET: SECRET,
      RATE_LIMIT: "0",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  child.stdout.on("data", (chunk) => (printed += chunk));
  const url = await until(async () => {
    if (child.exitCode !== null) throw new Error(`The gateway has ended by itself:\n${printed}`);
    return printed.includes("ready in") ? /address +(\S+)/.exec(printed)?.[1] : undefined;
  });
  return { child, url };
}

describe("a gateway that is killed", () => {
  test("after the commit and before the answer has made the change: another one repeats the answer", async () => {
    const { child, url } = await startGateway();
    const doomed = openClient(url);
    const { item, headers } = newOrder();
    const asked = { method: "POST", body: { item }, headers: { ...headers, Prefer: "return=representation" } };
    const ended = once(child, "close");
    tunnel.loseCommits(() => child.kill("SIGKILL"));
    await expect(doomed.ask("/orders", asked)).rejects.toThrow();
    await ended;
    doomed.close();
    expect(await shop.ordered(item)).toBe(1);

    const again = await client.ask("/orders", asked);
    expect(again).toMatchObject({ status: 201, body: [{ item }] });
    expect(isReplay(again)).toBe(true);
    expect(await shop.ordered(item)).toBe(1);
  });

  test("before the commit has changed nothing: another one makes the change", async () => {
    const { child, url } = await startGateway();
    const doomed = openClient(url);
    const { item, headers } = newOrder();
    const asked = { method: "POST", body: { item, seconds: 1 }, headers };
    const first = expect(doomed.ask("/rpc/order_slowly", asked)).rejects.toThrow();
    await until(async () => (await underWay())[0]);
    child.kill("SIGKILL");
    await first;
    doomed.close();

    // The server has not noticed yet, and still works on what nobody will commit.
    expect(await underWay()).toHaveLength(1);
    const again = await client.ask("/rpc/order_slowly", asked);
    expect(again).toMatchObject({ status: 200, body: 1 });
    expect(isReplay(again)).toBe(false);
    expect(await shop.ordered(item)).toBe(1);
  });
});

describe("a connection that is lost", () => {
  test("with the answer to the commit on it: the gateway finds out by itself what has become of it", async () => {
    const gateway = await serve({ ...shop, url: tunnel.url });
    const asking = openClient(gateway.url);
    const { item, headers } = newOrder();
    const asked = { method: "POST", body: { item }, headers: { ...headers, Prefer: "return=representation" } };
    let isCut = false;
    tunnel.loseCommits(() => {
      isCut = true;
    });
    const told = await asking.ask("/orders", asked);
    expect(isCut).toBe(true);
    expect(told).toMatchObject({ status: 201, body: [{ item }] });
    expect(isReplay(told)).toBe(true);
    expect(await shop.ordered(item)).toBe(1);
    asking.close();
    await gateway.stop();
  });

  test("while the change is being made: nothing is changed, and the next attempt makes it", async () => {
    const { item, headers } = newOrder();
    const asked = { method: "POST", body: { item, seconds: 2 }, headers };
    const first = client.ask("/rpc/order_slowly", asked);
    const pid = await until(async () => (await underWay())[0]);
    await shop.owner.query("select pg_terminate_backend($1)", [pid]);
    expect((await first).status).toBe(503);
    expect(await shop.ordered(item)).toBe(0);
    expect(await client.ask("/rpc/order_slowly", asked)).toMatchObject({ status: 200, body: 1 });
    expect(await shop.ordered(item)).toBe(1);
  });

  test("of the client: the change is finished, and told to who asks again", async () => {
    const { item, headers } = newOrder();
    const asked = { method: "POST", body: { item, seconds: 1 }, headers };
    const hasty = openClient(service.url);
    const first = expect(hasty.ask("/rpc/order_slowly", asked)).rejects.toThrow();
    await until(async () => (await underWay())[0]);
    hasty.close();
    await first;
    const again = await client.ask("/rpc/order_slowly", asked);
    expect(again).toMatchObject({ status: 200, body: 1 });
    expect(isReplay(again)).toBe(true);
    expect(await shop.ordered(item)).toBe(1);
  });
});

import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { startGateway } from "../../program.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { openClient, type TestResponse } from "../table/client.ts";
import { newOrder, openShop } from "./orders.ts";
import { openTunnel } from "./tunnel.ts";

/** The shop survives each gateway. */

const shop = useFixture(openShop);
const tunnel = useFixture(() => openTunnel(shop));
const service = useFixture(() => serve(shop));
const client = useFixture(() => openClient(service.url));

const isReplay = ({ headers }: TestResponse) => headers["idempotent-replayed"] === "true";
/** The sessions that are making a slow change. */
const underWay = async () => {
  const { rows } = await shop.owner.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'",
  );
  return rows.map(({ pid }) => pid);
};

/** Resolves when a change is under way, however long it takes. */
const begun = () => until(async () => (await underWay()).length > 0);

/** It reaches the database through the tunnel. */
const startDoomed = () => startGateway({ url: tunnel.url, ownerUrl: shop.ownerUrl }, { RATE_LIMIT: "0" });

describe("a gateway that is killed", () => {
  test("after the commit has made the change, and another gateway replays the response", async () => {
    const { child, url } = await startDoomed();
    const doomed = openClient(url);
    const { item, headers } = newOrder();
    const request = { method: "POST", body: { item }, headers: { ...headers, Prefer: "return=representation" } };
    const ended = once(child, "close");
    tunnel.loseCommits(() => child.kill("SIGKILL"));
    await expect(doomed.ask("/orders", request)).rejects.toThrow();
    await ended;
    doomed.close();
    expect(await shop.ordered(item)).toBe(1);

    const again = await client.ask("/orders", request);
    expect(again).toMatchObject({ status: 201, body: [{ item }] });
    expect(isReplay(again)).toBe(true);
    expect(await shop.ordered(item)).toBe(1);
  });

  test("before the commit has changed nothing, and another gateway makes the change", async () => {
    const { child, url } = await startDoomed();
    const doomed = openClient(url);
    const { item, headers } = newOrder();
    const request = { method: "POST", body: { item, seconds: 1 }, headers };
    const first = expect(doomed.ask("/rpc/order_slowly", request)).rejects.toThrow();
    await begun();
    child.kill("SIGKILL");
    await first;
    doomed.close();

    // The server has not noticed yet, and still runs a statement that nobody will commit.
    expect(await underWay()).toHaveLength(1);
    const again = await client.ask("/rpc/order_slowly", request);
    expect(again).toMatchObject({ status: 200, body: 1 });
    expect(isReplay(again)).toBe(false);
    expect(await shop.ordered(item)).toBe(1);
  });
});

describe("a connection that is lost", () => {
  test("during the commit makes the gateway look up the outcome", async () => {
    const gateway = await serve({ ...shop, url: tunnel.url });
    const asking = openClient(gateway.url);
    const { item, headers } = newOrder();
    const request = { method: "POST", body: { item }, headers: { ...headers, Prefer: "return=representation" } };
    let isCut = false;
    tunnel.loseCommits(() => {
      isCut = true;
    });
    const response = await asking.ask("/orders", request);
    expect(isCut).toBe(true);
    expect(response).toMatchObject({ status: 201, body: [{ item }] });
    expect(isReplay(response)).toBe(true);
    expect(await shop.ordered(item)).toBe(1);
    asking.close();
    await gateway.stop();
  });

  test("during the change rolls it back, and the retry makes it", async () => {
    const { item, headers } = newOrder();
    const request = { method: "POST", body: { item, seconds: 2 }, headers };
    const first = client.ask("/rpc/order_slowly", request);
    await begun();
    await shop.owner.query("select pg_terminate_backend($1)", await underWay());
    expect((await first).status).toBe(503);
    expect(await shop.ordered(item)).toBe(0);
    expect(await client.ask("/rpc/order_slowly", request)).toMatchObject({ status: 200, body: 1 });
    expect(await shop.ordered(item)).toBe(1);
  });

  test("to the client does not stop the change, and a retry gets its response", async () => {
    const { item, headers } = newOrder();
    const request = { method: "POST", body: { item, seconds: 1 }, headers };
    const hasty = openClient(service.url);
    const first = expect(hasty.ask("/rpc/order_slowly", request)).rejects.toThrow();
    await begun();
    hasty.close();
    await first;
    const again = await client.ask("/rpc/order_slowly", request);
    expect(again).toMatchObject({ status: 200, body: 1 });
    expect(isReplay(again)).toBe(true);
    expect(await shop.ordered(item)).toBe(1);
  });
});

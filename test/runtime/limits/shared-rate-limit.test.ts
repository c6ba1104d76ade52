import type pg from "pg";
import { describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import type { AsOwner } from "../../../postgres/database/owner-pool.ts";
import { makeSharedRateLimit } from "../../../postgres/database/rate-limits.ts";
import { useDatabase } from "../../database.ts";
import { socketAddressOf, startRouter } from "../../routers/router.ts";

const asOwner: AsOwner = (work) => withClient(database.ownerUrl, (client: pg.Client) => work(client));

const database = useDatabase();

const terms = { name: "mails", points: 4, seconds: 60 };

async function takenOf(take: (key: string) => Promise<number | null>, key: string, times: number): Promise<number> {
  let taken = 0;
  for (let attempt = 0; attempt < times; attempt++) if ((await take(key)) === null) taken++;
  return taken;
}

describe("a shared rate limit", () => {
  test("counts exactly over all gateways and returns the seconds to wait", async () => {
    const [one, two] = [makeSharedRateLimit({ ...terms, asOwner }), makeSharedRateLimit({ ...terms, asOwner })];
    const seconds = [];
    for (const gateway of [one, two, one, two, one, two]) seconds.push(await gateway.take("203.0.113.7"));
    expect(seconds.slice(0, 4)).toEqual([null, null, null, null]);
    for (const wait of seconds.slice(4)) expect(wait).toBeGreaterThan(0);
    expect(await one.take("203.0.113.8")).toBeNull();
  });

  test("counts exactly although the owner's connections go through a router without named statements", async () => {
    const router = await startRouter("hostile", socketAddressOf(database.ownerUrl));
    const url = `postgresql://postgres@127.0.0.1:${router.port}/${database.name}`;
    const throughRouter: AsOwner = (work) => withClient(url, (client: pg.Client) => work(client));
    const gateways = [1, 2].map(() => makeSharedRateLimit({ ...terms, asOwner: throughRouter }));
    const taken = [];
    for (const gateway of gateways) taken.push(await takenOf(gateway.take, "203.0.113.10", 3));
    await router.close();
    expect(taken).toEqual([3, 1]);
  });

  test("is counted per gateway while the database is unavailable", async () => {
    const alone = makeSharedRateLimit({ ...terms, asOwner: () => Promise.reject(new Error("away")) });
    expect(await takenOf(alone.take, "203.0.113.9", 10)).toBe(4);
  });
});

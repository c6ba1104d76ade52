import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../../../service/wiring/service.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { openClient, type TestResponse } from "../table/client.ts";
import { newOrder, openShop } from "./orders.ts";

let gateways: readonly Service[];

const shop = useFixture(openShop);
beforeAll(async () => {
  gateways = await Promise.all([serve(shop), serve(shop)]);
});
afterAll(() => Promise.all(gateways.map((gateway) => gateway.stop())));

const CHANGES = 3;
/** Somebody asks for a change, at some time, at some gateway, and may not wait for the answer. */
const attempt = fc.record({
  kind: fc.constant("attempt" as const),
  at: fc.integer({ min: 0, max: 150 }),
  change: fc.nat(CHANGES - 1),
  gateway: fc.nat(1),
  patience: fc.option(fc.integer({ min: 1, max: 60 })),
});
/** Some connection of a gateway is ended by the server. */
const accident = fc.record({
  kind: fc.constant("accident" as const),
  at: fc.integer({ min: 0, max: 200 }),
  which: fc.nat(100),
});

test("a change is made once with the same response for any interleaving of retries, lost clients and lost connections", async () => {
  const story = fc.array(fc.oneof({ arbitrary: attempt, weight: 4 }, accident), { minLength: 5, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(story, fc.constantFrom(0, 0.02, 0.05), async (events, seconds) => {
      const changes = Array.from({ length: CHANGES }, newOrder);
      const result: TestResponse[][] = changes.map(() => []);

      const ask = async (change: number, gateway: number, patience: number | null) => {
        const client = openClient(gateways[gateway]!.url);
        const { item, headers } = changes[change]!;
        const request = client.ask("/rpc/order_slowly", { method: "POST", body: { item, seconds }, headers });
        const left = patience === null ? null : sleep(patience).then(() => client.close());
        const answer = await request.catch(() => null);
        await left;
        client.close();
        if (answer) result[change]!.push(answer);
        return answer?.status ?? null;
      };
      await Promise.all(
        events.map(async (event) => {
          await sleep(event.at);
          if (event.kind === "attempt") await ask(event.change, event.gateway, event.patience);
          else await loseConnection(event.which);
        }),
      );
      // A client without an answer asks until it has one.
      for (const change of changes.keys()) await until(async () => (await ask(change, change % 2, null)) === 200);

      for (const [change, { item }] of changes.entries()) {
        expect(await shop.ordered(item)).toBe(1);
        const statuses = new Set(result[change]!.map(({ status }) => status));
        statuses.delete(503);
        expect(statuses).toEqual(new Set([200]));
        const made = result[change]!.filter(({ status }) => status === 200);
        expect(new Set(made.map(({ text }) => text))).toEqual(new Set(["1"]));
        expect(made.filter(({ headers }) => headers["idempotent-replayed"] === undefined).length).toBeLessThanOrEqual(
          1,
        );
      }
    }),
    { numRuns: propertyRuns(25) },
  );
});

async function loseConnection(which: number): Promise<void> {
  await shop.owner.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and usename = 'authenticator'
      order by state = 'idle', pid offset $1 % 8 limit 1`,
    [which],
  );
}

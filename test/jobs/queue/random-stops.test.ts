import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readConfig } from "../../../config/config.ts";
import { JobRunner } from "../../../jobs/queue/job-runner.ts";
import { makeLogger } from "../../../runtime/log/log.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { openWire } from "../../postgres-wire.ts";
import { propertyRuns } from "../../property-runs.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await cloneDatabase("content");
});
afterAll(() => database.drop());

const log = makeLogger(readConfig({ LOG_LEVEL: "silent" }).config);
const uncaught: unknown[] = [];
process.on("uncaughtExceptionMonitor", (error) => uncaught.push(error));

/** Of a stop: when it comes, and when the connections stall and die, in milliseconds from the start. */
const MOMENTS = fc.record({
  stallsAt: fc.option(fc.integer({ min: 0, max: 120 })),
  diesAt: fc.option(fc.integer({ min: 0, max: 160 })),
  stopsAt: fc.integer({ min: 0, max: 140 }),
});

test("a job runner stops at any moment, while its connections stall or die, without an uncaught error", async () => {
  const stop = fc.asyncProperty(MOMENTS, async ({ stallsAt, diesAt, stopsAt }) => {
    const wire = await openWire(database.ownerUrl);
    const runner = new JobRunner({
      url: wire.url,
      lanes: ["first", "second"].map((name) => ({ name, tasks: { [name]: () => {} }, concurrency: 2 })),
      maintain: async () => {},
      cancelRunning: async () => {},
      log,
    });
    const after = async (milliseconds: number | null, act: () => unknown) => {
      if (milliseconds === null) return;
      await sleep(milliseconds);
      await act();
    };
    const started = runner.start().catch(() => {});
    await Promise.all([after(stallsAt, wire.silence), after(diesAt, wire.cut), after(stopsAt, () => runner.close(0))]);
    await started;
    await wire.close();
    await sleep(1);
    expect(uncaught).toEqual([]);
  });
  await fc.assert(stop, { numRuns: propertyRuns(200), seed: 65, endOnFailure: true });
});

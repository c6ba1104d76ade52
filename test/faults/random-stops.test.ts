import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { keepCatalog } from "../../catalog/catalog-keeper.ts";
import { keepConfig } from "../../catalog/config-keeper.ts";
import { readConfig } from "../../config/config.ts";
import { JobRunner } from "../../jobs/queue/job-runner.ts";
import { startWebhooks } from "../../jobs/webhooks/dispatcher.ts";
import { openReplication } from "../../live/stream/change-stream.ts";
import { openListener } from "../../postgres/client/listen.ts";
import { openDatabase } from "../../postgres/database/database.ts";
import { Supervisor } from "../../runtime/concurrency/supervisor.ts";
import { makeLogger } from "../../runtime/log/log.ts";
import { useDatabase } from "../database.ts";
import { openWire } from "../postgres-wire.ts";
import { run } from "../program.ts";
import { propertyRuns } from "../property-runs.ts";
import { settingsOf } from "../routers/through-router.ts";
import { SECRET } from "../secret.ts";

const database = useDatabase({ sql: "create publication random_stops for all tables" });

const { config } = readConfig({ LOG_LEVEL: "silent" });
const log = makeLogger(config);
const uncaught: unknown[] = [];
process.on("uncaughtExceptionMonitor", (error) => uncaught.push(error));

/** Begins to start, and adds its stop to the stack. */
type Part = { readonly runs: number; start(url: string, opened: AsyncDisposableStack): Promise<unknown> };

function openCore(url: string, opened: AsyncDisposableStack) {
  const supervisor = new Supervisor({ log });
  const listener = openListener({ url, supervisor, log });
  opened.defer(() => listener.close());
  const requests = openDatabase({ url, ownerUrl: url, supervisor, log, acquireTimeout: 500 });
  opened.defer(() => requests.close());
  const asOwner: typeof requests.asOwner = (work) => requests.asOwner(work);
  return { supervisor, listener, requests, asOwner, log };
}

const PARTS: Readonly<Record<string, Part>> = {
  "a job runner": {
    runs: 200,
    start(url, opened) {
      const crons = [{ task: "first", match: "* * * * *", identifier: "first", options: {} }];
      const lane = (name: string) => ({ name, tasks: { [name]: () => {} }, concurrency: 2 });
      const lanes = [{ ...lane("first"), crons }, lane("second")];
      const maintain = async () => {};
      const listener = openListener({ url, log });
      opened.defer(() => listener.close());
      const runner = new JobRunner({ url, listener, lanes, maintain, cancelRunning: maintain, log });
      opened.defer(() => runner.close(0));
      return runner.start();
    },
  },
  "the connection for notifications": {
    runs: 60,
    start(url, opened) {
      const listener = openListener({ url, log });
      opened.defer(() => listener.close());
      return listener.listen("marks", () => {});
    },
  },
  "the connections for requests": {
    runs: 60,
    async start(url, opened) {
      const { requests, asOwner } = openCore(url, opened);
      const caller = { role: "anon", settings: [] };
      const statements = Array.from({ length: 10 }, () => [
        requests.run(caller, { text: "select 1", values: [] }, { readOnly: true }),
        asOwner((client) => client.query("select 1")),
      ]);
      await Promise.allSettled(statements.flat());
    },
  },
  "the change stream": {
    runs: 60,
    async start(url, opened) {
      const { asOwner, supervisor } = openCore(url, opened);
      const changes = openReplication({ url, asOwner, publication: "random_stops", keep: "never", supervisor, log });
      opened.defer(() => changes.close());
      await changes.follow({ wants: () => true, change() {}, gap() {} }).from;
    },
  },
  "settings, catalogue and webhooks": {
    runs: 60,
    async start(url, opened) {
      const core = openCore(url, opened);
      const settings = await keepConfig({ config, url, ...core });
      opened.defer(() => settings.close());
      settings.follow(async () => {});
      const options = { schemas: ["public"], extraSearchPath: [], loginRole: "authenticator" };
      const catalog = await keepCatalog({ ...core, ...options, channel: "pgrst", pollIntervalMs: 20 });
      opened.defer(() => catalog.close());
      const webhooks = await startWebhooks({ ...core, catalog, database: core.requests, config });
      opened.defer(() => webhooks?.close(0));
    },
  },
};

/** The moments when a part is stopped, and when its connections stall and die, in milliseconds from the begin of its start. */
const momentsWithin = (max: number) =>
  fc.record({
    stallsAt: fc.option(fc.integer({ min: 0, max }), { freq: 3 }),
    diesAt: fc.option(fc.integer({ min: 0, max }), { freq: 2 }),
    stopsAt: fc.integer({ min: 0, max }),
  });

async function at(milliseconds: number | null, act: () => unknown): Promise<void> {
  if (milliseconds === null) return;
  await sleep(milliseconds);
  await act();
}

type Moments = ReturnType<typeof momentsWithin> extends fc.Arbitrary<infer Value> ? Value : never;
const AT_ONCE = 8;

/** Stops several at once, because those that stall take seconds. */
async function expectCleanStops(runs: number, max: number, stop: (moments: Moments) => Promise<void>): Promise<void> {
  const moments = fc.sample(momentsWithin(max), { numRuns: propertyRuns(runs), seed: 65 });
  for (let next = 0; next < moments.length; next += AT_ONCE) {
    const batch = moments.slice(next, next + AT_ONCE);
    await Promise.all(batch.map(stop));
    expect(uncaught.splice(0), JSON.stringify(batch)).toEqual([]);
  }
}

test.each(Object.keys(PARTS))(
  "%s: stops at any moment, while connections stall or die, without an uncaught error",
  async (name) => {
    const { runs, start } = PARTS[name]!;
    await expectCleanStops(runs, 150, async ({ stallsAt, diesAt, stopsAt }) => {
      const wire = await openWire(database.ownerUrl);
      const opened = new AsyncDisposableStack();
      const started = start(wire.url, opened).catch(() => {});
      await Promise.all([at(stallsAt, wire.silence), at(diesAt, wire.cut), at(stopsAt, () => opened.disposeAsync())]);
      await wire.close();
      await started;
      await sleep(1);
    });
  },
);

test.each([1, 2])("a service of %i processes: ends at any moment of its start and after it", async (workers) => {
  await expectCleanStops(16, 6_000, async ({ stallsAt, diesAt, stopsAt }) => {
    const wire = await openWire(database.ownerUrl);
    const { child, streams } = run("server.js", {
      ...settingsOf({ url: wire.url, ownerUrl: wire.url }),
      ...{ JWT_SECRET: SECRET, USERS_ACCESS: "open", WEB_CONCURRENCY: String(workers), DRAIN_TIMEOUT_SECONDS: "0" },
    });
    const ended = once(child, "close");
    await Promise.all([at(stallsAt, wire.silence), at(diesAt, wire.cut), at(stopsAt, () => child.kill("SIGTERM"))]);
    const [code] = await ended;
    await wire.close();
    // Null: the signal came before the program had begun.
    expect([0, 1, null]).toContain(code);
    // Node reports that a worker which begins finds its primary gone (EPIPE).
    if (!streams.logged.includes("EPIPE")) expect(streams.logged).not.toMatch(/uncaught|released to the pool|\n +at /);
  });
});

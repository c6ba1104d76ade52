import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { propertyRuns } from "../property-runs.ts";
import { until } from "../until.ts";
import { documentedAnswers, rowOf } from "./documented.ts";
import { faultsFound } from "./faults-found.ts";
import type { OwnPostgres } from "./own-postgres.ts";
import type { ServiceProcess } from "./service-process.ts";
import { type Send, startTraffic, type Traffic } from "./traffic.ts";

export type Fault = {
  /** The name of the fault in docs/faults.md. */
  readonly name: string;
  fail(): Promise<unknown>;
  /** Repairs it like an operator, or as Postgres does by itself; nothing is done to the service. */
  repair(refusals: ReadonlyMap<string, number>): Promise<unknown>;
};

/** A request waits less for a connection. */
const LASTS_MS = 2_500;
const WRITES_BEFORE = propertyRuns(500);
const WRITES = propertyRuns(2_000);
/** Connections come and go with the load; a leak grows with each request, or each time that Postgres is away. */
const FILES_LEEWAY = 24;
const HEAP_LEEWAY = 24 * 2 ** 20;

type Broken = {
  readonly service: () => ServiceProcess;
  readonly postgres: Pick<OwnPostgres, "execute">;
  readonly send?: Send;
};

/** Expects that all interfaces under load answer as documented before, during and after the fault, and lose nothing. */
export async function expectServedUnder(fault: Fault, broken: Broken): Promise<void> {
  const { refusals, found, gaps } = await expectRecovery(fault, broken);
  expect(await documentedAnswers(fault.name)).toEqual(expect.arrayContaining([...refusals.keys()]));
  expect(found).toEqual({});
  expect(gaps).toEqual([]);
}

/** Returns the refusals and the gaps, and the faults that were found. */
export async function expectRecovery(
  { name, fail, repair }: Fault,
  { service, postgres, send = fetch }: Broken,
): Promise<Pick<Traffic, "refusals" | "gaps"> & { readonly found: ReturnType<typeof faultsFound> }> {
  await using traffic = await startTraffic(() => service().url, send);
  await traffic.allWell();
  await until(() => traffic.acknowledged.length >= WRITES_BEFORE);
  const before = { files: await service().openFiles(), heap: await service().heap.used() };
  await fail();
  await sleep(LASTS_MS);
  await repair(traffic.refusals);
  const fixed = performance.now();
  await traffic.allWell();
  const recoveryMs = performance.now() - fixed;
  await until(() => traffic.acknowledged.length >= WRITES);
  await traffic.quiet();
  const { stored, received } = await whenAllReceived(traffic, postgres);
  const found = faultsFound({ ...traffic, stored, received });
  const lost = found["acknowledged and lost"]?.length ?? 0;
  console.log(rowOf(name, traffic.refusals, recoveryMs, traffic.acknowledged.length, lost));
  expect(service().child.exitCode).toBeNull();
  expect((await service().openFiles()) - before.files).toBeLessThan(FILES_LEEWAY);
  expect((await service().heap.used()) - before.heap).toBeLessThan(HEAP_LEEWAY);
  return { refusals: traffic.refusals, gaps: traffic.gaps, found };
}

/** The last row is received behind all others, and so behind any that is received twice. */
async function whenAllReceived({ since, received }: Traffic, postgres: Broken["postgres"]) {
  const last = -since;
  await postgres.execute(`insert into marks (number, note) values (${last}, 'the last one')`);
  await until(() => received.has(last));
  const { rows } = await postgres.execute(
    `select number, count(*)::int as times from marks where number > ${since} group by number`,
  );
  const stored = new Map(rows.map(({ number, times }) => [Number(number), times as number]));
  return { stored, received: new Map([...received].filter(([number]) => number !== last)) };
}

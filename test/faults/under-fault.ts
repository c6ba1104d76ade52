import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { until } from "../until.ts";
import { documentedAnswers, rowOf } from "./documented.ts";
import type { OwnPostgres } from "./own-postgres.ts";
import type { ServiceProcess } from "./service-process.ts";
import { startTraffic } from "./traffic.ts";

export type Fault = {
  /** As docs/faults.md calls it. */
  readonly name: string;
  strike(): Promise<unknown>;
  /** What an operator does, or Postgres by itself; nothing is done to the service. */
  mend(refusals: ReadonlyMap<string, number>): Promise<unknown>;
};

/** Longer than a request waits for a connection. */
const LASTS_MS = 2_500;
const WRITES_BEFORE = 50;
/** Links come and go with the load; what leaks does so with each request, or each time that Postgres is away. */
const FILES_LEEWAY = 24;
const HEAP_LEEWAY = 24 * 2 ** 20;

/** All interfaces under load, before, while and after it happens. */
export async function underFault(
  { name, strike, mend }: Fault,
  { service, postgres }: { readonly service: () => ServiceProcess; readonly postgres: OwnPostgres },
): Promise<void> {
  await using traffic = await startTraffic(() => service().url);
  await traffic.allWell();
  await until(() => traffic.acknowledged.length >= WRITES_BEFORE);
  const before = { files: await service().openFiles(), heap: await service().heap.used() };
  await strike();
  await sleep(LASTS_MS);
  await mend(traffic.refusals);
  const mended = performance.now();
  await traffic.allWell();
  const recoveryMs = performance.now() - mended;
  await traffic.quiet();
  const stored = new Set(await storedMarks(postgres, traffic.since));
  await until(() => stored.isSubsetOf(traffic.told));
  const lost = traffic.acknowledged.filter((id) => !stored.has(id));
  console.log(rowOf(name, traffic.refusals, recoveryMs, traffic.acknowledged.length, lost.length));
  expect(await documentedAnswers(name)).toEqual(expect.arrayContaining([...traffic.refusals.keys()]));
  expect(lost).toEqual([]);
  expect(traffic.gaps).toEqual([]);
  expect(service().child.exitCode).toBeNull();
  expect((await service().openFiles()) - before.files).toBeLessThan(FILES_LEEWAY);
  expect((await service().heap.used()) - before.heap).toBeLessThan(HEAP_LEEWAY);
}

async function storedMarks(postgres: OwnPostgres, since: number): Promise<number[]> {
  const { rows } = await postgres.execute(`select id from marks where id > ${since}`);
  return rows.map(({ id }) => Number(id));
}

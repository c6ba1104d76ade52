// Breaks each part of the system repeatedly under load: no acknowledged write may be lost, and nothing may stay broken.

import { setTimeout as sleep } from "node:timers/promises";
import { type Findings, findingsOf } from "./failover/findings.ts";
import { startTraffic, type Traffic } from "./failover/traffic.ts";
import { brokenParts, readHealth } from "./faults/checks.ts";
import { FAULTS, type FaultKind, type FaultName } from "./faults/kinds.ts";
import { type FaultySystem, startFaultySystem } from "./faults/system.ts";
import type { Bench } from "./measuring/kind.ts";

/** The time after a fault within which all parts must work, and `/health` must say so. */
const PATIENCE_MS = 60_000;
const LOOK_MS = 100;
/** The time after which `/health` must report a failure; a single failed request is not reported. */
const UNTRUE_MS = 10_000;
const LABEL = "load";

type FaultOutcome = {
  readonly fault: string;
  readonly isKill: boolean;
  readonly recoveryMs: number;
  /** The parts that still failed after a minute, or the fact that `/health` was not `ok`. */
  readonly stillBroken: readonly string[];
  /** Reports of `ok` while a part failed for seconds. */
  readonly untrue: readonly string[];
  /** The parts that failed at first, and the reports of `/health` meanwhile. */
  readonly late: readonly string[];
};

type FaultRun = {
  readonly outcomes: readonly FaultOutcome[];
  readonly findings: Findings;
  /** The number of acknowledged rows that were not sent to the webhook. */
  readonly undelivered: number;
};

export const bench: Bench = async ({ rounds, only, print }) => {
  const chosen = (Object.keys(FAULTS) as FaultName[]).filter((name) => only.length === 0 || only.includes(name));
  const names = Array.from({ length: rounds }, () =>
    shuffled(chosen.flatMap((name) => Array.from({ length: FAULTS[name].times }, () => name))),
  ).flat();
  print(`faults: ${names.length} faults under load, two workers`);
  const run = await runFaults(names, print);
  for (const line of describe(run)) print(line);
  return { ...run, isMissed: !isFaultless(run) };
};

/** Causes the faults one after the other, each when all parts work again. */
async function runFaults(names: readonly FaultName[], print: (line: string) => void): Promise<FaultRun> {
  await using system = await startFaultySystem({ WEB_CONCURRENCY: "2" });
  const traffic = await startTraffic(system.url, LABEL);
  try {
    await recovered(system, traffic);
    const outcomes: FaultOutcome[] = [];
    for (const name of names) {
      const outcome = await breakOnce(system, traffic, name);
      outcomes.push(outcome);
      const broken = [...outcome.stillBroken, ...outcome.untrue];
      const found = broken.length > 0 ? `: ${broken.join("; ")}` : "";
      const late = outcome.late.length === 0 ? "" : ` (${outcome.late.join("; ")})`;
      print(`  ${name}, all works after ${(outcome.recoveryMs / 1_000).toFixed(1)} s${late}${found}`);
    }
    await traffic.quiet();
    return { outcomes, ...(await compare(system, traffic)) };
  } finally {
    await traffic.close();
  }
}

async function breakOnce(system: FaultySystem, traffic: Traffic, name: FaultName): Promise<FaultOutcome> {
  const kind: FaultKind = FAULTS[name];
  await kind.run(system);
  const { milliseconds, ...found } = await recovered(system, traffic);
  return { fault: name, isKill: kind.isKill, recoveryMs: milliseconds, ...found };
}

/** Waits until all parts work and `/health` says so. */
async function recovered(system: FaultySystem, traffic: Traffic) {
  const begin = performance.now();
  const untrue: string[] = [];
  const late = new Set<string>();
  let untrueSince: number | null = null;
  for (;;) {
    const startedAt = performance.now();
    const before = await readHealth(system);
    const broken = await brokenParts(system, traffic);
    const after = await readHealth(system);
    const milliseconds = performance.now() - begin;
    const isReportedOk = [...before, ...after].every((report) => report === "ok");
    if (broken.length === 0 && isReportedOk) return { milliseconds, stillBroken: [], untrue, late: [...late] };
    for (const found of [...broken, ...before, ...after]) if (found !== "ok") late.add(found);
    untrueSince = broken.length > 0 && isReportedOk ? (untrueSince ?? startedAt) : null;
    if (untrueSince !== null && performance.now() - untrueSince >= UNTRUE_MS)
      untrue.push(`ok without ${broken.join(", ")}`);
    if (milliseconds > PATIENCE_MS)
      return { milliseconds, stillBroken: [...broken, ...after], untrue, late: [...late] };
    await sleep(LOOK_MS);
  }
}

/** Compares the acknowledged writes, and the rows that each subscriber and the webhook received, with the table. */
async function compare(system: FaultySystem, traffic: Traffic): Promise<Pick<FaultRun, "findings" | "undelivered">> {
  const { rows } = await system.execute(
    `select number, count(*)::int as count from marks where note = '${LABEL}' and number > 0 group by number`,
  );
  const numbers = new Set(traffic.requests.map(({ number }) => number));
  const stored = new Map<number, number>(
    rows
      .map(({ number, count }): [number, number] => [Number(number), count])
      .filter(([number]) => numbers.has(number)),
  );
  const end = performance.now() + PATIENCE_MS;
  const missing = () => [...stored.keys()].filter((number) => !system.delivered.has(number));
  while (missing().length > 0 && performance.now() < end) await sleep(LOOK_MS);
  return { findings: findingsOf(withoutChecks(traffic, numbers), stored, []), undelivered: missing().length };
}

/** Removes the rows of the checks, which are not among the requests. */
function withoutChecks(traffic: Traffic, numbers: ReadonlySet<number>): Traffic {
  const subscribers = traffic.subscribers.map((subscriber) => ({
    ...subscriber,
    received: new Map([...subscriber.received].filter(([number]) => numbers.has(number))),
  }));
  return { ...traffic, subscribers };
}

function isFaultless({ outcomes, findings, undelivered }: FaultRun): boolean {
  const { lost, duplicates, refusedAndWritten, hanging, repeated, missedSilently, invented } = findings;
  const counts = [lost, duplicates, refusedAndWritten, hanging, repeated, missedSilently, invented, undelivered];
  return (
    counts.every((count) => count === 0) &&
    outcomes.every(({ stillBroken, untrue }) => stillBroken.length === 0 && untrue.length === 0)
  );
}

export function describe({ outcomes, findings, undelivered }: FaultRun): string[] {
  const byName = Map.groupBy(outcomes, ({ fault }) => fault);
  const seconds = (milliseconds: number) => `${(milliseconds / 1_000).toFixed(1)} s`;
  const kills = outcomes.filter(({ isKill }) => isKill).length;
  return [
    "| fault | times | all works again, median / worst | still broken after a minute | `ok` while broken |",
    "| --- | --- | --- | --- | --- |",
    ...[...byName].map(([name, each]) => {
      const times = each.map(({ recoveryMs }) => recoveryMs).toSorted((a, b) => a - b);
      const broken = each.filter(({ stillBroken }) => stillBroken.length > 0).length;
      const untrue = each.filter((outcome) => outcome.untrue.length > 0).length;
      const spread = `${seconds(times[Math.floor(times.length / 2)]!)} / ${seconds(times.at(-1)!)}`;
      return `| ${name} | ${each.length} | ${spread} | ${broken} | ${untrue} |`;
    }),
    `${kills} kills and ${outcomes.length - kills} other faults; ${findings.acknowledged} acknowledged writes`,
    `lost ${findings.lost}, doubled ${findings.duplicates}, refused and written ${findings.refusedAndWritten}, without an answer ${findings.hanging}`,
    `changes received ${findings.received}, twice ${findings.repeated}, not committed ${findings.invented}, missed without notice ${findings.missedSilently}, missed with notice ${findings.missedAndTold} (${findings.gapsTold} notices)`,
    `changes that no webhook was sent ${undelivered}`,
    ...Object.entries(findings.failures).map(([failure, times]) => `  ${times} x ${failure}`),
    ...findings.details.map((detail) => `  ${detail}`),
  ];
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

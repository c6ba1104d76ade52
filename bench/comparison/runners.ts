import { pgbench } from "../measuring/pgbench.ts";
import type { Scratch } from "../measuring/scratch.ts";
import type { LoadGenerator } from "./load.ts";
import { type Sample, sampleOf, sampleOfRate } from "./measure.ts";
import type { MeasuredServer } from "./program.ts";
import type { Round } from "./report.ts";
import type { Script } from "./scripts.ts";
import type { Work } from "./work.ts";

/** Loads rows only; resolves to the rows per second. */
export type Copier = { run(rows: number, seconds: number): Promise<number> };

export type Field = {
  readonly scratch: Scratch;
  readonly generator: LoadGenerator;
  /** Null if no rows are loaded by COPY. */
  readonly copier: Copier | null;
  readonly servers: readonly MeasuredServer[];
  /** The scripts for pgbench; null without pgbench. */
  readonly scripts: ReadonlyMap<Work, Script> | null;
};

export const PGBENCH = "pgbench";
export const COPY = "COPY";

/** The runners of a work by name; each runs for a number of seconds. */
export type Runners = ReadonlyMap<string, (seconds: number) => Promise<Sample>>;

export function runnersOf(work: Work, field: Field): Runners {
  const runners = new Map<string, (seconds: number) => Promise<Sample>>();
  const script = field.scripts?.get(work);
  if (script && work.pgbenchClients) runners.set(PGBENCH, pgbenchRunner(script, work.pgbenchClients, field));
  if (work.rows && field.copier) runners.set(COPY, copyRunner(work.rows, field.scratch, field.copier));
  for (const server of field.servers) {
    runners.set(server.name, (seconds) => sampleOf(server, work, seconds, field));
  }
  return runners;
}

function pgbenchRunner(script: Script, clients: number, { scratch }: Field) {
  const url = scratch.url("authenticator");
  return (seconds: number) => sampleOfRate(scratch, seconds, () => pgbench({ url, ...script, clients, seconds }));
}

function copyRunner(rows: number, scratch: Scratch, copier: Copier) {
  return (seconds: number) => sampleOfRate(scratch, seconds, () => copier.run(rows, seconds));
}

/** Warms up all runners first, without a measurement, and then measures them in turn. */
export async function byTurns(runners: Runners, rounds: number, seconds: number): Promise<Round[]> {
  for (const run of runners.values()) await run(seconds);
  return roundsOf(runners, rounds, seconds);
}

/** Runs all runners in turn, so that other load of the machine affects all of them. */
export async function roundsOf(runners: Runners, rounds: number, seconds: number): Promise<Round[]> {
  const results: Round[] = [];
  for (let round = 0; round < rounds; round++) {
    const samples = new Map<string, Sample>();
    for (const [name, run] of runners) samples.set(name, await run(seconds));
    results.push(samples);
  }
  return results;
}

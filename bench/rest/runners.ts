import { pgbench } from "../pgbench.ts";
import type { Scratch } from "../scratch.ts";
import type { Copier } from "./copy.ts";
import type { LoadGenerator } from "./load.ts";
import { type Sample, sampleOf, sampleOfRate } from "./measure.ts";
import type { Contestant } from "./program.ts";
import type { Script } from "./scripts.ts";
import { eventOf, type Work } from "./works.ts";

export type Field = {
  readonly scratch: Scratch;
  readonly generator: LoadGenerator;
  readonly copier: Copier;
  readonly contestants: readonly Contestant[];
  /** Null without pgbench. */
  readonly scripts: ReadonlyMap<Work, Script> | null;
};

export const PGBENCH = "pgbench";
export const COPY = "COPY";

/** By their names, all who do a work, each for so many seconds. */
export type Runners = ReadonlyMap<string, (seconds: number) => Promise<Sample>>;

export function runnersOf(work: Work, field: Field): Runners {
  const runners = new Map<string, (seconds: number) => Promise<Sample>>();
  const script = field.scripts?.get(work);
  if (script && work.pgbenchClients) runners.set(PGBENCH, pgbenchRunner(script, work.pgbenchClients, field));
  if (work.rows) runners.set(COPY, copyRunner(work.rows, field));
  for (const contestant of field.contestants) {
    runners.set(contestant.name, (seconds) => sampleOf(contestant, work, seconds, field));
  }
  return runners;
}

function pgbenchRunner(script: Script, clients: number, { scratch }: Field) {
  const url = scratch.url("authenticator");
  return (seconds: number) => sampleOfRate(scratch, seconds, () => pgbench({ url, ...script, clients, seconds }));
}

function copyRunner(rows: number, { scratch, copier }: Field) {
  const line = (n: number) => {
    const { kind, payload } = eventOf(n);
    return `${kind}\t${JSON.stringify(payload)}\n`;
  };
  const text = Array.from({ length: rows }, (_, n) => line(n)).join("");
  return (seconds: number) => sampleOfRate(scratch, seconds, () => copier.run(text, rows, seconds));
}

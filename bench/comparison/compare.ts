import type { BenchOptions } from "../measuring/kind.ts";
import { startLoadGenerator } from "./load.ts";
import { describeOutcome, type Outcome, outcomeOf } from "./report.ts";
import { byTurns, type Field, runnersOf } from "./runners.ts";
import { recordScripts } from "./scripts.ts";
import type { Work } from "./work.ts";

/** The duration of the first warm-up: programs with a just-in-time compiler become faster while they run. */
const FIRST_WARM_UP_SECONDS = 4;

type ComparisonInput = Pick<Field, "scratch" | "copier" | "servers"> & {
  readonly works: readonly Work[];
  readonly hasPgbench: boolean;
  /** Starts the service whose statements pgbench repeats, if it is not the one of the table interface. */
  readonly startOurs?: Parameters<typeof recordScripts>[2];
};

/** Runs all servers in turn for each work, and prints each outcome as soon as it is known. */
export async function compare(
  { works, scratch, copier, servers, hasPgbench, startOurs }: ComparisonInput,
  { rounds, seconds, print }: BenchOptions,
): Promise<Outcome[]> {
  using generator = startLoadGenerator();
  const scripts = hasPgbench ? await recordScripts(works, { scratch, generator }, startOurs) : null;
  const field = { scratch, generator, copier, servers, scripts };
  print("");

  for (const run of runnersOf(works[0]!, field).values()) await run(FIRST_WARM_UP_SECONDS);
  const outcomes: Outcome[] = [];
  for (const work of works) {
    const outcome = outcomeOf(work.name, await byTurns(runnersOf(work, field), rounds, seconds));
    outcomes.push(outcome);
    print(describeOutcome(outcome, work.rows ? "row" : "request"));
  }
  return outcomes;
}

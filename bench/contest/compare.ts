import type { BenchOptions } from "../bench.ts";
import { startLoadGenerator } from "./load.ts";
import { describeOutcome, type Outcome, outcomeOf } from "./report.ts";
import { byTurns, type Field, runnersOf } from "./runners.ts";
import { recordScripts } from "./scripts.ts";
import type { Work } from "./work.ts";

/** Programs that compile themselves while they run are faster afterwards. */
const FIRST_WARM_UP_SECONDS = 4;

type Competition = Pick<Field, "scratch" | "copier" | "contestants"> & {
  readonly works: readonly Work[];
  readonly hasPgbench: boolean;
  /** How to start the service that pgbench overhears, where that is not at the table interface. */
  readonly startOurs?: Parameters<typeof recordScripts>[2];
};

/** All of them at each work, by turns; tells each outcome as soon as it is known. */
export async function compare(
  { works, scratch, copier, contestants, hasPgbench, startOurs }: Competition,
  { rounds, seconds, tell }: BenchOptions,
): Promise<Outcome[]> {
  using generator = startLoadGenerator();
  const scripts = hasPgbench ? await recordScripts(works, { scratch, generator }, startOurs) : null;
  const field = { scratch, generator, copier, contestants, scripts };
  tell("");

  for (const run of runnersOf(works[0]!, field).values()) await run(FIRST_WARM_UP_SECONDS);
  const outcomes: Outcome[] = [];
  for (const work of works) {
    const outcome = outcomeOf(work.name, await byTurns(runnersOf(work, field), rounds, seconds));
    outcomes.push(outcome);
    tell(describeOutcome(outcome, work.rows ? "row" : "request"));
  }
  return outcomes;
}

// The conventional interface's users over HTTP, beside pgbench with the same statements and a server with Drizzle.

import type { Bench } from "./bench.ts";
import { startContent } from "./graphql/content.ts";
import { requirePgbench } from "./pgbench.ts";
import { tellPreface } from "./preface.ts";
import { startLoadGenerator } from "./rest/load.ts";
import type { Contestant } from "./rest/program.ts";
import { describeOutcome, type Outcome, outcomeOf } from "./rest/report.ts";
import { byTurns, runnersOf } from "./rest/runners.ts";
import { recordScripts } from "./rest/scripts.ts";
import { judge } from "./rest/targets.ts";
import { ENTRANTS, startOurs } from "./users/contestants.ts";
import { PREPARATION, TARGETS, WORKS } from "./users/works.ts";

/** Programs that compile themselves while they run are faster afterwards. */
const FIRST_WARM_UP_SECONDS = 4;

export const bench: Bench = async (options) => {
  const { rounds, seconds, tell } = options;
  tell("users: the conventional interface over HTTP, row-level security on, callers by token");
  const version = await requirePgbench().catch((error: Error) => tell(`pgbench skipped: ${error.message}`));
  tellPreface(options, ENTRANTS);
  const entrants = ENTRANTS.filter(({ isInstalled }) => isInstalled);

  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startContent());
  await scratch.execute(PREPARATION);
  const generator = opened.use(startLoadGenerator());
  const contestants: Contestant[] = [];
  for (const { start } of entrants) {
    contestants.push(opened.adopt(await start(scratch), (contestant) => contestant.stop()));
  }
  const scripts = version ? await recordScripts(WORKS, { scratch, generator }, startOurs) : null;
  const field = { scratch, generator, copier: null, contestants, scripts };
  tell("");

  for (const run of runnersOf(WORKS[0]!, field).values()) await run(FIRST_WARM_UP_SECONDS);
  const outcomes: Outcome[] = [];
  for (const work of WORKS) {
    const outcome = outcomeOf(work.name, await byTurns(runnersOf(work, field), rounds, seconds));
    outcomes.push(outcome);
    tell(describeOutcome(outcome, "request"));
  }
  tell("  targets");
  for (const verdict of judge(outcomes, TARGETS)) tell(verdict);
  return { version, outcomes };
};

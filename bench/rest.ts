// The table interface over HTTP, beside pgbench with the same statements and beside others who serve the same.

import type { Bench } from "./bench.ts";
import { requirePgbench } from "./pgbench.ts";
import { tellPreface } from "./preface.ts";
import { ENTRANTS } from "./rest/contestants.ts";
import { startCopier } from "./rest/copy.ts";
import { EXPORTED_ROWS, EXPORTERS, exportAll, READINGS } from "./rest/export.ts";
import { startLoadGenerator } from "./rest/load.ts";
import type { Contestant } from "./rest/program.ts";
import { describeExport, describeOutcome, type Outcome, outcomeOf } from "./rest/report.ts";
import { byTurns, runnersOf } from "./rest/runners.ts";
import { recordScripts } from "./rest/scripts.ts";
import { judge, judgeExport } from "./rest/targets.ts";
import { WORKS } from "./rest/works.ts";
import { SCHEMA } from "./schema.ts";
import { startScratch } from "./scratch.ts";

/** Programs that compile themselves while they run are faster afterwards. */
const FIRST_WARM_UP_SECONDS = 4;

export const bench: Bench = async (options) => {
  const { rounds, seconds, tell } = options;
  tell("rest: the table interface over HTTP, row-level security on, callers by token");
  const version = await requirePgbench().catch((error: Error) => tell(`pgbench skipped: ${error.message}`));
  tellPreface(options, ENTRANTS);
  const entrants = ENTRANTS.filter(({ isInstalled }) => isInstalled);

  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startScratch(SCHEMA + READINGS));
  const generator = opened.use(startLoadGenerator());
  const copier = opened.use(await startCopier(scratch));
  const contestants: Contestant[] = [];
  for (const { start } of entrants) {
    contestants.push(opened.adopt(await start(scratch), (contestant) => contestant.stop()));
  }
  const scripts = version ? await recordScripts(WORKS, { scratch, generator }) : null;
  const field = { scratch, generator, copier, contestants, scripts };
  tell("");

  for (const run of runnersOf(WORKS[0]!, field).values()) await run(FIRST_WARM_UP_SECONDS);
  const outcomes: Outcome[] = [];
  for (const work of WORKS) {
    const outcome = outcomeOf(work.name, await byTurns(runnersOf(work, field), rounds, seconds));
    outcomes.push(outcome);
    tell(describeOutcome(outcome, work.rows ? "row" : "request"));
  }

  tell(`  export ${EXPORTED_ROWS.toLocaleString("en")} rows in one answer`);
  const exports = [];
  for (const { name, start } of entrants.filter((entrant) => EXPORTERS.includes(entrant.name))) {
    // Anew: what it has used before would hide by how much it grows.
    const contestant = await start(scratch);
    const told = await exportAll(contestant);
    await contestant.stop();
    exports.push({ name, ...told });
    tell(describeExport(name, told));
  }

  tell("\n  targets");
  for (const verdict of [...judge(outcomes), ...judgeExport(exports[0]!)]) tell(verdict);
  return { version, outcomes, exports };
};

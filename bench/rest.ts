// The table interface over HTTP, beside pgbench with the same statements and beside others who serve the same.

import type { Bench } from "./bench.ts";
import { compare } from "./contest/compare.ts";
import { judge } from "./contest/targets.ts";
import { requirePgbench } from "./pgbench.ts";
import { tellPreface } from "./preface.ts";
import { ENTRANTS } from "./rest/contestants.ts";
import { startCopier } from "./rest/copy.ts";
import { describeExport, EXPORTED_ROWS, EXPORTERS, exportAll, READINGS } from "./rest/export.ts";
import { judgeExport, TARGETS } from "./rest/targets.ts";
import { WORKS } from "./rest/works.ts";
import { SCHEMA } from "./schema.ts";
import { startScratch } from "./scratch.ts";
import { startInstalled } from "./start-installed.ts";

export const bench: Bench = async (options) => {
  const { tell } = options;
  tell("rest: the table interface over HTTP, row-level security on, callers by token");
  const version = await requirePgbench().catch((error: Error) => tell(`pgbench skipped: ${error.message}`));
  tellPreface(options, ENTRANTS);

  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startScratch(SCHEMA + READINGS));
  const copier = opened.use(await startCopier(scratch));
  const { started: contestants } = opened.use(await startInstalled(ENTRANTS, scratch));
  const hasPgbench = version !== undefined;
  const outcomes = await compare({ works: WORKS, scratch, copier, contestants, hasPgbench }, options);

  tell(`  export ${EXPORTED_ROWS.toLocaleString("en")} rows in one answer`);
  const exports = [];
  for (const { name, start } of ENTRANTS.filter(({ name, isInstalled }) => isInstalled && EXPORTERS.includes(name))) {
    // Anew: what it has used before would hide by how much it grows.
    const contestant = await start(scratch);
    const told = await exportAll(contestant);
    await contestant.stop();
    exports.push({ name, ...told });
    tell(describeExport(name, told));
  }

  tell("\n  targets");
  for (const verdict of [...judge(outcomes, TARGETS), ...judgeExport(exports[0]!)]) tell(verdict);
  return { version, outcomes, exports };
};

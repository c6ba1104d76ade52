// The table interface over HTTP, beside pgbench with the same statements and beside others who serve the same.

import type { Bench } from "./bench.ts";
import { compare } from "./comparison/compare.ts";
import { judge } from "./comparison/targets.ts";
import { requirePgbench } from "./pgbench.ts";
import { printPreface } from "./preface.ts";
import { startCopier } from "./rest/copy.ts";
import { describeExport, EXPORTED_ROWS, EXPORTERS, exportAll, READINGS } from "./rest/export.ts";
import { SERVERS } from "./rest/servers.ts";
import { judgeExport, TARGETS } from "./rest/targets.ts";
import { WORKS } from "./rest/works.ts";
import { SCHEMA } from "./schema.ts";
import { startScratch } from "./scratch.ts";
import { startInstalled } from "./start-installed.ts";

export const bench: Bench = async (options) => {
  const { print } = options;
  print("rest: the table interface over HTTP, row-level security on, callers by token");
  const version = await requirePgbench().catch((error: Error) => print(`pgbench skipped: ${error.message}`));
  printPreface(options, SERVERS);

  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startScratch(SCHEMA + READINGS));
  const copier = opened.use(await startCopier(scratch));
  const { started: servers } = opened.use(await startInstalled(SERVERS, scratch));
  const hasPgbench = version !== undefined;
  const outcomes = await compare({ works: WORKS, scratch, copier, servers, hasPgbench }, options);

  print(`  export ${EXPORTED_ROWS.toLocaleString("en")} rows in one answer`);
  const exports = [];
  for (const { name, start } of SERVERS.filter(({ name, isInstalled }) => isInstalled && EXPORTERS.includes(name))) {
    // Anew: what it has used before would hide by how much it grows.
    const server = await start(scratch);
    const told = await exportAll(server);
    await server.stop();
    exports.push({ name, ...told });
    print(describeExport(name, told));
  }

  print("\n  targets");
  for (const verdict of [...judge(outcomes, TARGETS), ...judgeExport(exports[0]!)]) print(verdict);
  return { version, outcomes, exports };
};

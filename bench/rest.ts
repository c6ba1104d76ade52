// Benchmarks the table interface over HTTP, beside pgbench with the same statements and beside other servers of the same data.

import { availableParallelism } from "node:os";
import { compare } from "./comparison/compare.ts";
import { COPY, PGBENCH } from "./comparison/runners.ts";
import { judge, type Target, type Targets, verdict } from "./comparison/targets.ts";
import type { Bench } from "./measuring/kind.ts";
import { requirePgbench } from "./measuring/pgbench.ts";
import { SCHEMA } from "./measuring/schema.ts";
import { startScratch } from "./measuring/scratch.ts";
import { printPreface } from "./preface.ts";
import { startCopier } from "./rest/copy.ts";
import { describeExport, EXPORTED_ROWS, EXPORTERS, type Export, exportAll, READINGS } from "./rest/export.ts";
import { BUN_SQL, EXPRESS, FASTIFY, LITE, PGX, POSTGREST, SERVERS } from "./rest/servers.ts";
import { judgeUpdatesByKey, measureUpdatesByKey } from "./rest/update-by-key.ts";
import { WORKS } from "./rest/works.ts";
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
    // The server is new: memory that it has already used would hide its growth.
    const server = await start(scratch);
    const told = await exportAll(server);
    await server.stop();
    exports.push({ name, ...told });
    print(describeExport(name, told));
  }

  const updatesByKey = await measureUpdatesByKey(scratch, servers[0]!, options);
  print("\n  targets");
  const verdicts = [...judge(outcomes, targetsOn(availableParallelism())), ...judgeExport(exports[0]!)];
  for (const verdict of [...verdicts, judgeUpdatesByKey(updatesByKey)]) print(verdict);
  return { version, outcomes, exports, updatesByKey };
};

/** Returns the targets. With few processors the client and Postgres use most of them, which makes the ratios of all servers similar. */
export function targetsOn(cores: number): Targets {
  const hasFewCores = cores < 4;
  const reads: readonly Target[] = [
    { than: PGBENCH, least: hasFewCores ? 0.55 : 0.6 },
    { than: POSTGREST, least: hasFewCores ? 4 : 5 },
    { than: LITE, least: hasFewCores ? 9 : 12 },
    // Express reaches a sixth of pgbench, so six times its rate would be Postgres's maximum.
    { than: EXPRESS, least: 3 },
    { than: FASTIFY, least: 1.5 },
    { than: BUN_SQL, least: 1.5 },
  ];
  return {
    "one row by key": [...reads, { than: PGX, least: 0.8, by: "processor time" }],
    "20 rows with a many-to-one embed": reads,
    "insert one row": [{ than: PGBENCH, least: 0.55 }],
    "insert 10,000 rows": [{ than: COPY, least: 0.5 }],
  };
}

function judgeExport({ firstByteMilliseconds, grownMebibytes }: Export): string[] {
  const milliseconds = firstByteMilliseconds.toFixed(0);
  const first = verdict(`export: first byte after ${milliseconds} ms`, firstByteMilliseconds < 100, "100 ms");
  if (grownMebibytes === null) return [first];
  return [first, verdict(`export: memory +${grownMebibytes.toFixed(0)} MiB`, grownMebibytes < 64, "64 MiB")];
}

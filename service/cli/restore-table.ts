import { once } from "node:events";
import { access } from "node:fs/promises";
import {
  describePlannedTime,
  EMBEDDED_DATABASE,
  type LostRows,
  planFor,
  reachPostgres,
  restoreLostRows,
} from "#cluster";
import {
  type DifferingRow,
  isDifferent,
  openArchiveSource,
  openDatabaseSource,
  type RestoredTable,
  type RestoreTablesOptions,
  restoreTables,
  type TableSource,
} from "#cluster/archive";
import { type RecoveryPlan, withRecovered } from "#cluster/wal-archive";
import { branchDatabase, type Config } from "#config";
import { UsageError } from "./command/command.ts";
import { parseTarget } from "./restore-at.ts";

type RowOptions = Pick<RestoreTablesOptions, "where" | "mode"> & {
  /** The tables to compare; if null, all tables of the exposed schemas. */
  readonly tables: readonly string[] | null;
  readonly format: "text" | "json";
};

type TableOptions = RowOptions & {
  /** A backup file; with `at`, the folder of a WAL archive, or null. */
  readonly from: string | null;
  readonly at: string | null;
};

/** Compares the rows of tables with those of a backup or of an earlier time, and restores them on request. */
export async function restoreRowsOfTables(config: Config, { from, at, ...options }: TableOptions): Promise<void> {
  const { tables } = options;
  // Only a time can restore all tables; a backup needs the names of tables.
  const named = { ...options, tables: tables ?? [] };
  if (at === null) {
    if (from === null) throw new UsageError("Specify a backup by --from FILE, or a time by --at.");
    await access(from);
    return restore(config, await openArchiveSource(from), named);
  }
  const plan = await planFor(config, { target: parseTarget(at), from });
  if (tables === null) return restoreLost(config, plan, options);
  await withRecovered(plan, report, (urlOf) => {
    const url = urlOf("postgres", branchDatabase(EMBEDDED_DATABASE, config.branch));
    return restore(config, openDatabaseSource(url, describePlannedTime(plan)), named);
  });
}

const report = (step: string) => console.error(step);

type NamedTables = RowOptions & { readonly tables: readonly string[] };

async function restore(config: Config, source: TableSource, { format, ...options }: NamedTables): Promise<void> {
  const postgres = await reachPostgres(config, report);
  try {
    const reportRow = format === "json" ? printRow : undefined;
    const restored = await restoreTables({ ...options, url: postgres.directUrl, source, reportRow });
    if (format === "json") return printSummaries(restored);
    for (const table of restored) console.log(describe(table, source.madeAt));
    console.log(describeOutcome(restored, options.mode));
  } finally {
    await postgres.close();
  }
}

/** Restores the lost rows of all tables. */
async function restoreLost(config: Config, plan: RecoveryPlan, { format, mode }: RowOptions): Promise<void> {
  const postgres = await reachPostgres(config, report);
  try {
    const reportRow = format === "json" ? printRow : undefined;
    const lost = await restoreLostRows(config, { plan, report, url: postgres.directUrl, mode, reportRow });
    if (format === "json") {
      printSummaries(lost.restored);
      for (const table of lost.dropped) console.log(JSON.stringify({ table, isDropped: true }));
      return;
    }
    for (const table of lost.restored.filter(isDifferent)) console.log(describe(table, lost.madeAt));
    console.log(describeOthers(lost));
    console.log(describeOutcome(lost.restored, mode));
  } finally {
    await postgres.close();
  }
}

function printSummaries(restored: readonly RestoredTable[]): void {
  for (const each of restored) console.log(JSON.stringify(summarize(each)));
}

async function printRow({ table, kind, json }: DifferingRow): Promise<void> {
  // Values of the type json keep their line breaks.
  const line = `{"table":${JSON.stringify(table)},"${kind}":${json.replace(/[\r\n]/g, " ")}}\n`;
  if (!process.stdout.write(line)) await once(process.stdout, "drain");
}

function summarize({ comparison, applied }: RestoredTable) {
  const { target, missing, different, onlyHere } = comparison;
  const written = applied && { inserted: applied.inserted, updated: applied.updated };
  return { table: target.table, rows: { missing, different, onlyHere }, ...written };
}

function describeOthers({ restored, dropped }: LostRows): string {
  const same = restored.filter((table) => !isDifferent(table)).length;
  const lines = dropped.map((table) => `${table} is dropped: --at TIME --into FOLDER restores a copy that has it.`);
  return [...lines, `${same} of ${restored.length} tables are as they were.`].join("\n");
}

function describe({ comparison, applied, dependents }: RestoredTable, madeAt: string): string {
  const { target, missing, different, onlyHere, gone, added, archived } = comparison;
  const key = target.key
    ? `compared by ${target.key.columns.map(({ name }) => name).join(", ")}`
    : "compared as whole rows, because it has no key that the backup has too";
  const here = onlyHere === null ? "" : `, ${onlyHere} only here (they stay)`;
  const lines = [
    `${target.table}, ${archived} ${archived === 1 ? "row" : "rows"} as of ${madeAt}, ${key}:`,
    `  ${missing} missing here, ${different} different${here}`,
    ...examples("missing", comparison.missingExamples, missing),
    ...examples("different [here, then]", comparison.differentExamples, different),
    ...(gone.length > 0 ? [`  not restored, because the table does not have them any more: ${gone.join(", ")}`] : []),
    ...(added.length > 0 ? [`  added since, with their defaults in inserted rows: ${added.join(", ")}`] : []),
    ...(applied && applied.skippedTriggers.length > 0
      ? [`  triggers that were not run, because the rows have passed them: ${applied.skippedTriggers.join(", ")}`]
      : []),
    ...(missing > 0 && dependents.length > 0
      ? [`  deleting these rows has deleted or changed rows of: ${dependents.join(", ")}`]
      : []),
  ];
  return lines.join("\n");
}

function examples(title: string, rows: readonly string[], total: number): string[] {
  if (rows.length === 0) return [];
  const rest = total > rows.length ? [`    … and ${total - rows.length} more`] : [];
  return [`  ${title}:`, ...rows.map((row) => `    ${row}`), ...rest];
}

function describeOutcome(restored: readonly RestoredTable[], mode: RestoreTablesOptions["mode"]): string {
  if (mode === "preview") {
    return "Nothing was changed. --apply inserts the missing rows; with --overwrite also, the different ones become as they were.";
  }
  const [inserted, updated] = (["inserted", "updated"] as const).map((what) =>
    restored.reduce((sum, { applied }) => sum + (applied?.[what] ?? 0), 0),
  );
  return `${inserted} ${inserted === 1 ? "row is" : "rows are"} inserted and ${updated} overwritten.`;
}

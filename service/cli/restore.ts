import { access } from "node:fs/promises";
import { reachPostgres, withTemporaryFolder } from "#cluster";
import { checkArchive, checkInScratch, type RestoreResult, restoreArchive } from "#cluster/archive";
import { type Config, isEmbedded } from "#config";
import { openFileStore } from "#files";
import { commandLine } from "#runtime";
import { runCommand, UsageError } from "./command/command.ts";
import { checkAt, listTimes, restoreAt } from "./restore-at.ts";
import { restoreRowsOfTables } from "./restore-table.ts";

await runCommand({
  usage: `${commandLine("restore", "[--check] FILE")}
${commandLine("restore", "[--check] --at TIME [--into FOLDER] [--from ARCHIVE]")}
${commandLine("restore", "--table NAME (--from FILE | --at TIME) [--where SQL] [--apply [--overwrite]]")}
${commandLine("restore", "--lost --at TIME [--json] [--apply [--overwrite]]")}
${commandLine("restore", "--list")}
  Restores a backup into the empty database of DATA_DIR or DATABASE_URL. A database with tables is refused.
  With --at, restores the embedded Postgres as of a time from the WAL archive of BACKUP_WAL, into a new data folder.
  With --table, compares the rows of a table with those of a backup or a time, and prints what is missing or different.
  With --lost, does so for all tables of the exposed schemas.
  --at         a time such as '10 minutes ago', '2026-11-22 10:15' (of this machine) or '2026-11-22T10:15:30+01:00', or latest
  --into       the new data folder; without it, one beside DATA_DIR with the time in its name
  --from       with --at, the folder of a WAL archive, if several have the time; with --table, a backup
  --check      restores into a temporary place instead, checks the result, and deletes it
  --list       prints the times that can be restored
  --table      a table, such as public.notes; several are restored in one transaction, referenced ones first
  --where      a condition in SQL on the rows of the backup
  --apply      inserts the missing rows; rows are never deleted
  --overwrite  with --apply: gives the different rows the values that they had
  --json       prints a line of JSON for each row that is missing or different, and for each table

Examples:
  DATA_DIR=.restored ${commandLine("restore", "content.backup.gz")}
  ${commandLine("restore", "--check content.backup.gz")}
  ${commandLine("restore", "--at '2026-11-22 10:15' --into .restored")}
  ${commandLine("restore", "--check --at latest")}
  ${commandLine("restore", "--lost --at '10 minutes ago'")}
  ${commandLine("restore", "--table public.notes --at '2026-11-22 10:15' --where 'id = 42' --apply")}`,
  options: {
    check: { type: "boolean" },
    list: { type: "boolean" },
    at: { type: "string" },
    into: { type: "string" },
    from: { type: "string" },
    table: { type: "string", multiple: true },
    where: { type: "string" },
    apply: { type: "boolean" },
    overwrite: { type: "boolean" },
    lost: { type: "boolean" },
    json: { type: "boolean" },
  },
  async run(config, args, options) {
    refuseMixed(args, options);
    const { check, list, at, into, from, where, apply, overwrite, lost, json } = options as RestoreOptions;
    const tables = (options.table as string[] | undefined) ?? null;
    const [file] = args;
    if (list) return listTimes(config);
    if (tables || lost) {
      const mode = overwrite ? "overwrite" : apply ? "insert" : "preview";
      const source = { from: from ?? file ?? null, at: at ?? null };
      const format = json ? "json" : "text";
      return restoreRowsOfTables(config, { ...source, tables, where: where ?? null, mode, format });
    }
    if (at !== undefined) {
      const time = { at, from: from ?? null };
      return check ? checkAt(config, time) : restoreAt(config, { ...time, into: into ?? null });
    }
    if (!file) throw new UsageError("Specify a file, or a time by --at.");
    await restoreFrom(file, config, Boolean(check));
  },
});

type RestoreOptions = {
  readonly [flag in "check" | "list" | "apply" | "overwrite" | "lost" | "json"]?: boolean;
} & { readonly [value in "at" | "into" | "from" | "where"]?: string };

/** Throws for options that do not belong together. */
function refuseMixed(args: readonly string[], options: Readonly<Record<string, unknown>>): void {
  const has = (...names: readonly string[]) => names.some((name) => options[name] !== undefined);
  if (args.length > 1) throw new UsageError("Specify one file.");
  if (has("list") && (args.length > 0 || Object.keys(options).length > 1)) throw new UsageError("--list stands alone.");
  if (has("at") && args.length > 0) throw new UsageError("Specify a file or --at, not both.");
  if (has("lost") && (has("table", "where") || !has("at")))
    throw new UsageError("--lost compares all tables with a time by --at, without --table and --where.");
  if (has("table", "lost")) {
    if (has("check", "into")) throw new UsageError("--check and --into do not belong to --table and --lost.");
    if (has("from") && args.length > 0) throw new UsageError("Specify one file.");
    if (has("overwrite") && !has("apply")) throw new UsageError("--overwrite belongs to --apply.");
    return;
  }
  if (has("where", "apply", "overwrite", "json"))
    throw new UsageError("--where, --apply, --overwrite and --json belong to --table.");
  if (has("into", "from") && !has("at")) throw new UsageError("--into and --from belong to --at.");
  if (has("into") && has("check")) throw new UsageError("--check uses a temporary folder, not --into.");
}

async function restoreFrom(file: string, config: Config, check: boolean): Promise<void> {
  // The file must be readable before a cluster is created for it.
  await access(file);
  const { rows, tables, files, header, warnings } = await (check ? checkFile(file, config) : restoreFile(file, config));
  for (const warning of warnings) console.error(`warning: ${warning}`);
  const verb = check ? "can be restored" : "are restored";
  const contents = files > 0 ? ` and ${files} files` : "";
  console.log(`${rows} rows of ${tables.length} tables${contents} ${verb}, as of ${header.madeAt}.`);
}

function report(step: string): void {
  console.error(step);
}

async function restoreFile(file: string, config: Config): Promise<RestoreResult> {
  const postgres = await reachPostgres(config, report, { mayCreate: true });
  try {
    return await restoreArchive(file, postgres.migrate, { store: openFileStore(config) });
  } finally {
    await postgres.close();
  }
}

/** Uses the scratch database of DATABASE_URL's server, or an embedded Postgres of its own. */
async function checkFile(file: string, config: Config): Promise<RestoreResult> {
  if (!isEmbedded(config)) {
    const { migrate } = await reachPostgres(config, report);
    return checkInScratch(file, migrate);
  }
  return withTemporaryFolder("restore-check", async (dataDir) => {
    const postgres = await reachPostgres({ ...config, dataDir, embeddedPort: null }, report, { mayCreate: true });
    try {
      return await checkArchive(file, postgres.migrate);
    } finally {
      await postgres.close();
    }
  });
}

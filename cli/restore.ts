import { access, chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkArchive, type RestoreResult, restoreArchive } from "../engine/archive/restore-archive.ts";
import { commandLine } from "../engine/command-line.ts";
import { type Config, isEmbedded } from "../engine/config/config.ts";
import { withScratchDatabase } from "../engine/migrate/scratch-database.ts";
import { reachPostgres } from "../engine/postgres/served-postgres.ts";
import { runCommand, UsageError } from "./command.ts";
import { checkAt, listTimes, restoreAt } from "./restore-at.ts";

await runCommand({
  usage: `${commandLine("restore", "[--check] FILE")}
${commandLine("restore", "[--check] --at TIME [--into FOLDER] [--from ARCHIVE]")}
${commandLine("restore", "--list")}
  Restores a backup into the empty database of DATA_DIR or DATABASE_URL. A database with tables is refused.
  With --at, restores the embedded Postgres as of a time from the WAL archive of BACKUP_WAL, into a new data folder.
  --at      a time such as '2026-11-22 10:15' (of this machine) or '2026-11-22T10:15:30+01:00', or latest
  --into    the new data folder; without it, one beside DATA_DIR with the time in its name
  --from    the folder of a WAL archive, if several have the time
  --check   restores into a temporary place instead, checks the result, and deletes it
  --list    prints the times that can be restored

Examples:
  DATA_DIR=.restored ${commandLine("restore", "content.backup.gz")}
  ${commandLine("restore", "--check content.backup.gz")}
  ${commandLine("restore", "--at '2026-11-22 10:15' --into .restored")}
  ${commandLine("restore", "--check --at latest")}`,
  options: {
    check: { type: "boolean" },
    list: { type: "boolean" },
    at: { type: "string" },
    into: { type: "string" },
    from: { type: "string" },
  },
  async run(config, args, options) {
    const { check, list } = options;
    const [at, into, from] = [options.at, options.into, options.from].map((value) =>
      typeof value === "string" ? value : null,
    ) as [string | null, string | null, string | null];
    if (list) return listTimes(config);
    if (at !== null) {
      if (args.length > 0) throw new UsageError("Specify a file or --at, not both.");
      return check ? checkAt(config, { at, from }) : restoreAt(config, { at, from, into });
    }
    if (into !== null || from !== null) throw new UsageError("--into and --from belong to --at.");
    const [file, ...others] = args;
    if (!file || others.length > 0) throw new UsageError("Specify a file, or a time by --at.");
    await restoreFrom(file, config, Boolean(check));
  },
});

async function restoreFrom(file: string, config: Config, check: boolean): Promise<void> {
  // Before a cluster is created for it.
  await access(file);
  const { rows, tables, header, warnings } = await (check ? checkFile(file, config) : restoreFile(file, config));
  for (const warning of warnings) console.error(`warning: ${warning}`);
  const verb = check ? "can be restored" : "are restored";
  console.log(`${rows} rows of ${tables.length} tables ${verb}, as of ${header.madeAt}.`);
}

function report(step: string): void {
  console.error(step);
}

async function restoreFile(file: string, config: Config): Promise<RestoreResult> {
  const postgres = await reachPostgres(config, report, { mayCreate: true });
  try {
    return await restoreArchive(file, postgres.migrate);
  } finally {
    await postgres.close();
  }
}

/** Uses the scratch database of DATABASE_URL's server, or an embedded Postgres of its own. */
async function checkFile(file: string, config: Config): Promise<RestoreResult> {
  if (!isEmbedded(config)) {
    const { migrate } = await reachPostgres(config, report);
    const { shadowUrl, rootUrl } = migrate;
    return withScratchDatabase(shadowUrl, rootUrl, () => checkArchive(file, { ...migrate, url: shadowUrl }));
  }
  const dataDir = await mkdtemp(join(tmpdir(), "restore-check-"));
  // The embedded Postgres may run as another user.
  await chmod(dataDir, 0o755);
  try {
    const postgres = await reachPostgres({ ...config, dataDir, embeddedPort: null }, report, { mayCreate: true });
    try {
      return await checkArchive(file, postgres.migrate);
    } finally {
      await postgres.close();
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

import { access, chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkArchive, type RestoreResult, restoreArchive } from "../engine/archive/restore-archive.ts";
import { commandLine } from "../engine/command-line.ts";
import { type Config, isEmbedded } from "../engine/config/config.ts";
import { withScratchDatabase } from "../engine/migrate/scratch-database.ts";
import { reachPostgres } from "../engine/postgres/served-postgres.ts";
import { runCommand, UsageError } from "./command.ts";

await runCommand({
  usage: `${commandLine("restore", "[--check] FILE")}
  Restores a backup into the empty database of DATA_DIR or DATABASE_URL. A database with tables is refused.
  --check   restores into a temporary database instead, compares it with the backup, and drops it

Examples:
  DATA_DIR=.restored ${commandLine("restore", "content.backup.gz")}
  ${commandLine("restore", "--check content.backup.gz")}`,
  options: { check: { type: "boolean" } },
  async run(config, [file, ...others], { check }) {
    if (!file || others.length > 0) throw new UsageError("Specify a file.");
    // Before a cluster is created for it.
    await access(file);
    const { rows, tables, header, warnings } = await (check ? checkFile(file, config) : restoreFile(file, config));
    for (const warning of warnings) console.error(`warning: ${warning}`);
    const verb = check ? "can be restored" : "are restored";
    console.log(`${rows} rows of ${tables.length} tables ${verb}, as of ${header.madeAt}.`);
  },
});

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

import { EMBEDDED_DATABASE, reachPostgres, upgradeCluster } from "#cluster";
import { type Config, isEmbedded } from "#config";
import { readMigrationState, runMigrations } from "#migrate";
import { withClient } from "#postgres/client";
import { commandLine } from "#runtime";
import { runCommand, UsageError } from "./command/command.ts";

await runCommand({
  usage: `${commandLine("upgrade", "[--programs FOLDER]")}
  Brings the database to this version: the embedded Postgres from an older major version, of which the original is kept; and
  the migrations of the release, then the project's.
  --programs   folder of the postgres program of the older version, if it is not in the usual place

Example:
  ${commandLine("upgrade", "--programs /usr/lib/postgresql/17/bin")}`,
  options: { programs: { type: "string" } },
  async run(config, args, { programs }) {
    if (args.length > 0) throw new UsageError(`Unexpected argument "${args[0]}".`);
    const isCopied = isEmbedded(config)
      ? await upgradeServer(config, typeof programs === "string" ? programs : null)
      : refusePrograms(programs);
    const isMigrated = await upgradeDatabase(config);
    if (!isCopied && !isMigrated) console.log("The database has this version already. Nothing to upgrade.");
  },
});

function refusePrograms(programs: unknown): false {
  if (programs === undefined) return false;
  throw new Error("--programs is for the embedded database. Upgrade the server of DATABASE_URL with its own tools.");
}

async function upgradeServer(config: Config, oldBinaries: string | null): Promise<boolean> {
  const upgraded = await upgradeCluster({
    dataDir: config.dataDir,
    oldBinaries,
    database: EMBEDDED_DATABASE,
    startCluster: (dataDir) => reachPostgres({ ...config, dataDir }, report, { mayCreate: true }),
    report,
  });
  if (!upgraded) return false;
  const { archive, original } = upgraded;
  for (const warning of archive.warnings) console.error(`warning: ${warning}`);
  console.log(`${archive.rows} rows of ${archive.tables.length} tables are copied.`);
  console.log(`The original is in ${original}; remove it when you have checked the result.`);
  return true;
}

/** Migrates the database. A database without our schemas stays as it is. */
async function upgradeDatabase(config: Config): Promise<boolean> {
  const postgres = await reachPostgres(config, report, { mayCreate: false });
  try {
    const readState = () =>
      withClient(postgres.directUrl, (client) => readMigrationState(client, postgres.migrate.histories));
    const before = await readState();
    if (before.kind === "foreign" || before.kind === "current" || before.kind === "ahead") return false;
    await runMigrations({ name: "migrate" }, postgres.migrate);
    const after = await readState();
    if (after.kind === "current") console.log(`All ${after.applied} migrations are applied.`);
    return true;
  } finally {
    await postgres.close();
  }
}

function report(step: string): void {
  console.error(step);
}

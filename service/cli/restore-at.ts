import { resolve } from "node:path";
import { EMBEDDED_DATABASE, planFor, refuseExternal } from "#cluster";
import {
  checkRecovery,
  copySecrets,
  listArchives,
  parseRecoveryTarget,
  type RecoveryPlan,
  type RecoveryTarget,
  readPointer,
  recoverableRange,
  recoverCluster,
  walFolder,
} from "#cluster/wal-archive";
import type { Config } from "#config";
import { displayPath } from "#migrate";
import { withClient } from "#postgres/client";
import { commandLine } from "#runtime";
import { UsageError } from "./command/command.ts";

type TimeOptions = {
  readonly at: string;
  /** The folder of an archive; if null, the archive is found by the time. */
  readonly from: string | null;
};

const report = (step: string) => console.error(step);

/** Restores the cluster as of a time into a new data folder. */
export async function restoreAt(
  config: Config,
  { at, from, into }: TimeOptions & { readonly into: string | null },
): Promise<void> {
  const plan = await planFor(config, { target: parseTarget(at), from });
  const folder = into ?? `${config.dataDir}-${folderSuffix(plan)}`;
  // The folder appears together with its secrets: without them, a start would make new ones, and all users would have to sign in again.
  const { tables, hasSecrets } = await recoverCluster({ plan, into: folder, report }, async (urlOf, draft) => ({
    tables: await countTables(urlOf),
    hasSecrets: await copySecrets(config.dataDir, draft),
  }));
  const shown = displayPath(resolve(folder));
  console.log(
    `The database ${describeTime(plan)} is restored in ${shown}, with ${tables} tables. ${config.dataDir} is unchanged.`,
  );
  if (!hasSecrets) {
    console.log(
      `${config.dataDir} has no secrets.json. Put the one of the archived service into ${shown}, or set its JWT_SECRET: ` +
        "otherwise all users must sign in again, and encrypted secrets of identity providers cannot be read.",
    );
  }
  console.log(`Look at it, without running its schedules and webhooks:
  DATA_DIR=${shown} PORT=0 SCHEDULES=false WEBHOOKS=false BACKUP_WAL=false ${commandLine("start")}
To use it instead of the present one, stop the service and start it with:
  DATA_DIR=${shown} ${commandLine("start")}`);
}

/** Restores into a temporary folder, and reads all of it. */
export async function checkAt(config: Config, options: TimeOptions): Promise<void> {
  const plan = await planFor(config, { target: parseTarget(options.at), from: options.from });
  const { tables, indexes, databases } = await checkRecovery(plan, report);
  console.log(
    `The WAL archive can be restored ${describeTime(plan)}: ${tables} tables and ${indexes} indexes of ${databases} databases are undamaged.`,
  );
}

/** Prints the times that can be restored. */
export async function listTimes(config: Config): Promise<void> {
  refuseExternal(config);
  const archives = await listArchives(walFolder(config.backupDir));
  const ranges = archives.map((archive) => ({ archive, range: recoverableRange(archive) }));
  const current = await readPointer(config.dataDir);
  for (const { archive, range } of ranges) {
    const times = range ? `${range.from.toISOString()} to ${range.to.toISOString()}` : "no complete base backup yet";
    const note = archive.folder.endsWith(`/${current}`) ? `, of ${config.dataDir}` : "";
    console.log(`${times} (${archive.bases.length} base backups, ${archive.folder}${note})`);
  }
  if (archives.length === 0)
    console.log(`There is no WAL archive in ${walFolder(config.backupDir)}. BACKUP_WAL=true makes one.`);
}

export function parseTarget(at: string): RecoveryTarget {
  try {
    return parseRecoveryTarget(at);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function describeTime({ until, archive }: RecoveryPlan): string {
  if (until) return `as of ${until.toISOString()}`;
  const end = recoverableRange(archive)?.to.toISOString();
  return `as of the end of the archive (${end} or later)`;
}

function folderSuffix({ until }: RecoveryPlan): string {
  return (until ?? new Date()).toISOString().slice(0, 19).replaceAll(":", "-");
}

/** Counts the tables, which checks that the recovered server answers, accepts writes, and has the database of the service. */
function countTables(urlOf: (role: string, database: string) => string): Promise<number> {
  return withClient(urlOf("postgres", EMBEDDED_DATABASE), async (client) => {
    const { rows } = await client.query<{ tables: number; recovering: boolean }>(
      `select (select pg_catalog.count(*)::int from pg_catalog.pg_class join pg_catalog.pg_namespace n on n.oid = relnamespace
                where relkind = 'r' and nspname !~ '^pg_' and nspname <> 'information_schema') as tables,
              pg_catalog.pg_is_in_recovery() as recovering`,
    );
    if (rows[0]!.recovering) throw new Error("The restored server is still in recovery.");
    return rows[0]!.tables;
  });
}

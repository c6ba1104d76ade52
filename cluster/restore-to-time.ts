import { basename, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { branchDatabase, type Config, isEmbedded } from "#config";
import { listComparedTables } from "./archive/table-restore/compared-tables.ts";
import {
  type RestoredTable,
  type RestoreTablesOptions,
  restoreTables,
} from "./archive/table-restore/restore-tables.ts";
import { openDatabaseSource } from "./archive/table-restore/table-source.ts";
import { findFileOwner } from "./embedded/cluster-folders.ts";
import { EMBEDDED_DATABASE } from "./served-postgres.ts";
import {
  type ArchiveContent,
  listArchives,
  readArchiveFolder,
  recoverableRange,
  WRITER_FILE,
  walFolder,
} from "./wal-archive/archive-folder.ts";
import { withRecovered } from "./wal-archive/check-wal-archive.ts";
import { planRecovery, type RecoveryPlan } from "./wal-archive/choose-archive.ts";
import { readPointer } from "./wal-archive/open-archive.ts";
import type { RecoveryTarget } from "./wal-archive/recovery-time.ts";

/** A running service archives a commit within seconds. */
const ARCHIVE_WAIT_MS = 15_000;
const POLL_MS = 250;

type RestoreRequest = {
  readonly target: RecoveryTarget;
  /** The folder of an archive; null to find it by the time. */
  readonly from: string | null;
};

/** Plans the base backup and WAL to restore. */
export async function planFor(config: Config, { target, from }: RestoreRequest): Promise<RecoveryPlan> {
  refuseExternal(config);
  const current = await readPointer(config.dataDir);
  const giveUpAt = performance.now() + ARCHIVE_WAIT_MS;
  for (;;) {
    const archives = await findArchives(config, from);
    try {
      return planRecovery(archives, { target, current, now: new Date() });
    } catch (error) {
      if (performance.now() > giveUpAt || !(await isBehind(archives, target))) throw error;
    }
    await sleep(POLL_MS);
  }
}

async function findArchives({ backupDir }: Config, from: string | null): Promise<ArchiveContent[]> {
  if (from === null) return listArchives(walFolder(backupDir));
  const archive = await readArchiveFolder(resolve(from));
  if (!archive)
    throw new Error(`${from} is not the folder of a WAL archive, such as ${join(walFolder(backupDir), "2026-…")}.`);
  return [archive];
}

/** True if a running service still archives the commits up to that time. */
async function isBehind(archives: readonly ArchiveContent[], target: RecoveryTarget): Promise<boolean> {
  if (target === "latest" || target.at > new Date()) return false;
  for (const archive of archives) {
    const range = recoverableRange(archive);
    const isLater = range !== null && target.at > range.to && Date.now() - target.at.getTime() < ARCHIVE_WAIT_MS;
    if (isLater && (await findFileOwner(join(archive.folder, WRITER_FILE))) !== null) return true;
  }
  return false;
}

const EXTERNAL =
  "Only the embedded Postgres is restored to a time here. For the server of DATABASE_URL use the tool that archives its WAL: " +
  "pgBackRest, WAL-G, Barman, or the provider's point-in-time recovery.";

export function refuseExternal(config: Config): void {
  if (!isEmbedded(config)) throw new Error(EXTERNAL);
}

type RecoverableTimes = { readonly from: Date; readonly to: Date };

/** Returns the times of the archive that the database writes to, or the reason why there are none. */
export async function findRecoverableTimes(
  config: Config,
): Promise<{ readonly times: RecoverableTimes } | { readonly reason: string; readonly how: string | null }> {
  if (!isEmbedded(config)) return { reason: EXTERNAL, how: null };
  const current = await readPointer(config.dataDir);
  const archives = await listArchives(walFolder(config.backupDir));
  const archive = archives.find(({ folder }) => basename(folder) === current);
  const times = archive && recoverableRange(archive);
  if (times) return { times };
  return config.archivesWal
    ? { reason: "The WAL archive has no complete base backup yet.", how: "Wait until /health shows recoverable times." }
    : { reason: "There is no WAL archive.", how: "Set BACKUP_WAL=true." };
}

export type LostRows = {
  /** The time for messages. */
  readonly madeAt: string;
  readonly restored: readonly RestoredTable[];
  /** The tables that no longer exist. */
  readonly dropped: readonly string[];
};

type LostRowsOptions = Pick<RestoreTablesOptions, "url" | "mode" | "reportRow"> & {
  readonly plan: RecoveryPlan;
  readonly report: (step: string) => void;
};

/** Compares all tables of the exposed schemas with those of an earlier time, and restores their rows on request. */
export function restoreLostRows(config: Config, { plan, report, url, ...options }: LostRowsOptions): Promise<LostRows> {
  const madeAt = describePlannedTime(plan);
  return withRecovered(plan, report, async (urlOf) => {
    const earlierUrl = urlOf("postgres", branchDatabase(EMBEDDED_DATABASE, config.branch));
    const source = openDatabaseSource(earlierUrl, madeAt);
    const { tables, dropped } = await listComparedTables(url, earlierUrl, config.schemas);
    return { madeAt, dropped, restored: await restoreTables({ ...options, url, source, tables, where: null }) };
  });
}

export function describePlannedTime({ until }: RecoveryPlan): string {
  return until?.toISOString() ?? "the end of the WAL archive";
}

import { branchDatabase, type Config } from "#config";
import { listComparedTables } from "./archive/table-restore/compared-tables.ts";
import {
  type RestoredTable,
  type RestoreTablesOptions,
  restoreTables,
} from "./archive/table-restore/restore-tables.ts";
import { openDatabaseSource } from "./archive/table-restore/table-source.ts";
import { EMBEDDED_DATABASE } from "./served-postgres.ts";
import { withRecovered } from "./wal-archive/check-wal-archive.ts";
import type { RecoveryPlan } from "./wal-archive/choose-archive.ts";

export type LostRows = {
  /** For messages. */
  readonly madeAt: string;
  readonly restored: readonly RestoredTable[];
  /** Tables that are not here any more. */
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

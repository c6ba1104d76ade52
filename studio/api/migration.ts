import type { AppliedSql, DryRunResult, FailedSql, MigrationStatus, RowsToCount } from "#operations/admin-types";
import { adminCall } from "./admin.ts";

/** Reads how changes are applied, and the file that a change of this name would become. */
export function readMigrationState(name: string, signal: AbortSignal): Promise<MigrationStatus> {
  return adminCall<MigrationStatus>(`GET /migration?${new URLSearchParams({ name })}`, { signal });
}

/** Tries a change in a dry run, which changes nothing. */
export function tryChange(sql: string, counted?: RowsToCount): Promise<DryRunResult | FailedSql> {
  return adminCall<DryRunResult | FailedSql>("POST /migration", { body: { sql, dry_run: true, count_rows: counted } });
}

/** Applies a change. The name becomes part of the file's name. */
export function applyChange(sql: string, name: string): Promise<AppliedSql | FailedSql> {
  return adminCall<AppliedSql | FailedSql>("POST /migration", { body: { sql, name } });
}

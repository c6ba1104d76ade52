import type {
  BackfillList,
  BranchList,
  ChangeLevel,
  ComparisonOfCopy,
  ContractSurface,
  FoundLostRows,
  LastMigrationUndo,
  LostRowsState,
  MigrationsState,
  NewBranch,
  Rehearsal,
} from "#operations/admin-types";
import { adminCall } from "../api/admin.ts";
import { request } from "../api/client.ts";

/** The levels, from harmless to severe. */
export const LEVELS = ["compatible", "dangerous", "breaking"] as const satisfies readonly ChangeLevel[];

export const SURFACES: readonly ContractSurface[] = ["graphql", "openapi", "tables", "types", "access"];

export function readMigrations(signal: AbortSignal): Promise<MigrationsState> {
  return adminCall<MigrationsState>("GET /migrations", { signal });
}

/** Rehearses the pending migrations; the signal stops it. */
export function rehearse(withRows: boolean, signal: AbortSignal): Promise<Rehearsal> {
  return adminCall<Rehearsal>("POST /migrations/rehearsal", { body: { with_rows: withRows }, signal });
}

/** Compares the interfaces; the signal stops it. */
export function compareInterfaces(signal: AbortSignal): Promise<ComparisonOfCopy> {
  return adminCall<ComparisonOfCopy>("POST /migrations/diff", { signal });
}

/** Finds out how to undo the last migration, without a change; the signal stops it. */
export function findUndo(signal: AbortSignal): Promise<LastMigrationUndo> {
  return adminCall<LastMigrationUndo>("POST /migrations/undo", { body: {}, signal });
}

/** Undoes a migration. The file must be that of the last one. */
export function undoMigration(file: string): Promise<LastMigrationUndo> {
  return adminCall<LastMigrationUndo>("POST /migrations/undo", { body: { confirmed_file: file } });
}

export function listBackfills(signal: AbortSignal): Promise<BackfillList> {
  return adminCall<BackfillList>("GET /migrations/backfills", { signal });
}

/** Pauses a backfill after its batch, or resumes it. */
export async function pauseBackfill(id: number, isPaused: boolean): Promise<void> {
  await request(`/admin/v1/migrations/backfills/${id}`, { method: "POST", body: { paused: isPaused } });
}

export function listBranches(signal: AbortSignal): Promise<BranchList> {
  return adminCall<BranchList>("GET /branches", { signal });
}

/** Creates a branch. Resolves when the branch is listed; its rows are copied in the background. */
export async function createBranch(branch: NewBranch): Promise<void> {
  const headers = { Prefer: "respond-async" };
  await adminCall("POST /branches", { body: branch, headers });
}

export async function dropBranch(name: string): Promise<void> {
  await request(`/admin/v1/branches/${encodeURIComponent(name)}`, { method: "DELETE" });
}

export function readLostRowsState(signal: AbortSignal): Promise<LostRowsState> {
  return adminCall<LostRowsState>("GET /lost-rows", { signal });
}

/** Finds lost rows, without a change. */
export function findLostRows(at: string, signal: AbortSignal): Promise<FoundLostRows> {
  return adminCall<FoundLostRows>("POST /lost-rows", { body: { at }, signal });
}

/** Inserts the missing rows, and overwrites the different ones on request. */
export function restoreLostRows(at: string, overwrite: boolean): Promise<FoundLostRows> {
  return adminCall<FoundLostRows>("POST /lost-rows", { body: { at, apply: true, overwrite } });
}

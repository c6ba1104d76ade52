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

/** From harmless to severe. */
export const LEVELS = ["compatible", "dangerous", "breaking"] as const satisfies readonly ChangeLevel[];

export const SURFACES: readonly ContractSurface[] = ["graphql", "openapi", "tables", "types", "access"];

export function readMigrations(signal: AbortSignal): Promise<MigrationsState> {
  return adminCall<MigrationsState>("GET /migrations", { signal });
}

/** Ends with the signal. */
export function rehearse(withRows: boolean, signal: AbortSignal): Promise<Rehearsal> {
  return adminCall<Rehearsal>("POST /migrations/rehearsal", { body: { with_rows: withRows }, signal });
}

/** Ends with the signal. */
export function compareInterfaces(signal: AbortSignal): Promise<ComparisonOfCopy> {
  return adminCall<ComparisonOfCopy>("POST /migrations/diff", { signal });
}

/** Changes nothing. Ends with the signal. */
export function findUndo(signal: AbortSignal): Promise<LastMigrationUndo> {
  return adminCall<LastMigrationUndo>("POST /migrations/undo", { body: {}, signal });
}

/** The file must be that of the last migration. */
export function undoMigration(file: string): Promise<LastMigrationUndo> {
  return adminCall<LastMigrationUndo>("POST /migrations/undo", { body: { confirmed_file: file } });
}

export function listBackfills(signal: AbortSignal): Promise<BackfillList> {
  return adminCall<BackfillList>("GET /migrations/backfills", { signal });
}

/** Pauses it after its batch, or resumes it. */
export async function pauseBackfill(id: number, isPaused: boolean): Promise<void> {
  await request(`/admin/v1/migrations/backfills/${id}`, { method: "POST", body: { paused: isPaused } });
}

export function listBranches(signal: AbortSignal): Promise<BranchList> {
  return adminCall<BranchList>("GET /branches", { signal });
}

/** Resolves when it is listed; its rows are copied in the background. */
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

/** Changes nothing. */
export function findLostRows(at: string, signal: AbortSignal): Promise<FoundLostRows> {
  return adminCall<FoundLostRows>("POST /lost-rows", { body: { at }, signal });
}

/** Inserts the missing rows, and overwrites the different ones on request. */
export function restoreLostRows(at: string, overwrite: boolean): Promise<FoundLostRows> {
  return adminCall<FoundLostRows>("POST /lost-rows", { body: { at, apply: true, overwrite } });
}

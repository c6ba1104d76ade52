import { adminCall } from "../api/admin.ts";
import { request } from "../api/client.ts";
import type { SqlFault, UndoVerdict } from "../api/migration.ts";

/** Why nothing is copied, and what permits it. */
export type Refusal = { readonly reason: string; readonly how: string | null };

export type PendingMigration = {
  readonly history: string;
  readonly name: string;
  readonly file: string;
  readonly is_current: boolean;
  readonly is_applied: boolean;
  readonly sql: string;
};

/** The response of `GET /admin/v1/migrations`. */
export type MigrationList = {
  readonly refusal: Refusal | null;
  readonly commands: Readonly<Record<"rehearse" | "diff" | "commit" | "migrate" | "undo", string>>;
  readonly pending: readonly PendingMigration[];
  readonly applied: readonly { readonly history: string | null; readonly name: string; readonly applied_at: string }[];
};

type RowCount = { readonly relation: string; readonly rows: number };

export type RehearsedStatement = {
  readonly file: string;
  readonly line: number;
  readonly sql: string;
  readonly verdict: "not rehearsed" | "safe" | "brief" | "holds writes" | "holds reads" | "rewrites";
  readonly safeForm: string | null;
  readonly locks: readonly {
    readonly relation: string;
    readonly mode: string;
    readonly blocks: string;
    readonly isEarlier: boolean;
  }[];
  readonly lockedRows: readonly (RowCount & { readonly isEarlier: boolean })[];
  readonly rewritten: readonly RowCount[];
  readonly scanned: readonly RowCount[];
  readonly inserted: number;
  readonly changed: number;
  readonly walBytes: number;
  readonly milliseconds: number;
  /** Absent where no requests are recorded. */
  readonly heldRequests?: number;
  /** Of the migration, at its last statement. */
  readonly undo: UndoVerdict | null;
};

type OfCopy = {
  readonly basis: "database" | "committed migrations";
  /** What could not be copied. */
  readonly warnings: readonly string[];
  readonly error: null;
};

type Failed = { readonly error: SqlFault };

export type Rehearsal = (OfCopy & { readonly statements: readonly RehearsedStatement[] }) | Failed;

/** From harmless to severe. */
export const LEVELS = ["compatible", "dangerous", "breaking"] as const;
export type ChangeLevel = (typeof LEVELS)[number];

export const SURFACES = ["graphql", "openapi", "tables", "types", "access"] as const;

export type InterfaceChange = {
  readonly surface: (typeof SURFACES)[number];
  readonly level: ChangeLevel;
  readonly object: string;
  readonly message: string;
  /** Of a breaking change, where requests are recorded. */
  readonly requests?: readonly AffectedRequest[];
};

/** A recorded request that uses what was changed. */
export type AffectedRequest = {
  readonly request: string;
  readonly role: string;
  /** In the last hour. */
  readonly requests: number;
  readonly refusal: string | null;
};

export type Comparison =
  | (OfCopy & { readonly changes: readonly InterfaceChange[]; readonly markdown: string })
  | Failed;

export type Branch = {
  readonly name: string;
  readonly bytes: number;
  readonly sessions: number;
  readonly state: "complete" | "being copied" | "failed" | "interrupted";
  /** Why it failed. */
  readonly error: string | null;
  /** What could not be created. */
  readonly warnings: readonly string[];
  readonly serve_command: string;
};

/** The response of `GET /admin/v1/branches`. */
export type BranchList = {
  readonly refusal: Refusal | null;
  /** The branch that the service serves. */
  readonly served: string | null;
  readonly create_command: string;
  readonly branches: readonly Branch[];
};

/** The body of `POST /admin/v1/branches`. */
export type BranchRequest = {
  readonly name: string;
  readonly schema_only: boolean;
  /** Such as `1%`. */
  readonly sample: string | null;
  readonly seed: number | null;
  readonly anonymize: boolean;
};

/** The response of `GET /admin/v1/lost-rows`. */
export type LostRowsState = {
  readonly refusal: Refusal | null;
  readonly command: string;
  /** The times with which rows can be compared. */
  readonly recoverable: { readonly from: string; readonly to: string } | null;
};

export type LostRowsOfTable = {
  readonly table: string;
  readonly missing: number;
  readonly different: number;
  readonly only_here: number | null;
  /** Rows as JSON. */
  readonly missing_examples: readonly string[];
  /** Keys and changed columns, each as `[here, then]`, as JSON. */
  readonly different_examples: readonly string[];
  readonly gone_columns: readonly string[];
  readonly added_columns: readonly string[];
  /** Tables whose rows were deleted or changed with them. */
  readonly dependents: readonly string[];
  /** Null where nothing was brought back. */
  readonly inserted: number | null;
  readonly updated: number | null;
  readonly skipped_triggers: readonly string[] | null;
};

/** The response of `POST /admin/v1/lost-rows`. */
export type LostRows = {
  readonly as_of: string;
  readonly compared_tables: number;
  readonly dropped_tables: readonly string[];
  /** Restores a copy that has them. */
  readonly copy_command: string;
  /** Those that differ. */
  readonly tables: readonly LostRowsOfTable[];
};

export type BackfillProgress = {
  readonly read: number;
  readonly filled: number;
  readonly rows_per_second: number;
  /** The share of the time in which it may write, in percent. */
  readonly load: number;
  readonly waits_for: string | null;
  readonly error: string | null;
  readonly started_at: string;
};

export type Backfill = {
  readonly id: number;
  readonly table: string;
  readonly column: string;
  readonly estimated_rows: number;
  readonly state: "not started" | "running" | "paused" | "stopped";
  readonly progress: BackfillProgress | null;
};

/** The response of `GET /admin/v1/migrations/backfills`. */
export type BackfillList = {
  readonly refusal: Refusal | null;
  readonly run_command: string;
  readonly backfills: readonly Backfill[];
};

export function readMigrations(signal: AbortSignal): Promise<MigrationList> {
  return adminCall<MigrationList>("GET /migrations", { signal });
}

/** Ends with the signal. */
export function rehearse(withRows: boolean, signal: AbortSignal): Promise<Rehearsal> {
  return adminCall<Rehearsal>("POST /migrations/rehearsal", { body: { with_rows: withRows }, signal });
}

/** Ends with the signal. */
export function compareInterfaces(signal: AbortSignal): Promise<Comparison> {
  return adminCall<Comparison>("POST /migrations/diff", { signal });
}

/** What undoes the last migration, or has undone it. */
export type MigrationUndo =
  | {
      readonly file: string;
      readonly undo: UndoVerdict;
      /** What was changed by hand after the migration, and would be lost with it. */
      readonly changed_since: readonly string[];
      readonly is_undone: boolean;
      readonly error: null;
    }
  | Failed;

/** Changes nothing. Ends with the signal. */
export function findUndo(signal: AbortSignal): Promise<MigrationUndo> {
  return adminCall<MigrationUndo>("POST /migrations/undo", { body: {}, signal });
}

/** The file must be that of the last migration. */
export function undoMigration(file: string): Promise<MigrationUndo> {
  return adminCall<MigrationUndo>("POST /migrations/undo", { body: { confirmed_file: file } });
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
export async function createBranch(branch: BranchRequest): Promise<void> {
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
export function findLostRows(at: string, signal: AbortSignal): Promise<LostRows> {
  return adminCall<LostRows>("POST /lost-rows", { body: { at }, signal });
}

/** Inserts the missing rows, and overwrites the different ones on request. */
export function restoreLostRows(at: string, overwrite: boolean): Promise<LostRows> {
  return adminCall<LostRows>("POST /lost-rows", { body: { at, apply: true, overwrite } });
}

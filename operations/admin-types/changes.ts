import type { FailedSql, JudgedSql, UndoAssessment } from "./migration.ts";

/** Why nothing is copied, and what permits it. */
export type CopyRefusal = { readonly reason: string; readonly how: string | null };

export type PendingFile = {
  readonly history: string;
  readonly name: string;
  readonly file: string;
  readonly is_current: boolean;
  readonly is_applied: boolean;
  readonly sql: string;
};

/** The response of `GET /migrations`. */
export type MigrationsState = {
  readonly refusal: CopyRefusal | null;
  readonly commands: Readonly<Record<"rehearse" | "diff" | "commit" | "migrate" | "undo", string>>;
  readonly pending: readonly PendingFile[];
  readonly applied: readonly { readonly history: string | null; readonly name: string; readonly applied_at: string }[];
};

export type StatementRehearsal = JudgedSql & {
  readonly file: string;
  /** Absent where no requests are recorded. */
  readonly heldRequests?: number;
  /** Of the migration, at its last statement. */
  readonly undo: UndoAssessment | null;
};

/** What the copy of a rehearsal or a comparison is made of. */
export type CopyBasis = "database" | "committed migrations";

/** What a rehearsal and a comparison say of their copy. */
export type CopyOrigin = {
  readonly basis: CopyBasis;
  /** What could not be copied. */
  readonly warnings: readonly string[];
  readonly error: null;
};

export type RehearsedMigrations = { readonly statements: readonly StatementRehearsal[] };

/** The response of `POST /migrations/rehearsal`. */
export type Rehearsal = (CopyOrigin & RehearsedMigrations) | FailedSql;

export type ContractSurface = "graphql" | "openapi" | "tables" | "types" | "access";

export type ChangeLevel = "compatible" | "dangerous" | "breaking";

/** A recorded request that a breaking change concerns. */
export type AffectedRequest = {
  readonly interface: "table" | "resource" | "graphql" | "realtime";
  readonly role: string;
  readonly request: string;
  /** In the last hour. */
  readonly requests: number;
  /** Null: it is not refused, but its response has another form, or other rows, or some of its values are refused. */
  readonly refusal: string | null;
};

export type ContractChange = {
  readonly surface: ContractSurface;
  readonly level: ChangeLevel;
  /** `public.films.title`. */
  readonly object: string;
  readonly message: string;
  /** Of a breaking change, where requests are recorded: those that use the object. */
  readonly requests?: readonly AffectedRequest[];
};

export type InterfaceComparison = { readonly changes: readonly ContractChange[]; readonly markdown: string };

/** The response of `POST /migrations/diff`. */
export type ComparisonOfCopy = (CopyOrigin & InterfaceComparison) | FailedSql;

/** The response of `POST /migrations/undo`: what undoes the last migration, or has undone it. */
export type LastMigrationUndo =
  | {
      readonly file: string;
      readonly undo: UndoAssessment;
      /** What was changed by hand after the migration, and would be lost with it. */
      readonly changed_since: readonly string[];
      readonly is_undone: boolean;
      readonly error: null;
    }
  | FailedSql;

export type ListedBranch = {
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

/** The response of `GET /branches`. */
export type BranchList = {
  readonly refusal: CopyRefusal | null;
  /** The branch that the service serves. */
  readonly served: string | null;
  readonly create_command: string;
  readonly branches: readonly ListedBranch[];
};

/** The body of `POST /branches`. */
export type NewBranch = {
  readonly name: string;
  readonly schema_only: boolean;
  /** Such as `1%`. */
  readonly sample: string | null;
  readonly seed: number | null;
  readonly anonymize: boolean;
};

/** The response of `GET /lost-rows`. */
export type LostRowsState = {
  readonly refusal: CopyRefusal | null;
  readonly command: string;
  /** The times with which rows can be compared. */
  readonly recoverable: { readonly from: string; readonly to: string } | null;
};

export type LostRowsOfTable = {
  readonly table: string;
  /** Null: the table has none. */
  readonly key: readonly string[] | null;
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

/** The response of `POST /lost-rows`. */
export type FoundLostRows = {
  readonly as_of: string;
  readonly compared_tables: number;
  readonly dropped_tables: readonly string[];
  /** Restores a copy that has them. */
  readonly copy_command: string;
  /** Those that differ. */
  readonly tables: readonly LostRowsOfTable[];
};

export type IncompleteBackfill = {
  readonly id: number;
  readonly table: string;
  readonly column: string;
  readonly estimated_rows: number;
  readonly state: "not started" | "running" | "paused" | "stopped";
  readonly progress: FilledSoFar | null;
};

export type FilledSoFar = {
  readonly read: number;
  readonly filled: number;
  readonly rows_per_second: number;
  /** The share of the time in which it may write, in percent. */
  readonly load: number;
  readonly waits_for: string | null;
  readonly error: string | null;
  readonly started_at: string;
  readonly updated_at: string;
};

/** The response of `GET /migrations/backfills`. */
export type BackfillList = {
  readonly refusal: CopyRefusal | null;
  readonly run_command: string;
  readonly backfills: readonly IncompleteBackfill[];
};

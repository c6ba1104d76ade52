import type { FailedSql, JudgedSql, UndoAssessment } from "./migration.ts";

/** The reason why nothing is copied, and the way to permit it. */
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
  /** Absent if no requests are recorded. */
  readonly heldRequests?: number;
  /** The assessment of the whole migration, at its last statement; null at other statements. */
  readonly undo: UndoAssessment | null;
};

/** The source of the copy for a rehearsal or a comparison. */
export type CopyBasis = "database" | "committed migrations";

/** The common part of a rehearsal and a comparison, about their copy. */
export type CopyOrigin = {
  readonly basis: CopyBasis;
  /** The objects that could not be copied. */
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
  /** The number of requests in the last hour. */
  readonly requests: number;
  /** The reason of the refusal. Null if the request succeeds, but with a response of another form, with other rows, or with some values refused. */
  readonly refusal: string | null;
};

export type ContractChange = {
  readonly surface: ContractSurface;
  readonly level: ChangeLevel;
  /** The changed object, for example `public.films.title`. */
  readonly object: string;
  readonly message: string;
  /** The requests that use the object of a breaking change, if requests are recorded. */
  readonly requests?: readonly AffectedRequest[];
};

export type InterfaceComparison = { readonly changes: readonly ContractChange[]; readonly markdown: string };

/** The response of `POST /migrations/diff`. */
export type ComparisonOfCopy = (CopyOrigin & InterfaceComparison) | FailedSql;

/** The response of `POST /migrations/undo`: the statements that undo the last migration, and whether they have run. */
export type LastMigrationUndo =
  | {
      readonly file: string;
      readonly undo: UndoAssessment;
      /** The manual changes after the migration, which the undo would lose. */
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
  /** The reason of the failure. */
  readonly error: string | null;
  /** The objects that could not be created. */
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
  /** The share of rows to copy, for example `1%`. */
  readonly sample: string | null;
  readonly seed: number | null;
  readonly anonymize: boolean;
};

/** The response of `GET /lost-rows`. */
export type LostRowsState = {
  readonly refusal: CopyRefusal | null;
  readonly command: string;
  /** The times that a search can compare rows with. */
  readonly recoverable: { readonly from: string; readonly to: string } | null;
};

export type LostRowsOfTable = {
  readonly table: string;
  /** The primary key; null if the table has none. */
  readonly key: readonly string[] | null;
  readonly missing: number;
  readonly different: number;
  readonly only_here: number | null;
  /** Rows as JSON. */
  readonly missing_examples: readonly string[];
  /** The rows' keys and changed columns as JSON; each value is `[here, then]`. */
  readonly different_examples: readonly string[];
  readonly gone_columns: readonly string[];
  readonly added_columns: readonly string[];
  /** Tables whose rows were deleted or changed together with these. */
  readonly dependents: readonly string[];
  /** Null if no rows were restored. */
  readonly inserted: number | null;
  readonly updated: number | null;
  readonly skipped_triggers: readonly string[] | null;
};

/** The response of `POST /lost-rows`. */
export type FoundLostRows = {
  readonly as_of: string;
  readonly compared_tables: number;
  readonly dropped_tables: readonly string[];
  /** The command that restores a copy with the lost rows. */
  readonly copy_command: string;
  /** The tables with differences. */
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
  /** The maximum share of the time in which the backfill writes, in percent. */
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

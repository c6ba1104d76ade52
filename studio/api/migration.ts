import { adminCall } from "./admin.ts";

/** The response of `GET /admin/v1/migration`. */
export type MigrationState = {
  /** How SQL is applied: as a file of the current migration, at once, or not at all. */
  readonly mode: "current" | "run" | "off";
  readonly reason: string;
  /** What makes changes possible; null where they are. */
  readonly how: string | null;
  readonly folder: string;
  readonly files: readonly string[];
  readonly committed: readonly string[];
  readonly pending: readonly string[];
};

/** What Postgres says about the SQL, and where. */
export type SqlFault = {
  readonly message: string;
  readonly sqlstate: string | null;
  readonly detail: string | null;
  readonly hint: string | null;
  /** An earlier file of the current migration; null: in the SQL that was sent. */
  readonly file: string | null;
  readonly line: number;
  readonly column: number;
};

export type SchemaChange = {
  readonly object: string;
  readonly change: "created" | "changed" | "dropped";
  readonly added: readonly string[];
  readonly removed: readonly string[];
};

export type UndoVerdict =
  | {
      readonly verdict: "can be undone";
      readonly sql: string;
      /** New tables and columns, whose values are lost. */
      readonly drops: readonly string[];
    }
  | {
      readonly verdict: "cannot be undone";
      readonly reason: string;
      /** Without a file: in the SQL that was sent. */
      readonly statement: { readonly file: string; readonly line: number } | null;
    };

export type DryRun = {
  /** False for a statement that refuses a transaction. */
  readonly tried: boolean;
  /** A safe form is given for statements that others wait for. */
  readonly statements: readonly {
    readonly line: number;
    readonly verdict: string;
    readonly safeForm: string | null;
  }[];
  readonly changes: readonly SchemaChange[];
  readonly locks: readonly {
    readonly table: string;
    readonly mode: string;
    readonly blocks: "writes" | "reads and writes";
    readonly rows: number;
  }[];
  readonly warnings: readonly string[];
  readonly milliseconds: number;
  /** Null: the role may not read the table, or there is none. */
  readonly visible: readonly { readonly role: string; readonly before: number | null; readonly after: number | null }[];
  readonly error: null;
};

export type AppliedChange = {
  readonly applied: true;
  readonly mode: "current" | "run";
  /** The file that was written. */
  readonly file: string | null;
  readonly error: null;
};

type Failed = { readonly error: SqlFault };

export function readMigrationState(signal: AbortSignal): Promise<MigrationState> {
  return adminCall<MigrationState>("GET /migration", { signal });
}

/** The rows of a table that each role sees are counted. */
export type RowCountRequest = {
  readonly table: { readonly schema: string; readonly name: string };
  readonly roles: readonly string[];
};

/** Changes nothing. */
export function tryChange(sql: string, counted?: RowCountRequest): Promise<DryRun | Failed> {
  return adminCall<DryRun | Failed>("POST /migration", { body: { sql, dry_run: true, count_rows: counted } });
}

/** The name becomes part of the file's. */
export function applyChange(sql: string, name: string): Promise<AppliedChange | Failed> {
  return adminCall<AppliedChange | Failed>("POST /migration", { body: { sql, name } });
}

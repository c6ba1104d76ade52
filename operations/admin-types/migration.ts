/** The response of `GET /migration`. */
export type MigrationStatus = {
  /** The way in which SQL is applied: as a file of the current migration, at once, or not at all. */
  readonly mode: "current" | "run" | "off";
  readonly reason: string;
  /** The way to make changes possible; null if they are. */
  readonly how: string | null;
  readonly folder: string;
  readonly files: readonly string[];
  readonly committed: readonly string[];
  readonly pending: readonly string[];
  /** With the parameter `name`: the file that a change of this name would become. */
  readonly new_file: string | null;
};

/** An error of Postgres in the SQL, and its position. */
export type SqlFault = {
  readonly message: string;
  readonly sqlstate: string | null;
  readonly detail: string | null;
  readonly hint: string | null;
  /** The earlier file of the current migration that has the error; null if the error is in the SQL that was sent. */
  readonly file: string | null;
  readonly line: number;
  readonly column: number;
};

/** The response where the SQL of a migration fails. */
export type FailedSql = { readonly error: SqlFault };

export type ObjectChange = {
  readonly object: string;
  readonly change: "created" | "changed" | "dropped";
  /** The parts of the definition that were added; `removed` has the others. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
};

/** The assessment of a migration: it can be undone, or it cannot. */
export type UndoAssessment =
  | {
      readonly verdict: "can be undone";
      readonly sql: string;
      /** New tables and columns, whose values are lost. */
      readonly drops: readonly string[];
    }
  | {
      readonly verdict: "cannot be undone";
      readonly reason: string;
      /** The statement that prevents the undo. `file` is empty for the SQL that was sent. Null if it is not known which of many it is. */
      readonly statement: { readonly file: string; readonly line: number; readonly sql: string } | null;
    };

/** The response of `POST /migration` with `dry_run`. */
export type DryRunResult = {
  /** False for a statement that refuses a transaction. */
  readonly tried: boolean;
  readonly statements: readonly JudgedSql[];
  readonly changes: readonly ObjectChange[];
  readonly locks: readonly {
    readonly table: string;
    readonly mode: string;
    readonly blocks: "writes" | "reads and writes";
    readonly rows: number;
  }[];
  readonly warnings: readonly string[];
  readonly milliseconds: number;
  /** The visible rows per role; null if the role may not read the table, or there is none. */
  readonly visible: readonly { readonly role: string; readonly before: number | null; readonly after: number | null }[];
  readonly error: null;
};

type RelationRows = { readonly relation: string; readonly rows: number };

/** A statement, with its effect on other sessions. */
export type JudgedSql = {
  readonly line: number;
  readonly sql: string;
  readonly verdict: "not rehearsed" | "safe" | "brief" | "holds writes" | "holds reads" | "rewrites";
  /** A safer form of the statement; given for statements that others wait for. */
  readonly safeForm: string | null;
  readonly locks: readonly {
    readonly relation: string;
    readonly mode: string;
    readonly blocks: "writes" | "reads and writes";
    readonly isEarlier: boolean;
  }[];
  readonly lockedRows: readonly (RelationRows & { readonly isEarlier: boolean })[];
  readonly rewritten: readonly RelationRows[];
  readonly scanned: readonly RelationRows[];
  readonly inserted: number;
  readonly changed: number;
  readonly walBytes: number;
  readonly milliseconds: number;
};

/** The response of `POST /migration` without `dry_run`. */
export type AppliedSql = {
  readonly applied: true;
  readonly mode: "current" | "run" | "off";
  /** The file that was written. */
  readonly file: string | null;
  readonly error: null;
};

/** The option `count_rows` of a dry run: it counts the rows of a table that each role sees. */
export type RowsToCount = {
  readonly table: { readonly schema: string; readonly name: string };
  readonly roles: readonly string[];
};

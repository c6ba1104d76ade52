export type PolicyInWords = {
  readonly name: string;
  readonly command: string;
  readonly permissive: boolean;
  readonly roles: readonly string[];
  readonly using: string | null;
  readonly check: string | null;
  readonly comment: string | null;
  readonly words: string;
};

/** The outcome of a caller's trial of a command. */
export type TriedOutcome = {
  readonly kind: "rows" | "allowed" | "denied" | "failed";
  /** The number of rows that the statement read or changed. */
  readonly count?: number;
  readonly code?: string;
  /** The policies that apply; null if the role bypasses them. */
  readonly policies: readonly string[] | null;
  readonly missing_grants: readonly string[];
};

export type TriedTable = {
  readonly schema: string;
  readonly name: string;
  readonly kind: string;
  readonly row_security: "off" | "enabled" | "forced";
  readonly total: number | null;
  readonly policies: readonly PolicyInWords[];
  /** The results are in the order of the callers. */
  readonly commands: readonly { readonly command: string; readonly results: readonly TriedOutcome[] }[];
};

export type TriedCaller = { readonly role: string; readonly user: string | null; readonly name: string | null };

/** A page of `GET /policies`. */
export type MatrixPage = {
  readonly callers: readonly TriedCaller[];
  readonly tables: readonly TriedTable[];
  readonly table_count: number;
  readonly next: string | null;
};

/** The common part of all responses of `POST /why`. */
type ExplainedCaller = {
  readonly role: string;
  readonly user: string | null;
  readonly interface: string;
};

type ExplainedTable = {
  readonly schema: string;
  readonly name: string;
  readonly row_security: "off" | "enabled" | "forced";
  readonly bypasses_policies: boolean;
};

/** The result of a policy for a row; `passes` is null if its condition is null, which hides or refuses the row too. */
export type PolicyPass = { readonly name: string; readonly passes: boolean | null };

/** The response of `POST /why` for a request that is refused. */
export type RefusalExplanation = ExplainedCaller & {
  readonly refusal: {
    readonly status: number;
    readonly code: string;
    readonly message: string;
    readonly cause: string | null;
  };
  readonly missing_grants: readonly string[];
};

/** The response of `POST /why` for a read. */
export type RowsExplanation = ExplainedCaller & {
  readonly command: "select";
  readonly refusal: null;
  readonly missing_grants: readonly string[];
  readonly table: ExplainedTable;
  readonly visible: number;
  readonly total: number;
  readonly is_partial: boolean;
  readonly hidden: readonly {
    readonly key: Readonly<Record<string, unknown>>;
    readonly policies: readonly PolicyPass[];
  }[];
  readonly policies: readonly PolicyInWords[];
  readonly unreadable_columns: readonly string[];
  readonly plan: string;
};

export type WriteCommand = "insert" | "update" | "delete";

/** The results of the policies for one command on a row, before the write or as it would be written. */
type ExplainedCheck = {
  readonly command: "select" | WriteCommand;
  readonly on: "existing" | "new";
  readonly passes: boolean;
  readonly policies: readonly PolicyPass[];
};

/** The response of `POST /why` for a write. */
export type WritesExplanation = ExplainedCaller & {
  readonly command: WriteCommand;
  readonly refusal: null;
  readonly missing_grants: readonly string[];
  readonly table: ExplainedTable;
  readonly policies: readonly PolicyInWords[];
  readonly rows: readonly {
    readonly key: Readonly<Record<string, unknown>>;
    readonly is_allowed: boolean;
    readonly checks: readonly ExplainedCheck[];
    /** The policies for reading an inserted row, which an insert needs only if it returns the row; null for other commands. */
    readonly returned: ExplainedCheck | null;
  }[];
  /** Grants without which an insert cannot return its row. */
  readonly missing_to_return: readonly string[];
  readonly is_partial: boolean;
};

export type Finding = {
  /** `danger`: rows or privileges are accessible that should not be. `slow`: a performance problem. */
  readonly kind: "danger" | "advice" | "slow";
  readonly problem: string;
  /** SQL, or a setting to change. */
  readonly fix: string;
  /** The fix as SQL for a migration; null if it is not SQL of the schema. */
  readonly sql: string | null;
};

/** The response of `GET /doctor`. */
export type FindingList = { readonly findings: readonly Finding[] };

import { adminCall } from "../api/admin.ts";
import type { ViewedCaller } from "../api/session.ts";
import type { ExplainedStatement } from "./plan/plan-tree.ts";

/** The response of `POST /admin/v1/sql`. */
export type SqlResponse = {
  readonly transaction: "committed" | "rolled back";
  readonly results: readonly SqlResult[];
  readonly notices: readonly SqlMessage[];
  readonly dropped_notices: number;
  readonly error: SqlMessage | null;
};

/** Each value as Postgres writes it. */
export type SqlRow = readonly (string | null)[];

export type SqlColumn = {
  readonly name: string;
  readonly type: string;
  /** `pg_type.typcategory` */
  readonly category: string;
};

export type SqlResult = {
  /** Its statement in the text that was sent. */
  readonly start: number;
  readonly end: number;
  readonly command: string | null;
  readonly row_count: number | null;
  readonly columns: readonly SqlColumn[] | null;
  readonly rows: readonly SqlRow[];
  readonly cut: "rows" | "bytes" | null;
  readonly plan: readonly ExplainedStatement[] | null;
  readonly duration_ms: number;
};

export type SqlMessage = {
  readonly statement: number | null;
  readonly severity: string;
  readonly sqlstate: string;
  readonly message: string;
  readonly detail: string | null;
  readonly hint: string | null;
  readonly where: string | null;
  readonly offset: number | null;
  readonly line: number | null;
  readonly column: number | null;
};

export type SqlOptions = {
  /** `owner`, `viewed`, or a role. */
  readonly as: string;
  readonly limit: number;
  readonly readOnly: boolean;
  readonly explain: "no" | "plan" | "analyze";
};

export const OWNER = "owner";
/** The caller of "View as". */
export const VIEWED = "viewed";
/** Before the name of a role, which may be one of the words above. */
export const ROLE_PREFIX = "role ";

export function runSql(
  sql: string,
  { as, limit, readOnly, explain }: SqlOptions,
  viewed: ViewedCaller | null,
  signal: AbortSignal,
): Promise<SqlResponse> {
  const body = {
    sql,
    as: callerOf(as, viewed),
    limit,
    read_only: readOnly,
    explain: explain === "no" ? false : { analyze: explain === "analyze" },
  };
  return adminCall<SqlResponse>("POST /sql", { body, signal });
}

function callerOf(as: string, viewed: ViewedCaller | null) {
  if (as === VIEWED && viewed) return { role: viewed.role, claims: viewed.claims };
  return as.startsWith(ROLE_PREFIX) ? { role: as.slice(ROLE_PREFIX.length) } : OWNER;
}

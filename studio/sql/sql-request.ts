import type { SqlResponse } from "#operations/admin-types";
import { adminCall } from "../api/admin.ts";
import type { ViewedCaller } from "../api/viewed-caller.ts";

export type SqlOptions = {
  /** `owner`, `viewed`, or a prefixed role. */
  readonly as: string;
  readonly limit: number;
  readonly readOnly: boolean;
  readonly explain: "no" | "plan" | "analyze";
};

export const OWNER = "owner";
/** The caller of "View as". */
export const VIEWED = "viewed";
/** The prefix of the name of a role, which may be one of the words above. */
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

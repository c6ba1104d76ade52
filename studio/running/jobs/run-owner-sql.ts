import type { SqlResponse } from "#operations/admin-types";
import { adminCall } from "../../api/admin.ts";

/** Runs a statement as the owner of the database, and returns the first value of its first row. */
export async function runOwnerSql(
  sql: string,
  { readOnly = false, signal }: OwnerSqlOptions = {},
): Promise<string | null> {
  const body = { sql, as: "owner", limit: 1, read_only: readOnly };
  const { error, results } = await adminCall<SqlResponse>("POST /sql", { body, ...(signal && { signal }) });
  if (error) throw new Error([error.message, error.hint].filter(Boolean).join(". "));
  return results.at(-1)?.rows[0]?.[0] ?? null;
}

type OwnerSqlOptions = { readonly readOnly?: boolean; readonly signal?: AbortSignal };

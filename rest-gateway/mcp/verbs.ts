import type { VisibleTable } from "#rest-gateway/openapi";
import type { McpGrants } from "./grants.ts";

export type TableVerb = "read" | "insert" | "update" | "delete";

/** What both the role and the grants allow. */
export function verbsOf({ table, verbs }: VisibleTable, grants: McpGrants): readonly TableVerb[] {
  const writes = grants.mayWrite(table) ? (["insert", "update", "delete"] as const) : [];
  return [
    ...(verbs.has("select") && grants.mayRead(table) ? (["read"] as const) : []),
    ...writes.filter((verb) => verbs.has(verb)),
  ];
}

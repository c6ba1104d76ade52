import type { VisibleTable } from "#rest-gateway/openapi";
import type { McpGrants } from "./grants.ts";

export type TableVerb = "read" | "insert" | "update" | "delete";

/** What clients are told of a tool, to ask their user or not. */
export type ToolAnnotations = {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: false;
};

/** `call`: a function that may change data. */
export const ANNOTATIONS: Readonly<Record<TableVerb | "call", ToolAnnotations>> = {
  read: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  insert: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  update: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  delete: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  call: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
};

/** What both the role and the grants allow. */
export function verbsOf({ table, verbs }: VisibleTable, grants: McpGrants): readonly TableVerb[] {
  const writes = grants.mayWrite(table) ? (["insert", "update", "delete"] as const) : [];
  return [
    ...(verbs.has("select") && grants.mayRead(table) ? (["read"] as const) : []),
    ...writes.filter((verb) => verbs.has(verb)),
  ];
}

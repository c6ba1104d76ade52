import type { Catalog, Routine } from "#catalog";
import type { JsonSchema, SchemaOfType, VisibleSchema, VisibleTable } from "#rest-gateway/openapi/schemas";
import type { McpGrants } from "./grants.ts";

export type TableVerb = "read" | "insert" | "update" | "delete";

/** The hints for clients, which decide whether to ask their user. */
type ToolAnnotations = {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: false;
};

/** The hints by kind of operation; `call` is a function that may change data. */
export const ANNOTATIONS: Readonly<Record<TableVerb | "call", ToolAnnotations>> = {
  read: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  insert: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  update: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  delete: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  call: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
};

/** Returns the operations that both the role and the grants allow. */
export function verbsOf({ table, verbs }: VisibleTable, grants: McpGrants): readonly TableVerb[] {
  const writes = grants.mayWrite(table) ? (["insert", "update", "delete"] as const) : [];
  return [
    ...(verbs.has("select") && grants.mayRead(table) ? (["read"] as const) : []),
    ...writes.filter((verb) => verbs.has(verb)),
  ];
}

/** The operation of a tool. The generic ones find the table or function by their arguments. */
export type ToolOperation =
  | { readonly kind: "table"; readonly verb: TableVerb; readonly visible: VisibleTable }
  | { readonly kind: "routine"; readonly routine: Routine }
  | { readonly kind: "generic"; readonly name: GenericToolName };

/** A tool for databases with many tables. */
export type GenericToolName =
  | "search_catalogue"
  | "describe"
  | "read_rows"
  | "insert_rows"
  | "update_rows"
  | "delete_rows"
  | "query_function"
  | "call_function";

/** A tool as `tools/list` describes it. */
export type ToolDescription = {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
  readonly annotations: ToolAnnotations;
};

export type McpTool = { readonly description: ToolDescription; readonly operation: ToolOperation };

/** One schema of the database, as the role sees it. */
export type McpSchema = {
  readonly viewer: VisibleSchema;
  readonly name: string;
  readonly typeSchema: SchemaOfType;
  readonly tables: readonly VisibleTable[];
  readonly routines: readonly Routine[];
};

/** The tools and grants of one role in MCP. */
export type McpSurface = {
  readonly catalog: Catalog;
  readonly grants: McpGrants;
  readonly schemas: readonly McpSchema[];
  /** The tools in a stable order, by name. */
  readonly tools: ReadonlyMap<string, McpTool>;
};

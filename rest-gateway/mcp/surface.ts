import type { Catalog, Routine } from "#catalog";
import type { JsonSchema, SchemaOfType, VisibleSchema, VisibleTable } from "#rest-gateway/openapi";
import type { McpGrants } from "./grants.ts";
import type { TableVerb, ToolAnnotations } from "./verbs.ts";

/** What a tool does. The generic ones find the table or function by their arguments. */
export type ToolOperation =
  | { readonly kind: "table"; readonly verb: TableVerb; readonly visible: VisibleTable }
  | { readonly kind: "routine"; readonly routine: Routine }
  | { readonly kind: "generic"; readonly name: GenericToolName };

/** Of databases with many tables. */
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

/** What one role may do by MCP, with some grants. */
export type McpSurface = {
  readonly catalog: Catalog;
  readonly grants: McpGrants;
  readonly schemas: readonly McpSchema[];
  /** In a stable order, by name. */
  readonly tools: ReadonlyMap<string, McpTool>;
};

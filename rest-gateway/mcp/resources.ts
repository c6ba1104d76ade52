import { includesAll } from "#rest-gateway/openapi/schemas";
import { callTool, type ToolCall } from "./call-tool.ts";
import { describeTableFully, findTable } from "./catalogue-tools.ts";
import { type McpSurface, verbsOf } from "./surface.ts";

type ResourceDescription = {
  readonly uri: string;
  readonly name: string;
  readonly title: string;
  readonly description?: string;
  readonly mimeType: "application/json";
};

const PREFIX = "postgres://";

export const RESOURCE_TEMPLATES = [
  {
    uriTemplate: `${PREFIX}{schema}/{table}/schema`,
    name: "table-schema",
    title: "Schema of a table",
    description: "Columns, keys and constraints of a table or view, as JSON Schema.",
    mimeType: "application/json",
  },
  {
    uriTemplate: `${PREFIX}{schema}/{table}/rows/{key}`,
    name: "row",
    title: "A row",
    description: "One row by its primary key; the values of a key with several columns are separated by commas.",
    mimeType: "application/json",
  },
  {
    uriTemplate: `${PREFIX}{schema}/{table}/rows{?limit,offset}`,
    name: "rows",
    title: "Rows of a table",
    description: "Rows in the order of the primary key.",
    mimeType: "application/json",
  },
] as const;

/** The schemas of all tables that the caller may use. */
export function listResources({ schemas }: McpSurface): readonly ResourceDescription[] {
  return schemas.flatMap(({ name: schema, tables }) =>
    tables.map(({ table }) => ({
      uri: `${PREFIX}${encodeURIComponent(schema)}/${encodeURIComponent(table.name)}/schema`,
      name: `${schema}.${table.name}`,
      title: `Schema of ${schema}.${table.name}`,
      mimeType: "application/json" as const,
    })),
  );
}

/** The text of a resource; null if there is none. */
export async function readResource(uri: string, call: ToolCall): Promise<string | null> {
  const address = parseAddress(uri);
  if (address === null) return null;
  const { schema, table, part, key, limit, offset } = address;
  const found = findReadable(schema, table, call.surface);
  if (found === null) return null;
  if (part === "schema") return JSON.stringify(describeTableFully(found, call.surface));
  const { visible } = found;
  if (!verbsOf(visible, call.surface.grants).includes("read")) return null;
  const {
    table: { primaryKey },
    selectable,
  } = visible;
  const values = key?.split(",").map(decodeURIComponent) ?? [];
  const isAddressable = primaryKey.length > 0 && includesAll(selectable, primaryKey);
  if (key !== null && (!isAddressable || values.length !== primaryKey.length)) return null;
  const where = values.map((value, index) => ({ column: primaryKey[index], value }));
  const given = { where, ...(limit !== null && { limit }), ...(offset !== null && { offset }) };
  const result = await callTool({ kind: "table", verb: "read", visible }, given, call);
  if (result.isError) return JSON.stringify({ error: result.text });
  return key !== null && result.structured!.startsWith('{"rows":[],') ? null : result.structured;
}

function findReadable(schema: string, table: string, surface: McpSurface) {
  try {
    return findTable(table, schema, surface);
  } catch {
    return null;
  }
}

/** Completes the schema and the table of a template, from what the caller may use. */
export function completeArgument(
  name: string,
  value: string,
  { schema }: Readonly<Record<string, string>>,
  { schemas }: McpSurface,
): readonly string[] {
  const names =
    name === "schema"
      ? schemas.map((each) => each.name)
      : name === "table"
        ? schemas
            .filter((each) => schema === undefined || each.name === schema)
            .flatMap(({ tables }) => tables.map(({ table }) => table.name))
        : [];
  return [...new Set(names)].filter((each) => each.startsWith(value)).sort();
}

type TableAddress = {
  readonly schema: string;
  readonly table: string;
  readonly part: "schema" | "rows";
  readonly key: string | null;
  readonly limit: number | null;
  readonly offset: number | null;
};

const ADDRESS = /^postgres:\/\/([^/?#]+)\/([^/?#]+)\/(schema|rows)(?:\/([^/?#]+))?(?:\?([^#]*))?$/;

function parseAddress(uri: string): TableAddress | null {
  const [, schema, table, part, key = null, query = ""] = ADDRESS.exec(uri) ?? [];
  if (schema === undefined || table === undefined || (part === "schema" && key !== null)) return null;
  const parameters = new URLSearchParams(query);
  const integer = (name: string) =>
    /^\d{1,9}$/.test(parameters.get(name) ?? "") ? Number(parameters.get(name)) : null;
  try {
    return {
      schema: decodeURIComponent(schema),
      table: decodeURIComponent(table),
      part: part as "schema" | "rows",
      key: key === null ? null : checkEncoding(key),
      limit: integer("limit"),
      offset: integer("offset"),
    };
  } catch {
    return null;
  }
}

function checkEncoding(text: string): string {
  decodeURIComponent(text);
  return text;
}

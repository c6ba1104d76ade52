import type { JsonSchema } from "#rest-gateway/openapi/schemas";
import { ANNOTATIONS, type GenericToolName, type ToolDescription } from "./surface.ts";
import {
  ANY_ROW,
  CALL_RESULT,
  deleteArguments,
  inputOf,
  insertArguments,
  readArguments,
  rowsResult,
  updateArguments,
  writeResult,
} from "./tool-schemas.ts";

type GenericTool = Omit<ToolDescription, "name" | "inputSchema"> & {
  readonly inputSchema: (maxRows: number) => JsonSchema;
};

const SCHEMA: JsonSchema = { type: "string", description: "Only needed if several schemas have the name." };
const TABLE: JsonSchema = { type: "string", description: "From search_catalogue." };

function ofTable(schema: JsonSchema): JsonSchema {
  const { properties, required } = schema as { properties: object; required: readonly string[] };
  return { ...schema, properties: { schema: SCHEMA, table: TABLE, ...properties }, required: ["table", ...required] };
}

/** The tools of databases with many tables. */
export const GENERIC_TOOLS: Readonly<Record<GenericToolName, GenericTool>> = {
  search_catalogue: {
    title: "Search tables and functions",
    description: "Finds tables, views and functions by words of their names, columns and comments. Begin here.",
    inputSchema: () =>
      inputOf(
        { query: { type: "string", description: "Words; an empty text lists all." } },
        { limit: { type: "integer", minimum: 1, maximum: 100 }, offset: { type: "integer", minimum: 0 } },
      ),
    outputSchema: {
      type: "object",
      properties: { found: { type: "array", items: ANY_ROW }, next_offset: { type: ["integer", "null"] } },
      required: ["found"],
    },
    annotations: ANNOTATIONS.read,
  },
  describe: {
    title: "Describe a table or function",
    description: "The columns, keys and constraints of a table, or the arguments of a function, as JSON Schema.",
    inputSchema: () =>
      inputOf(
        { name: { type: "string", description: "A table or function, from search_catalogue." } },
        { schema: SCHEMA },
      ),
    outputSchema: ANY_ROW,
    annotations: ANNOTATIONS.read,
  },
  read_rows: {
    title: "Read rows of a table",
    description: "Reads rows of a table or view.",
    inputSchema: (maxRows) => ofTable(readArguments([], maxRows)),
    outputSchema: rowsResult(ANY_ROW),
    annotations: ANNOTATIONS.read,
  },
  insert_rows: {
    title: "Insert rows into a table",
    description: "Inserts rows. `describe` says which columns are required.",
    inputSchema: (maxRows) => ofTable(insertArguments(ANY_ROW, maxRows)),
    outputSchema: writeResult(ANY_ROW),
    annotations: ANNOTATIONS.insert,
  },
  update_rows: {
    title: "Update rows of a table",
    description: "Changes the rows that match.",
    inputSchema: () => ofTable(updateArguments(ANY_ROW, [])),
    outputSchema: writeResult(ANY_ROW),
    annotations: ANNOTATIONS.update,
  },
  delete_rows: {
    title: "Delete rows of a table",
    description: "Deletes the rows that match.",
    inputSchema: () => ofTable(deleteArguments([])),
    outputSchema: writeResult(ANY_ROW),
    annotations: ANNOTATIONS.delete,
  },
  query_function: {
    title: "Call a function that reads",
    description: "Calls a function that changes nothing (`stable` or `immutable`).",
    inputSchema: functionArguments,
    outputSchema: CALL_RESULT,
    annotations: ANNOTATIONS.read,
  },
  call_function: {
    title: "Call a function",
    description: "Calls a function, which may change data.",
    inputSchema: functionArguments,
    outputSchema: CALL_RESULT,
    annotations: ANNOTATIONS.call,
  },
};

function functionArguments(): JsonSchema {
  return inputOf({ function: { type: "string" } }, { schema: SCHEMA, arguments: { type: "object" } });
}

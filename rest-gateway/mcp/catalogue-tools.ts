import type { Routine } from "#catalog";
import { includesAll, readComment, type VisibleTable } from "#rest-gateway/openapi/schemas";
import type { JsonObject } from "#runtime/json";
import {
  type GenericToolName,
  type McpSchema,
  type McpSurface,
  type TableVerb,
  type ToolOperation,
  verbsOf,
} from "./surface.ts";
import { ArgumentError, checkNames, readInteger } from "./tool-requests.ts";
import { checkTexts, routineArguments, rowSchemasOf } from "./tool-schemas.ts";

/** The result of a generic tool from the catalogue, or the tool of a table or function that it stands for. */
type GenericCall =
  | { readonly kind: "answer"; readonly answer: object }
  | { readonly kind: "operation"; readonly operation: ToolOperation; readonly given: JsonObject };

const VERB_OF = { read_rows: "read", insert_rows: "insert", update_rows: "update", delete_rows: "delete" } as const;

export function callGeneric(name: GenericToolName, given: JsonObject, surface: McpSurface): GenericCall {
  switch (name) {
    case "search_catalogue":
      return { kind: "answer", answer: search(given, surface) };
    case "describe":
      checkNames(given, ["name", "schema"]);
      return { kind: "answer", answer: describeName(given, surface) };
    case "query_function":
    case "call_function":
      return callOf(given, surface, name === "query_function");
    default:
      return changeOf(VERB_OF[name], given, surface);
  }
}

function changeOf(verb: TableVerb, { schema, table: name, ...given }: JsonObject, surface: McpSurface): GenericCall {
  const { visible } = findTable(name, schema, surface);
  const allowed = verbsOf(visible, surface.grants);
  if (!allowed.includes(verb)) {
    throw new ArgumentError(`You may not ${verb} rows of ${visible.table.name}. Allowed: ${allowed.join(", ")}.`);
  }
  return { kind: "operation", operation: { kind: "table", verb, visible }, given };
}

function callOf(given: JsonObject, surface: McpSurface, isReadOnly: boolean): GenericCall {
  checkNames(given, ["function", "schema", "arguments"]);
  const found = surface.schemas.flatMap(({ name, routines }) =>
    given.schema === undefined || given.schema === name ? routines.filter((each) => each.name === given.function) : [],
  );
  const routine = single(found, "function", given.function);
  if (isReadOnly && routine.volatility === "volatile") {
    throw new ArgumentError(`${routine.name} may change data: use call_function.`);
  }
  return {
    kind: "operation",
    operation: { kind: "routine", routine },
    given: (given.arguments as JsonObject | undefined) ?? {},
  };
}

type FoundTable = { readonly visible: VisibleTable; readonly schema: McpSchema };

function tablesNamed(name: unknown, schema: unknown, { schemas }: McpSurface): readonly FoundTable[] {
  return schemas.flatMap((each) =>
    schema === undefined || schema === each.name
      ? each.tables.filter(({ table }) => table.name === name).map((visible) => ({ visible, schema: each }))
      : [],
  );
}

export function findTable(name: unknown, schema: unknown, surface: McpSurface): FoundTable {
  return single(tablesNamed(name, schema, surface), "table", name);
}

function single<T>(found: readonly T[], kind: string, name: unknown): T {
  const [only, ...others] = found;
  if (only === undefined) {
    throw new ArgumentError(`There is no ${kind} ${JSON.stringify(name)} for you. Find names with search_catalogue.`);
  }
  if (others.length > 0) throw new ArgumentError(`Several schemas have the ${kind} ${name}: add \`schema\`.`);
  return only;
}

function describeName({ name, schema }: JsonObject, surface: McpSurface): object {
  const [table] = tablesNamed(name, schema, surface);
  if (table !== undefined) return describeTableFully(table, surface);
  const routines = surface.schemas.flatMap((each) =>
    schema === undefined || schema === each.name
      ? each.routines.filter((routine) => routine.name === name).map((routine) => ({ routine, each }))
      : [],
  );
  const { routine, each } = single(routines, "table or function", name);
  return { ...summaryOfRoutine(routine), arguments: routineArguments(routine, each.typeSchema) };
}

/** Describes the columns, keys and constraints of a table that the caller may know. */
export function describeTableFully({ visible, schema }: FoundTable, { catalog, grants }: McpSurface): object {
  const { table, columns } = visible;
  const { row, insert } = rowSchemasOf(visible, { viewer: schema.viewer, catalog, typeSchema: schema.typeSchema });
  const foreignKeys = table.foreignKeys.filter((key) => {
    const target = schema.viewer.findVisible(key.target);
    return target && includesAll(columns, key.columns) && includesAll(target.columns, key.targetColumns);
  });
  return {
    ...summaryOfTable(visible),
    allowed: verbsOf(visible, grants),
    // A part of a key does not find one row.
    primary_key: includesAll(columns, table.primaryKey) ? table.primaryKey : [],
    foreign_keys: foreignKeys.map((key) => ({
      columns: key.columns,
      references: `${key.target.schema}.${key.target.name}`,
      referenced_columns: key.targetColumns,
    })),
    constraints: checkTexts(visible),
    row,
    ...(verbsOf(visible, grants).includes("insert") && { inserted_row: insert }),
  };
}

function summaryOfTable({ table, selectable }: VisibleTable) {
  const { schema, name, kind, comment } = table;
  const columns = selectable.map((column) => column.name);
  return { kind, schema, name, comment: readComment(comment).text ?? null, columns };
}

function summaryOfRoutine({ schema, name, comment, volatility, arguments: parameters }: Routine) {
  const names = parameters.map((parameter) => parameter.name);
  const text = readComment(comment).text ?? null;
  return {
    kind: "function",
    schema,
    name,
    comment: text,
    changes_data: volatility === "volatile",
    argument_names: names,
  };
}

/** Searches tables and functions. All words must occur in names, columns or the comment; matches in the name come first. */
function search(given: JsonObject, { schemas }: McpSurface): object {
  checkNames(given, ["query", "limit", "offset"]);
  if (typeof given.query !== "string") throw new ArgumentError("`query` must be a text; an empty one lists all.");
  const limit = readInteger(given.limit, "limit", 1, 100) ?? 20;
  const offset = readInteger(given.offset, "offset", 0) ?? 0;
  const words = given.query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const all = schemas.flatMap(({ tables, routines }) => [
    ...tables.map(summaryOfTable),
    ...routines.map(summaryOfRoutine),
  ]);
  const ranked = all
    .filter((entry) => words.every((word) => JSON.stringify(entry).toLowerCase().includes(word)))
    .map((entry) => ({ entry, rank: words.filter((word) => entry.name.toLowerCase().includes(word)).length }))
    .sort((one, other) => other.rank - one.rank || (one.entry.name < other.entry.name ? -1 : 1));
  const found = ranked.slice(offset, offset + limit).map(({ entry }) => entry);
  return { found, next_offset: offset + limit < ranked.length ? offset + limit : null };
}

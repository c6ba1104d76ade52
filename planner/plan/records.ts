import {
  baseTypeOf,
  type Catalog,
  type CatalogColumn,
  type CatalogTable,
  type DataType,
  findRepresentation,
} from "#catalog";
import { ApiError, type ApiErrorOptions } from "#runtime";
import type { InsertIntent, RowPayload, UpdateIntent } from "../intent/intent.ts";
import type { ArrayElementPlan, ColumnDefaultPlan, JsonReader, RecordColumn, RecordsPlan } from "./plan.ts";

/** Types whose input function reads values from an array like values from JSON, and does not depend on a type modifier. */
const ARRAY_READABLE_TYPES = new Set([
  ...["bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "uuid"],
  ...["date", "time", "timetz", "timestamp", "timestamptz"],
]);

type IntentWithPayload = Pick<InsertIntent | UpdateIntent, "payload" | "missingAsDefault">;

/** Throws PGRST204 for unknown columns. */
export function planRecords(
  { payload, missingAsDefault }: IntentWithPayload,
  table: CatalogTable,
  catalog: Catalog,
): RecordsPlan {
  const columns = payload.columns.map((name): RecordColumn => {
    const column = table.columns.get(name);
    if (!column) throw columnNotFound(name, table);
    const usesDefault = missingAsDefault && mayLack(payload, name);
    return planRecordColumn(column, usesDefault ? planMissingValue(column, table) : null, catalog);
  });
  return toRecordsPlan(table, payload, columns);
}

function toRecordsPlan(
  table: CatalogTable,
  { isArray, valueSpans }: RowPayload,
  columns: readonly RecordColumn[],
): RecordsPlan {
  const byColumn = valueSpans !== undefined && columns.every(canBeReadFromArray);
  return { alias: recordsAlias(table), isArray, byColumn, rowOf: null, columns };
}

/** The records of an update. On the nodes that store a distributed table, they are read as rows of the table where that is possible. */
export function toChangeRecordsPlan(
  table: CatalogTable,
  payload: RowPayload,
  columns: readonly RecordColumn[],
): RecordsPlan {
  const isOfTable = columns.every(({ name, reader, missingValue }) => {
    return table.columns.has(name) && reader === null && missingValue === null;
  });
  // A missing value of a domain is checked too, and the domain may forbid null.
  const hasOtherDomain = table.columns.values().some(({ name, type }) => {
    return type.kind === "domain" && !columns.some((column) => column.name === name);
  });
  const rowOf = table.distribution && isOfTable && !hasOtherDomain ? { schema: table.schema, name: table.name } : null;
  return { ...toRecordsPlan(table, payload, columns), rowOf };
}

export function mayLack({ incompleteColumns }: RowPayload, name: string): boolean {
  return incompleteColumns?.includes(name) ?? true;
}

/** The table and its records are in one statement. */
export function recordsAlias({ name }: CatalogTable): string {
  return name === "payload" ? "records" : "payload";
}

/**
 * The value for missing values is null if no row lacks the column: Postgres requires privileges on the functions of a default that is in
 * the statement, even if no row uses it.
 */
export function planRecordColumn(
  column: CatalogColumn,
  missingValue: ColumnDefaultPlan | null,
  catalog: Catalog,
): RecordColumn {
  const { name, sqlType, type } = column;
  return { name, sqlType, element: planArrayElement(type), reader: findJsonReader(column, catalog), missingValue };
}

/** True if values can be passed as an array. In arrays every row has the column, so its default is not used. */
function canBeReadFromArray({ element, reader }: RecordColumn): boolean {
  return element !== null && reader === null;
}

export function findJsonReader({ sqlType, baseType }: CatalogColumn, catalog: Catalog): JsonReader | null {
  const name = findRepresentation(catalog, "json", sqlType);
  if (name !== null) return { kind: "function", name };
  const isList = baseType.kind === "array";
  const type = isList ? baseTypeOf(baseType.element) : baseType;
  const isHstore = type.name === "hstore" && catalog.extensions.get("hstore")?.schema === type.schema;
  return isHstore ? { kind: "hstore", schema: type.schema, isList } : null;
}

function planArrayElement({ kind, schema, name, sqlName }: DataType): ArrayElementPlan | null {
  // A prepared statement keeps its parameter types, but an enum may be dropped and recreated.
  if (kind === "enum") return { sqlType: "text", cast: sqlName, isJson: false };
  if (kind !== "base" || schema !== "pg_catalog") return null;
  // Memory for reading an element is kept until all are read: 3 kB each for JSON.
  if (name === "json" || name === "jsonb") return { sqlType: "text", cast: name, isJson: true };
  return ARRAY_READABLE_TYPES.has(name) ? { sqlType: sqlName, cast: null, isJson: false } : null;
}

export function planMissingValue(column: CatalogColumn, { schema, name }: CatalogTable): ColumnDefaultPlan | null {
  if (column.identity === "by default") return { kind: "identity", table: { schema, name }, column: column.name };
  return column.default === null ? null : { kind: "expression", text: column.default };
}

export function columnNotFound(name: string, table: CatalogTable, options: ApiErrorOptions = {}): ApiError {
  return new ApiError(
    "invalid",
    "PGRST204",
    `Could not find the '${name}' column of '${table.name}' in the schema cache`,
    options,
  );
}

/** The type without a length, so that a cast does not cut a value. */
export function unboundedType({ type, sqlType }: CatalogColumn): string {
  if (type.schema !== "pg_catalog") return type.sqlName;
  return type.name === "bpchar" ? "bpchar" : type.name === "bit" ? sqlType : type.sqlName;
}

/** Makes names for record columns that are not columns of the table. */
export function makeUnusedNames({ columns, computedColumns }: CatalogTable): (name: string) => string {
  const taken = new Set([...columns.keys(), ...computedColumns.keys()]);
  return (preferred) => {
    let name = preferred;
    while (taken.has(name)) name = `${name}_`;
    taken.add(name);
    return name;
  };
}

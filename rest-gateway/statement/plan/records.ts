import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Column } from "../../../engine/catalog/columns.ts";
import type { QualifiedName } from "../../../engine/catalog/qualified-name.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import { baseTypeOf, type DataType } from "../../../engine/catalog/types.ts";
import { ApiError } from "../../../engine/errors.ts";
import type { InsertIntent, UpdateIntent } from "../intent.ts";
import { representation } from "./field.ts";

/** The payload, read as rows with the table's own types. */
export type Records = {
  readonly alias: string;
  readonly isArray: boolean;
  /** One array for each column takes Postgres a third less than the JSON text; and JSON in it, a quarter of the memory. */
  readonly byColumn: boolean;
  readonly columns: readonly RecordColumn[];
};

export type RecordColumn = {
  readonly name: string;
  readonly sqlType: string;
  /** Of the elements, where the column's values can come in an array. */
  readonly element: Element | null;
  /** How JSON is read, where Postgres itself would not read it as it writes it; null: by the type's input function. */
  readonly reader: JsonReader | null;
  /** What the column becomes in a record that does not name it; null: null. */
  readonly fallback: Fallback | null;
};

/** The function that reads JSON as the column's domain; or an hstore, an object to clients, or a list of them. */
export type JsonReader =
  | { readonly kind: "function"; readonly name: string }
  | { readonly kind: "hstore"; readonly schema: string; readonly isList: boolean };

/** A default as the catalogue spells it, or the next number of an identity column. */
export type Fallback =
  | { readonly kind: "expression"; readonly text: string }
  | { readonly kind: "identity"; readonly table: QualifiedName; readonly column: string };

export type Element = {
  readonly sqlType: string;
  /** What a text becomes in its row alone. */
  readonly cast: string | null;
  readonly isJson: boolean;
};

type WithPayload = Pick<InsertIntent | UpdateIntent, "payload" | "missingAsDefault">;

/** Refuses columns that the table does not have (PGRST204). */
export function planRecords({ payload, missingAsDefault }: WithPayload, table: Table, catalog: Catalog): Records {
  const columns = payload.columns.map((name): RecordColumn => {
    const column = table.columns.get(name);
    if (!column) throw noColumn(name, table);
    const reader = jsonReaderOf(column, catalog);
    const fallback = missingAsDefault ? fallbackOf(column, table) : null;
    return { name, sqlType: column.sqlType, element: elementOf(column.type), reader, fallback };
  });
  return {
    // The table stands beside its records in one statement.
    alias: table.name === "payload" ? "records" : "payload",
    isArray: payload.isArray,
    byColumn: payload.grid !== undefined && columns.every(isReadAlike),
    columns,
  };
}

/** No row can do without the column there, and so with its default. */
function isReadAlike({ element, reader }: RecordColumn): boolean {
  return element !== null && reader === null;
}

function jsonReaderOf({ sqlType, baseType }: Column, catalog: Catalog): JsonReader | null {
  const name = representation(catalog, "json", sqlType);
  if (name !== null) return { kind: "function", name };
  const isList = baseType.kind === "array";
  const type = isList ? baseTypeOf(baseType.element) : baseType;
  const isHstore = type.name === "hstore" && catalog.extensions.get("hstore")?.schema === type.schema;
  return isHstore ? { kind: "hstore", schema: type.schema, isList } : null;
}

/**
 * Their values are read from an array as they are from JSON: by the input function, which needs to know of no modifier
 * that the column does not see to itself.
 */
const READ_ALIKE = new Set([
  ...["bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "uuid"],
  ...["date", "time", "timetz", "timestamp", "timestamptz"],
]);

function elementOf({ kind, schema, name, sqlName }: DataType): Element | null {
  // A prepared statement keeps to the types of its parameters, and this one may be dropped and made anew.
  if (kind === "enum") return { sqlType: "text", cast: sqlName, isJson: false };
  if (kind !== "base" || schema !== "pg_catalog") return null;
  // What it takes to read an element is kept until all are read: of JSON that is 3 kB each.
  if (name === "json" || name === "jsonb") return { sqlType: "text", cast: name, isJson: true };
  return READ_ALIKE.has(name) ? { sqlType: sqlName, cast: null, isJson: false } : null;
}

function fallbackOf(column: Column, { schema, name }: Table): Fallback | null {
  if (column.identity === "by default") return { kind: "identity", table: { schema, name }, column: column.name };
  return column.default === null ? null : { kind: "expression", text: column.default };
}

function noColumn(name: string, table: Table): ApiError {
  return new ApiError(400, "PGRST204", `Could not find the '${name}' column of '${table.name}' in the schema cache`);
}

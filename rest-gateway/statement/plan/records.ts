import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Column } from "../../../engine/catalog/columns.ts";
import type { QualifiedName } from "../../../engine/catalog/qualified-name.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import { ApiError } from "../../../engine/errors.ts";
import type { InsertIntent, UpdateIntent } from "../intent.ts";
import { representation } from "./field.ts";

/** The payload, read as rows with the table's own types. */
export type Records = {
  readonly alias: string;
  readonly isArray: boolean;
  readonly columns: readonly RecordColumn[];
};

export type RecordColumn = {
  readonly name: string;
  readonly sqlType: string;
  /** The function that reads JSON as the column's domain. */
  readonly by: string | null;
  /** What the column becomes in a record that does not name it; null: null. */
  readonly fallback: Fallback | null;
};

/** A default as the catalogue spells it, or the next number of an identity column. */
export type Fallback =
  | { readonly kind: "expression"; readonly text: string }
  | { readonly kind: "identity"; readonly table: QualifiedName; readonly column: string };

type WithPayload = Pick<InsertIntent | UpdateIntent, "payload" | "missingAsDefault">;

/** Refuses columns that the table does not have (PGRST204). */
export function planRecords({ payload, missingAsDefault }: WithPayload, table: Table, catalog: Catalog): Records {
  return {
    // The table stands beside its records in one statement.
    alias: table.name === "payload" ? "records" : "payload",
    isArray: payload.isArray,
    columns: payload.columns.map((name) => {
      const column = table.columns.get(name);
      if (!column) throw noColumn(name, table);
      const by = representation(catalog, "json", column.sqlType);
      return { name, sqlType: column.sqlType, by, fallback: missingAsDefault ? fallbackOf(column, table) : null };
    }),
  };
}

function fallbackOf(column: Column, { schema, name }: Table): Fallback | null {
  if (column.identity === "by default") return { kind: "identity", table: { schema, name }, column: column.name };
  return column.default === null ? null : { kind: "expression", text: column.default };
}

function noColumn(name: string, table: Table): ApiError {
  return new ApiError(400, "PGRST204", `Could not find the '${name}' column of '${table.name}' in the schema cache`);
}

import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { RESULT_SETTING } from "./function-call.ts";
import type { RowInput } from "./nested-inputs.ts";
import { equals } from "./operators.ts";
import { keyOf, type PgTable } from "./table.ts";

/** Rows that statements of the planner write. */
export type RowsWrite =
  /** One row with related rows. */
  | { readonly kind: "nested insert"; readonly row: RowInput }
  /** Each row has the key of the one that it changes. */
  | { readonly kind: "update"; readonly table: PgTable; readonly rows: readonly RowInput[] }
  | {
      readonly kind: "upsert";
      readonly table: PgTable;
      readonly rows: readonly RowInput[];
      /** The columns whose values an existing row has. */
      readonly key: readonly string[];
      readonly resolution: "merge" | "ignore";
    };

/** The conditions that the row is the inserted one. The setting has its key: a list of texts in JSON. */
export function isInsertedRow(table: PgTable, row: SQL, setting: SQL = sql.literal(RESULT_SETTING)): SQL[] {
  return keyOf(table)!.map((column, index) => {
    const { codec } = table.codec.attributes[column]!;
    const value = sql`(pg_catalog.current_setting(${setting})::pg_catalog.json operator(pg_catalog.->>) ${sql.literal(index)})::${codec.sqlType}`;
    return equals(codec, sql`${row}.${sql.identifier(column)}`, value);
  });
}

/** The keys of written rows, which are in the setting as a list of objects in JSON. */
export type WrittenKeys = {
  readonly from: SQL;
  readonly alias: SQL;
  readonly names: SQL;
  /** The position of a table's row among the written rows. */
  readonly position: SQL;
};

export function writtenKeys(setting: SQL = sql.literal(RESULT_SETTING)): WrittenKeys {
  const alias = sql.identifier(Symbol("written"));
  return {
    from: sql`pg_catalog.json_array_elements(pg_catalog.current_setting(${setting})::pg_catalog.json) with ordinality`,
    alias,
    names: sql`("key", "position")`,
    position: sql`${alias}."position"`,
  };
}

export function isWrittenRow({ alias }: WrittenKeys, table: PgTable, row: SQL): SQL[] {
  return keyOf(table)!.map((column) => {
    const { codec } = table.codec.attributes[column]!;
    const value = sql`(${alias}."key" operator(pg_catalog.->>) ${sql.literal(column)})::${codec.sqlType}`;
    return equals(codec, sql`${row}.${sql.identifier(column)}`, value);
  });
}

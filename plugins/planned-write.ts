import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { RESULT_SETTING } from "./function-call.ts";
import type { RowInput } from "./nested-inputs.ts";
import { haveValues } from "./operators.ts";
import { type Codec, keyOf, type PgTable } from "./table.ts";

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

/** The key or keys that the planner's statements kept. */
const KEPT = sql`pg_catalog.current_setting(${sql.literal(RESULT_SETTING)})::pg_catalog.json`;

/** The conditions that the row is the inserted one. Its key was kept as a list of texts. */
export function isInsertedRow(table: PgTable, row: SQL): SQL[] {
  const valueAt = ({ sqlType }: Codec, index: number) =>
    sql`(${KEPT} operator(pg_catalog.->>) ${sql.literal(index)})::${sqlType}`;
  return haveValues(table, keyOf(table)!, row, valueAt);
}

/** The keys of written rows, which were kept as a list of objects. */
export type WrittenKeys = {
  readonly from: SQL;
  readonly alias: SQL;
  readonly names: SQL;
  /** The position of a table's row among the written rows. */
  readonly position: SQL;
};

export function writtenKeys(): WrittenKeys {
  const alias = sql.identifier(Symbol("written"));
  return {
    from: sql`pg_catalog.json_array_elements(${KEPT}) with ordinality`,
    alias,
    names: sql`("key", "position")`,
    position: sql`${alias}."position"`,
  };
}

export function isWrittenRow({ alias }: WrittenKeys, table: PgTable, row: SQL): SQL[] {
  const key = keyOf(table)!;
  const valueAt = ({ sqlType }: Codec, index: number) =>
    sql`(${alias}."key" operator(pg_catalog.->>) ${sql.literal(key[index]!)})::${sqlType}`;
  return haveValues(table, key, row, valueAt);
}

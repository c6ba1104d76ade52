import type { DescribedColumn, DescribedConstraint, DescribedForeignKey, DescribedTable } from "../../api/catalog.ts";
import type { TableRow } from "../../api/rest-query.ts";

/** What editing reads of the catalogue. */
export type EditedColumn = Pick<
  DescribedColumn,
  "name" | "type" | "base_type" | "labels" | "nullable" | "default" | "identity" | "generated" | "comment"
>;

export type EditedForeignKey = Pick<
  DescribedForeignKey,
  "name" | "columns" | "target" | "target_columns" | "on_delete"
>;

export type EditedTable = Pick<
  DescribedTable,
  "schema" | "name" | "primary_key" | "changes" | "exposed" | "published"
> & {
  /** Those that the caller may read. */
  readonly columns: readonly EditedColumn[];
  readonly foreign_keys: readonly EditedForeignKey[];
  readonly constraints: readonly Pick<DescribedConstraint, "name" | "kind" | "columns" | "definition">[];
};

/** Generated columns and identities that are always generated are not written. */
export function isWritable({ generated, identity }: EditedColumn): boolean {
  return generated === null && identity !== "always";
}

/** Whether an insert without a value for the column fails. */
export function isRequired(column: EditedColumn): boolean {
  return isWritable(column) && !column.nullable && column.default === null && column.identity === null;
}

export function columnOf({ columns }: EditedTable, name: string): EditedColumn {
  return columns.find((column) => column.name === name)!;
}

/** A text that is the same for the same row. */
export function keyText(key: readonly string[], row: TableRow): string {
  return JSON.stringify(key.map((name) => row[name] ?? null));
}

import type { DescribedColumn, DescribedConstraint, DescribedForeignKey, DescribedTable } from "../../api/catalog.ts";
import type { TableRow } from "../../api/rest-query.ts";

/** The parts of the catalogue that editing reads. */
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
  /** The columns that the caller may read. */
  readonly columns: readonly EditedColumn[];
  /** True if the caller may not read others of its columns. */
  readonly hasHiddenColumns?: boolean;
  readonly foreign_keys: readonly EditedForeignKey[];
  readonly constraints: readonly Pick<DescribedConstraint, "name" | "kind" | "columns" | "definition" | "comment">[];
};

/** False for generated columns, and for identities that are always generated. */
export function isWritable({ generated, identity }: EditedColumn): boolean {
  return generated === null && identity !== "always";
}

/** True if an insert without a value for the column fails. */
export function isRequired(column: EditedColumn): boolean {
  return isWritable(column) && !column.nullable && column.default === null && column.identity === null;
}

export function columnOf({ columns }: EditedTable, name: string): EditedColumn {
  return columns.find((column) => column.name === name)!;
}

/** Returns a text that identifies the row. */
export function keyText(key: readonly string[], row: TableRow): string {
  return JSON.stringify(key.map((name) => row[name] ?? null));
}

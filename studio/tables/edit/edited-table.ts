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

/** The columns that identify a row: the primary key, or a unique key that is never null. Null without one: rows cannot be changed one by one. */
export function rowKeyOf({ primary_key, constraints, columns }: EditedTable): readonly string[] | null {
  if (primary_key.length > 0) return primary_key;
  const isRequired = (name: string) => columns.some((column) => column.name === name && !column.nullable);
  const unique = constraints.find((each) => each.kind === "unique" && each.columns.every(isRequired));
  return unique?.columns ?? null;
}

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

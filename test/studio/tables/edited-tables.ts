import type { EditedColumn, EditedForeignKey, EditedTable } from "../../../studio/tables/edit/edited-table.ts";

type ColumnOptions = Partial<Omit<EditedColumn, "name" | "type">>;

export function column(name: string, type: string, options: ColumnOptions = {}): EditedColumn {
  const base_type = type.replace(/\([^)]*\)/, "");
  const defaults = { nullable: true, default: null, identity: null, generated: null, comment: null, labels: null };
  return { name, type, base_type, ...defaults, ...options };
}

export function table(name: string, columns: readonly EditedColumn[], options: Partial<EditedTable> = {}): EditedTable {
  return {
    schema: "public",
    name,
    columns,
    primary_key: ["id"],
    foreign_keys: [],
    constraints: [],
    changes: ["insert", "update", "delete"],
    exposed: true,
    published: true,
    ...options,
  };
}

export function reference(
  columnName: string,
  target: string,
  onDelete: EditedForeignKey["on_delete"],
): EditedForeignKey {
  return {
    name: `${columnName}_fkey`,
    columns: [columnName],
    target: { schema: "public", name: target },
    target_columns: ["id"],
    on_delete: onDelete,
  };
}

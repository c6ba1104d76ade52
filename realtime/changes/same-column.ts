import type { Table } from "../../engine/catalog/tables.ts";
import type { RelationColumn } from "../../engine/changes/changes.ts";

/**
 * Whether a column is still what it was when the log was written. What is told late, to somebody who resumes perhaps,
 * can be of before it was altered: its values are then none of the type that it has now.
 */
export function isSameColumn(table: Table, { name, typeOid }: RelationColumn): boolean {
  return table.columns.get(name)?.type.oid === typeOid;
}

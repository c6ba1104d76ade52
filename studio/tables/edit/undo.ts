import type { TableRow } from "../../api/rest-query.ts";
import { deleteUnchangedRow, type RowChanger, restoreRows, updateRow } from "./row-changes.ts";
import type { RowValues } from "./row-requests.ts";
import { valueKind } from "./value-kind.ts";

/** A change that was made, with the data to undo it. */
export type RowChangeRecord =
  | {
      readonly kind: "update";
      readonly before: TableRow;
      readonly after: TableRow;
      readonly columns: readonly string[];
    }
  | { readonly kind: "insert"; readonly row: TableRow }
  | { readonly kind: "delete"; readonly rows: readonly TableRow[]; readonly alsoChanged: number };

type UndoResult =
  | { readonly status: "undone"; readonly rows: readonly TableRow[] }
  | { readonly status: "impossible"; readonly reason: UndoObstacle };

/** The reason why a change cannot be undone. */
type UndoObstacle = KnownObstacle | "changed" | "gone" | "refused" | "referenced";
type KnownObstacle = "cascaded" | "hiddenColumns" | "identity" | "jsonNull";

/** Returns the obstacle that is known without a request; null if there is none. */
export function undoObstacle({ table }: Pick<RowChanger, "table">, change: RowChangeRecord): KnownObstacle | null {
  if (change.kind === "insert") return null;
  const restored = change.kind === "update" ? [pick(change.before, change.columns)] : change.rows;
  const hasJsonNull = table.columns.some(
    (column) => valueKind(column) === "json" && restored.some((row) => row[column.name] === "null"),
  );
  if (change.kind === "delete" && change.alsoChanged > 0) return "cascaded";
  if (change.kind === "delete" && table.hasHiddenColumns) return "hiddenColumns";
  if (change.kind === "delete" && table.columns.some(({ identity }) => identity === "always")) return "identity";
  return hasJsonNull ? "jsonNull" : null;
}

/** Undoes a change. `countReferences` counts the rows that would be deleted or changed together with the rows. */
export async function undoChange(
  changer: RowChanger,
  change: RowChangeRecord,
  countReferences: (rows: readonly TableRow[]) => Promise<number>,
): Promise<UndoResult> {
  const obstacle = undoObstacle(changer, change);
  if (obstacle) return { status: "impossible", reason: obstacle };
  if (change.kind === "update") return undoUpdate(changer, change);
  if (change.kind === "delete") return { status: "undone", rows: await restoreRows(changer, change.rows) };
  return undoInsert(changer, change.row, countReferences);
}

async function undoUpdate(
  changer: RowChanger,
  { before, after, columns }: Extract<RowChangeRecord, { kind: "update" }>,
): Promise<UndoResult> {
  const values: RowValues = pick(before, columns);
  const result = await updateRow(changer, after, values);
  if (result.status === "changed") return { status: "undone", rows: [result.row] };
  return obstacleOf(result);
}

function pick(row: TableRow, columns: readonly string[]): TableRow {
  return Object.fromEntries(columns.map((name) => [name, row[name] ?? null]));
}

async function undoInsert(
  changer: RowChanger,
  row: TableRow,
  countReferences: (rows: readonly TableRow[]) => Promise<number>,
): Promise<UndoResult> {
  if ((await countReferences([row])) > 0) return { status: "impossible", reason: "referenced" };
  const result = await deleteUnchangedRow(changer, row);
  return result.status === "deleted" ? { status: "undone", rows: [] } : obstacleOf(result);
}

function obstacleOf({ status }: { readonly status: "conflict" | "gone" | "refused" }): UndoResult {
  return { status: "impossible", reason: status === "conflict" ? "changed" : status };
}

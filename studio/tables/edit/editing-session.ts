import type { WriteCommand } from "#operations/admin-types";
import { whyLink } from "../../access/access-api.ts";
import { formatQuery, type QueryParameter, type TableRow, tablePath } from "../../api/rest-query.ts";
import type { GridCell } from "../../components/grid-keys.ts";
import { showToast } from "../../components/toast.ts";
import { navigate } from "../../router.ts";
import { makeStore } from "../../store.ts";
import { texts } from "../../texts.ts";
import type { RowWindows } from "../rows/row-windows.ts";
import type { NeededPrivilege } from "../rows/table-access.ts";
import { type CascadeStep, countAffected, findCascade } from "./cascade.ts";
import type { CellMove } from "./cell-editor.ts";
import { columnOf, type EditedColumn, type EditedTable, isWritable, keyText } from "./edited-table.ts";
import { deleteRows, insertRow, isForbidden, type RowChanger, updateRow } from "./row-changes.ts";
import { encodeRow, keyFilters, type RowValues } from "./row-requests.ts";
import { type RowChangeRecord, undoChange, undoObstacle } from "./undo.ts";
import { findValueProblem } from "./value-kind.ts";
import { errorText, problemText } from "./value-texts.ts";

/** The changes that the caller may make. */
export type EditingRights = {
  /** Returns why nobody can change rows in this way; null if it depends on privileges. */
  readonly obstacle: (command: WriteCommand) => string | null;
  readonly canInsert: boolean;
  readonly canDelete: boolean;
  readonly canWrite: (column: string, command: "insert" | "update") => boolean;
  /** Returns the SQL that grants the missing privileges to the caller. */
  readonly grantsFor: (needed: NeededPrivilege) => string;
};

type EditingContext = {
  readonly changer: RowChanger;
  readonly tables: readonly EditedTable[];
  readonly rights: EditingRights;
  readonly windows: RowWindows;
  /** The shown columns, in order. */
  readonly columns: readonly string[];
  readonly filters: readonly QueryParameter[];
  /** The value of the parameter `order`. */
  readonly order: string;
  readonly moveTo: (cell: GridCell) => void;
  readonly isActive: (cell: GridCell) => boolean;
  /** Returns the function that tells if the user has chosen a cell since, or types in a field. */
  readonly watchUser: () => () => boolean;
};

/** The cell that is edited. */
type EditedCell = {
  readonly at: GridCell;
  readonly column: EditedColumn;
  readonly row: TableRow;
  readonly value: string | null;
  readonly error: string | null;
  /** True if privileges or policies have refused the value. */
  readonly isForbidden: boolean;
  readonly isSaving: boolean;
};

/** A change that failed because somebody else was faster. */
type EditConflict = {
  readonly columns: readonly string[];
  readonly before: TableRow;
  readonly theirs: TableRow;
  readonly yours: RowValues;
};

type EditingDialog =
  | { readonly kind: "form"; readonly row: TableRow | null }
  | { readonly kind: "delete"; readonly rows: readonly TableRow[] }
  | { readonly kind: "compare"; readonly rows: readonly [TableRow, TableRow] }
  | { readonly kind: "grant"; readonly sql: string }
  | { readonly kind: "export" }
  | { readonly kind: "import" };

export type EditingState = {
  readonly cell: EditedCell | null;
  readonly conflict: EditConflict | null;
  readonly dialog: EditingDialog | null;
  readonly changes: readonly RowChangeRecord[];
  /** The selected rows, by the texts of their keys. */
  readonly selected: ReadonlyMap<string, TableRow>;
};

const MAX_CHANGES = 50;

/** Returns why nobody can write the column; null if somebody can. */
function columnObstacle(column: EditedColumn): string | null {
  if (column.generated) return texts.editing.isGenerated(column.generated.expression);
  return isWritable(column) ? null : texts.editing.isIdentity;
}

/** The row is visible, but no policy lets the caller change it. */
class ForbiddenChange extends Error {
  readonly code = "42501";
  readonly details = null;
}

/** The edits in the grid of one table, and the changes that can be undone. */
export class EditingSession {
  readonly state = makeStore<EditingState>({
    cell: null,
    conflict: null,
    dialog: null,
    changes: [],
    selected: new Map(),
  });
  /** Replaced when the filters, the columns or the caller change. */
  context: EditingContext;
  /** The keys of rows that were inserted here. */
  readonly inserted = new Set<string>();
  #lastSelected = 0;

  constructor(context: EditingContext) {
    this.context = context;
  }

  /** Edits the value of a cell, or explains why that is impossible. */
  startCell(at: GridCell): void {
    const { windows, columns, changer, rights } = this.context;
    const row = windows.rowAt(at.row);
    const name = columns[at.column];
    if (!row || name === undefined) return;
    const column = columnOf(changer.table, name);
    const obstacle = rights.obstacle("update") ?? columnObstacle(column);
    if (obstacle) showToast({ text: obstacle });
    else if (!rights.canWrite(name, "update"))
      this.#refuse(texts.editing.notWritable, { privilege: "update", columns: [name] });
    else
      this.#set({
        cell: { at, column, row, value: row[name] ?? null, error: null, isForbidden: false, isSaving: false },
      });
  }

  async commitCell(value: string | null, move: CellMove): Promise<void> {
    const { cell } = this.state.get();
    if (!cell || cell.isSaving) return;
    const { column, row } = cell;
    // The cell was left without a change, or again with a refused value.
    if (value === cell.value && move === "stay") return this.cancelCell(false);
    if (value === (row[column.name] ?? null)) return this.#leaveCell(cell, move);
    this.#set({ cell: { ...cell, value } });
    const problem = value === null ? null : findValueProblem(value, column);
    if (problem || (value === null && !column.nullable)) {
      return this.failCell(problem ? problemText(problem) : texts.editing.problems.required);
    }
    this.#set({ cell: { ...cell, value, isSaving: true, error: null } });
    try {
      await this.#update(row, { [column.name]: value });
      this.#leaveCell(cell, move);
    } catch (error) {
      this.failCell(this.#messageOf(error), isForbidden(error));
    }
  }

  failCell(error: string | null, forbidden = false): void {
    const { cell } = this.state.get();
    if (!cell) return;
    this.#set({ cell: { ...cell, error, isForbidden: forbidden, isSaving: false } });
    // A click on another cell has saved the value and left the cell.
    if (error !== null && !this.context.isActive(cell.at)) this.context.moveTo(cell.at);
  }

  /** Ends editing without saving the value. */
  cancelCell(returnsFocus = true): void {
    const { cell } = this.state.get();
    this.#set({ cell: null });
    if (cell && returnsFocus) this.context.moveTo(cell.at);
  }

  show(dialog: EditingDialog | null): void {
    this.#set({ dialog });
  }

  /** Saves a new or a changed row; throws the error of the service. */
  async saveForm(row: TableRow | null, values: RowValues): Promise<void> {
    if (row) await this.#update(row, values);
    else {
      const inserted = await insertRow(this.context.changer, values);
      if (inserted) {
        this.inserted.add(keyText(this.context.changer.key, inserted));
        const change = { kind: "insert", row: inserted } as const;
        this.#remember(change);
        showToast({ text: texts.editing.inserted, action: this.#undoAction(change) });
      } else showToast({ text: texts.editing.insertedUnseen });
      this.refresh();
      if (inserted) void this.#moveToInserted(inserted);
    }
    this.#set({ dialog: null });
  }

  /** Moves to an inserted row if the filters show it and the user has gone nowhere else; a message says that it was inserted. */
  async #moveToInserted(row: TableRow): Promise<void> {
    const { windows, moveTo, watchUser } = this.context;
    const isElsewhere = watchUser();
    const place = await windows.findPlace(row).catch(() => null);
    if (place === null || windows !== this.context.windows) return;
    await windows.countRows();
    if (!isElsewhere()) moveTo({ row: place, column: 0 });
  }

  /** Saves the values over those of somebody else, unless they have changed again. */
  async keepYours(): Promise<void> {
    const { conflict } = this.state.get();
    if (!conflict) return;
    this.#set({ conflict: null });
    try {
      await this.#update(conflict.theirs, conflict.yours);
      this.#set({ dialog: null });
    } catch (error) {
      showToast({ kind: "error", text: this.#messageOf(error) });
    }
  }

  takeTheirs(): void {
    const { conflict } = this.state.get();
    if (conflict) this.showRow(conflict.theirs, conflict.before);
    this.#set({ conflict: null, dialog: null });
  }

  askInsert(): void {
    const { rights, changer } = this.context;
    const obstacle = rights.obstacle("insert");
    const columns = changer.table.columns.filter(isWritable).map(({ name }) => name);
    if (obstacle) showToast({ text: obstacle });
    else if (rights.canInsert) this.#set({ dialog: { kind: "form", row: null } });
    else this.#refuse(texts.editing.notAllowed("insert"), { privilege: "insert", columns });
  }

  askDelete(rows: readonly TableRow[]): void {
    const { rights } = this.context;
    const obstacle = rights.obstacle("delete");
    if (obstacle) showToast({ text: obstacle });
    else if (!rights.canDelete) this.#refuse(texts.editing.notAllowed("delete"), { privilege: "delete" });
    else if (rows.length > 0) this.#set({ dialog: { kind: "delete", rows } });
  }

  findCascade(rows: readonly TableRow[]): Promise<readonly CascadeStep[]> {
    const { tables, changer } = this.context;
    return findCascade({ tables, send: changer.send }, changer.table, rows);
  }

  async deleteRows(rows: readonly TableRow[], alsoChanged: number): Promise<void> {
    const deleted = await deleteRows(this.context.changer, rows);
    const change = { kind: "delete", rows: deleted, alsoChanged } as const;
    if (deleted.length > 0) this.#remember(change);
    const missing = rows.length - deleted.length;
    if (missing > 0) {
      const onSelect = () => navigate(this.whyAddress("delete", rows));
      showToast({
        kind: "error",
        text: texts.editing.notDeleted(missing),
        action: { label: texts.editing.why, onSelect },
      });
    }
    const canUndo = deleted.length > 0 && undoObstacle(this.context.changer, change) === null;
    const action = canUndo && { action: this.#undoAction(change) };
    if (deleted.length > 0) showToast({ text: texts.editing.deleted(deleted.length), ...action });
    this.#set({ dialog: null, selected: new Map() });
    this.refresh();
  }

  /** Undoes the newest change, or the given one. */
  async undo(change = this.state.get().changes.at(-1)): Promise<void> {
    const { changes } = this.state.get();
    if (!change || !changes.includes(change)) return showToast({ text: texts.editing.nothingToUndo });
    // Removes the change at once, so that a second click does not undo it again.
    this.#set({ changes: changes.filter((each) => each !== change) });
    const countReferences = async (rows: readonly TableRow[]) => countAffected(await this.findCascade(rows));
    try {
      const result = await undoChange(this.context.changer, change, countReferences);
      if (result.status === "impossible") showToast({ kind: "error", text: texts.editing.obstacles[result.reason] });
      else showToast({ text: texts.editing.undone });
      const [row] = result.status === "undone" ? result.rows : [];
      if (change.kind === "update" && row) this.showRow(row, change.after);
      else this.refresh();
    } catch (error) {
      this.#remember(change);
      showToast({ kind: "error", text: this.#messageOf(error) });
    }
  }

  /** Selects a row; `extend` selects all rows between it and the previously selected one. */
  select(index: number, extend: boolean): void {
    const { windows, changer } = this.context;
    const selected = new Map(this.state.get().selected);
    const row = windows.rowAt(index);
    if (!row || changer.key.length === 0) return;
    const isOn = !selected.has(keyText(changer.key, row));
    const [from, to] = extend
      ? [Math.min(index, this.#lastSelected), Math.max(index, this.#lastSelected)]
      : [index, index];
    for (let at = from; at <= to; at++) {
      const each = windows.rowAt(at);
      if (each && (isOn || extend)) selected.set(keyText(changer.key, each), each);
      else if (each) selected.delete(keyText(changer.key, each));
    }
    this.#lastSelected = index;
    this.#set({ selected });
  }

  clearSelection(): void {
    this.#set({ selected: new Map() });
  }

  refresh(): void {
    this.context.windows.refresh();
    void this.context.windows.countRows();
  }

  /** Replaces the earlier version of the row by the new one. */
  showRow(row: TableRow, before: TableRow): void {
    const { windows, changer } = this.context;
    const text = keyText(changer.key, before);
    const index = windows.indexOf((each) => keyText(changer.key, each) === text);
    if (index >= 0) windows.replaceRow(index, row);
  }

  /** Shows the changed row, or the conflict; throws the obstacle. */
  async #update(before: TableRow, values: RowValues): Promise<void> {
    const result = await updateRow(this.context.changer, before, values);
    if (result.status === "refused") throw new ForbiddenChange(texts.editing.updateRefused);
    if (result.status === "gone") throw new Error(texts.editing.rowGone);
    if (result.status === "conflict") {
      this.#set({ cell: null, conflict: { columns: result.columns, before, theirs: result.row, yours: values } });
      return;
    }
    this.#remember({ kind: "update", before, after: result.row, columns: Object.keys(values) });
    this.showRow(result.row, before);
  }

  /** Returns the page that explains which privileges and policies refuse to insert the values, to update a row to them, or to delete rows. */
  whyAddress(command: WriteCommand, rows: readonly TableRow[], values: RowValues | null = null): string {
    const { table, key } = this.context.changer;
    const [filter] = rows.length > 0 && key.length > 0 ? keyFilters(key, rows) : [];
    const path = tablePath(table.name) + (filter ? `?${formatQuery([filter])}` : "");
    return whyLink(path, table.schema, { command, ...(values && { values: encodeRow(table, values) }) });
  }

  /** Explains which privilege the caller lacks, and offers to grant it. */
  #refuse(text: string, needed: NeededPrivilege): void {
    const sql = this.context.rights.grantsFor(needed);
    const onSelect = () => this.#set({ dialog: { kind: "grant", sql } });
    showToast({ text, action: { label: texts.editing.grant, onSelect } });
  }

  #leaveCell({ at }: EditedCell, move: CellMove): void {
    const { windows, columns } = this.context;
    this.#set({ cell: null });
    if (this.state.get().conflict || move === "stay") return;
    const last = columns.length - 1;
    const row = Math.min(at.row + (move === "down" ? 1 : 0), windows.rowCount - 1);
    const column = at.column + (move === "next" ? 1 : move === "previous" ? -1 : 0);
    this.context.moveTo({ row, column: Math.min(last, Math.max(0, column)) });
  }

  /** Makes the button that undoes the change of a message, even if other changes have followed. */
  #undoAction(change: RowChangeRecord) {
    return { label: texts.editing.undo, onSelect: () => void this.undo(change) };
  }

  #remember(change: RowChangeRecord): void {
    this.#set({ changes: [...this.state.get().changes, change].slice(-MAX_CHANGES) });
  }

  #messageOf(error: unknown): string {
    if (!(error instanceof Error)) return String(error);
    return "code" in error && "details" in error
      ? errorText(this.context.changer.table, error as Error & { code: string; details: string | null })
      : error.message;
  }

  #set(changed: Partial<EditingState>): void {
    this.state.set({ ...this.state.get(), ...changed });
  }
}

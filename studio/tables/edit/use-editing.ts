import { useEffect, useMemo, useRef } from "preact/hooks";
import type { WriteCommand } from "#operations/admin-types";
import { type DatabaseDescription, type DescribedTable, hasPrivilege, hasPrivilegeOnAny } from "../../api/catalog.ts";
import { request } from "../../api/client.ts";
import type { TableRow } from "../../api/rest-query.ts";
import type { GridControl } from "../../components/grid-cursor.ts";
import type { GridCell } from "../../components/grid-keys.ts";
import { useStore } from "../../store.ts";
import { texts } from "../../texts.ts";
import { formatFilter, type RowsState } from "../rows/filters.ts";
import { completeOrder, formatOrder } from "../rows/keyset.ts";
import type { RowWindows } from "../rows/row-windows.ts";
import { findRowKey, grantStatements, readableColumns } from "../rows/table-access.ts";
import type { TableColumns } from "../rows/use-columns.ts";
import { columnOf, type EditedTable, keyText } from "./edited-table.ts";
import { type EditingRights, EditingSession, type EditingState } from "./editing-session.ts";
import type { RowChanger } from "./row-changes.ts";
import { type LiveRows, useLiveRows } from "./use-live-rows.ts";

type EditingOptions = {
  readonly catalog: DatabaseDescription;
  readonly role: string;
  readonly table: DescribedTable;
  readonly windows: RowWindows;
  readonly columns: TableColumns;
  readonly state: RowsState;
  readonly control: { readonly current: GridControl | null };
  /** Called after privileges were granted, to reload the catalogue. */
  readonly onGranted: () => void;
};

/** The state and actions of editing for a table's page. */
export type Editing = {
  readonly session: EditingSession;
  readonly state: EditingState;
  readonly live: LiveRows;
  readonly catalog: DatabaseDescription;
  readonly role: string;
  readonly onGranted: () => void;
  readonly rowClass: (row: TableRow | undefined) => string;
  readonly isRowSelected: (row: TableRow) => boolean;
  /** Returns true if it has handled the key. */
  readonly onKey: (event: KeyboardEvent, cell: GridCell) => boolean;
};

export function useEditing(options: EditingOptions): Editing {
  const { catalog, role, table, windows, columns, state, control, onGranted } = options;
  const subject = useMemo(() => findSubject(catalog, role, table), [catalog, role, table]);
  const context = {
    ...subject,
    windows,
    columns: columns.shown.map(({ id }) => id),
    filters: state.filters.map(formatFilter),
    order: orderOf(subject.changer, state),
    moveTo: (cell: GridCell) => {
      control.current?.moveTo(cell);
      control.current?.focus();
    },
    isActive: (cell: GridCell) => isSameCell(control.current?.activeCell(), cell),
    watchUser: () => {
      const cell = control.current?.activeCell();
      return () => control.current?.activeCell() !== cell || isField(document.activeElement);
    },
  };
  const session = useRef<EditingSession>(null as never);
  session.current ??= new EditingSession(context);
  session.current.context = context;
  const editing = useStore(session.current.state);
  const { changer } = subject;
  const live = useLiveRows(changer, windows, (key) => session.current.inserted.has(key));
  useEffect(() => session.current.clearSelection(), [windows]);
  useEffect(() => undoByKey(session.current), []);
  return {
    session: session.current,
    state: editing,
    live,
    catalog,
    role,
    onGranted,
    rowClass: (row) =>
      row && live.marks.has(keyText(changer.key, row)) ? `editing-${live.marks.get(keyText(changer.key, row))}` : "",
    isRowSelected: (row) => editing.selected.has(keyText(changer.key, row)),
    onKey: (event, cell) => handleKey(session.current, event, cell),
  };
}

export function isSameCell(one: GridCell | null | undefined, other: GridCell): boolean {
  return one?.row === other.row && one.column === other.column;
}

/** Undoes the last change on Ctrl+Z, unless a field has the focus or a dialog is open. */
function undoByKey(session: EditingSession): () => void {
  const handle = (event: KeyboardEvent) => {
    const { key, ctrlKey, metaKey, shiftKey, altKey, target } = event;
    if (key.toLowerCase() !== "z" || !(ctrlKey || metaKey) || shiftKey || altKey) return;
    if (isField(target) || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    void session.undo();
  };
  document.addEventListener("keydown", handle);
  return () => document.removeEventListener("keydown", handle);
}

function isField(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable], dialog") !== null;
}

/** Handles keys: F2 and Enter edit, Shift+Enter opens the form, Insert a new one, Delete asks. */
function handleKey(session: EditingSession, event: KeyboardEvent, cell: GridCell): boolean {
  const { key, ctrlKey, metaKey, shiftKey, altKey } = event;
  const row = session.context.windows.rowAt(cell.row);
  if (ctrlKey || metaKey || altKey || cell.row < 0) return false;
  if (key === "F2" || (key === "Enter" && !shiftKey)) session.startCell(cell);
  else if (key === "Enter" && row) session.show({ kind: "form", row });
  else if (key === "Insert") session.askInsert();
  else if (key === "Delete" && row) session.askDelete(chosenRows(session, row));
  else return false;
  return true;
}

function chosenRows(session: EditingSession, row: TableRow): readonly TableRow[] {
  const { selected } = session.state.get();
  return selected.size > 0 ? [...selected.values()] : [row];
}

/** Returns the order of the shown rows. */
function orderOf({ table, key }: RowChanger, { sort }: RowsState): string {
  const known = sort.filter(({ column }) => table.columns.some(({ name }) => name === column));
  return formatOrder(completeOrder(known, key, (name) => columnOf(table, name).nullable));
}

/** Returns the tables that the caller may read, and the caller's rights to change them. */
function findSubject(catalog: DatabaseDescription, role: string, table: DescribedTable) {
  const editedTable = toEditedTable(catalog, role, table);
  const names = editedTable.columns.map(({ name }) => name);
  const key = findRowKey(catalog, role, table).filter((name) => names.includes(name));
  const tables = catalog.tables
    .filter((each) => each.parents.length === 0)
    .map((each) => toEditedTable(catalog, role, each));
  return { changer: { table: editedTable, key, send: request }, tables, rights: findRights(catalog, role, table, key) };
}

export function toEditedTable(catalog: DatabaseDescription, role: string, table: DescribedTable): EditedTable {
  const columns = readableColumns(catalog, role, table);
  return { ...table, columns, hasHiddenColumns: columns.length < table.columns.length };
}

function findRights(
  catalog: DatabaseDescription,
  role: string,
  table: DescribedTable,
  key: readonly string[],
): EditingRights {
  const canChange = (command: WriteCommand) => table.changes.includes(command);
  return {
    obstacle: (command) => {
      if (!canChange(command)) return texts.editing.notUpdatable;
      return command !== "insert" && key.length === 0 ? texts.editing.noKey : null;
    },
    canInsert: canChange("insert") && hasPrivilegeOnAny(catalog, role, "insert", table),
    canDelete: hasPrivilege(catalog, role, "delete", table),
    canWrite: (column, command) => hasPrivilege(catalog, role, command, table, column),
    grantsFor: (needed) => grantStatements(catalog, role, table, needed),
  };
}

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { explainRequest } from "../access/access-api.ts";
import type { DatabaseDescription, DescribedTable } from "../api/catalog.ts";
import { type TableRow, tablePath } from "../api/rest-query.ts";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { DataGrid } from "../components/data-grid.ts";
import type { GridColumn } from "../components/grid-columns.ts";
import type { GridControl } from "../components/grid-cursor.ts";
import type { GridCell } from "../components/grid-keys.ts";
import { useGridRows } from "../components/grid-rows.ts";
import { Notice } from "../components/notice.ts";
import { type Children, html } from "../html.ts";
import { location, navigate } from "../router.ts";
import { ADMINISTRATOR, allowAdministrators } from "../schema/forms/policy-sql.ts";
import { useStore } from "../store.ts";
import { texts } from "../texts.ts";
import { cellContent } from "./cell-content.ts";
import { ColumnMenu } from "./column-menu.ts";
import { type Editing, isSameCell, useEditing } from "./edit/use-editing.ts";
import { EditingToolbar, useEditingView } from "./editing-view.ts";
import { FilterBar } from "./filter-bar.ts";
import { ReferencePreview } from "./reference-preview.ts";
import { addressOf, foreignKeyOf, referencedRow } from "./references.ts";
import { RowDetails } from "./row-details.ts";
import {
  filterKind,
  formatRowsState,
  operatorsOf,
  parseRowsState,
  type RowsState,
  toggleSort,
} from "./rows/filters.ts";
import type { RowWindows } from "./rows/row-windows.ts";
import { type TableColumns, useColumns } from "./rows/use-columns.ts";
import { useTableRows } from "./rows/use-table-rows.ts";
import { GrantDialog, TableErrors, WhyLink } from "./table-errors.ts";
import { TableToolbar } from "./table-toolbar.ts";

type TableViewProps = {
  readonly catalog: DatabaseDescription;
  readonly role: string;
  readonly table: DescribedTable;
  /** The caller; the rows of another caller are read again. */
  readonly caller: string;
  readonly onGranted: () => void;
};

type OpenMenu = { readonly column: string; readonly anchor: Element };

/** The rows of one table. The address of the page contains the filters and the order. */
export function TableView({ catalog, role, table, caller, onGranted }: TableViewProps) {
  const { query } = useStore(location);
  const state = useMemo(() => parseRowsState(query), [query]);
  const columns = useColumns(catalog, role, table);
  const windows = useTableRows({ catalog, role, table, state, caller });
  const control = useRef<GridControl | null>(null);
  const editing = useEditing({ catalog, role, table, windows, columns, state, control, onGranted });
  const { editor, dialogs } = useEditingView(editing);
  const [cell, setCell] = useState<GridCell | null>(null);
  const [showsDetails, setShowsDetails] = useState(false);
  const { menu, setMenu, closeMenu } = useColumnMenu(control);
  const changeState = (next: RowsState) => navigate(addressWith(next));
  const toggleDetails = () => setShowsDetails((before) => !before);
  const { draft, setDraft, addFilter } = useFilterDraft(columns);
  const isUnseen = isHiddenFromAdministrator(table, role);
  const showAll = () => {
    onGranted();
    editing.session.refresh();
  };
  return html`
    <${TableToolbar} table=${table} windows=${windows} columns=${columns} state=${state} showsDetails=${showsDetails} onDetails=${toggleDetails} onAddFilter=${addFilter}>
      <${EditingToolbar} editing=${editing} />
    <//>
    <${FilterBar} columns=${columns} filters=${state.filters} draft=${draft} onDraft=${setDraft} onChange=${(filters: RowsState["filters"]) => changeState({ ...state, filters })} />
    ${isUnseen && html`<${AdministratorNotice} table=${table} onGranted=${showAll} />`}
    <${TableErrors} catalog=${catalog} windows=${windows} role=${role} table=${table} explainsHidden=${!isUnseen} />
    <div class="table-body">
      <${TableGrid}
        catalog=${catalog}
        table=${table}
        windows=${windows}
        columns=${columns}
        state=${state}
        control=${control}
        editing=${editing}
        editor=${editor}
        active=${cell}
        onCell=${setCell}
        onDetails=${toggleDetails}
        onSort=${(column: string, additive: boolean) => changeState({ ...state, sort: toggleSort(state.sort, column, additive) })}
        onMenu=${setMenu}
      />
      ${showsDetails && html`<${RowDetails} catalog=${catalog} table=${table} columns=${columns.all} windows=${windows} index=${cell?.row ?? null} onClose=${toggleDetails} />`}
    </div>
    ${menu && html`<${ColumnMenu} ...${menu} columns=${columns} state=${state} onState=${changeState} onAddFilter=${addFilter} onClose=${closeMenu} />`}
    ${dialogs}
  `;
}

/** The new filter, before it is applied. */
function useFilterDraft(columns: ReturnType<typeof useColumns>) {
  const [draft, setDraft] = useState<RowsState["filters"][number] | null>(null);
  const addFilter = (column: string) => {
    const [operator] = operatorsOf(filterKind(columns.byName.get(column)!));
    setDraft({ column, path: "", operator: operator!, value: "" });
  };
  return { draft, setDraft, addFilter };
}

/** The menu of a column; closing it returns the focus to the grid. */
function useColumnMenu(control: { readonly current: GridControl | null }) {
  const [menu, setMenu] = useState<OpenMenu | null>(null);
  const closeMenu = () => {
    setMenu(null);
    control.current?.focus();
  };
  return { menu, setMenu, closeMenu };
}

function addressWith(state: RowsState): string {
  const query = formatRowsState(state);
  return location.get().path + (query && `?${query}`);
}

type TableGridProps = {
  readonly catalog: DatabaseDescription;
  readonly table: DescribedTable;
  readonly windows: RowWindows;
  readonly columns: TableColumns;
  readonly state: RowsState;
  readonly control: { current: GridControl | null };
  readonly editing: Editing;
  /** The control in the active cell. */
  readonly editor: Children | null;
  readonly active: GridCell | null;
  readonly onCell: (cell: GridCell | null) => void;
  readonly onDetails: () => void;
  readonly onSort: (column: string, additive: boolean) => void;
  readonly onMenu: (menu: OpenMenu) => void;
};

function TableGrid(props: TableGridProps) {
  const { catalog, table, windows, columns, state, control, editing, onCell, onDetails, onMenu } = props;
  const { cell: edited } = editing.state;
  const pane = useRef<HTMLDivElement>(null);
  useGridRows(windows);
  const renderCell = useCallback(
    (row: TableRow, column: GridColumn) => tableCell(catalog, table, columns, row, column),
    [catalog, table, columns.byName],
  );
  const onKey = (event: KeyboardEvent, cell: GridCell) => {
    if (editing.onKey(event, cell)) return true;
    if (event.key !== "Enter" || cell.row < 0 || !(event.ctrlKey || event.metaKey || event.altKey)) return false;
    const address = event.altKey
      ? null
      : addressBehind(catalog, table, windows.rowAt(cell.row), columns.shown[cell.column]);
    if (event.altKey) onDetails();
    else if (address) navigate(address);
    return true;
  };
  useEffect(() => onCell(control.current?.activeCell() ?? null), [windows]);
  return html`
    <div class="table-grid" ref=${pane}>
      <${DataGrid}
        label=${texts.tables.rowsOf(table.name)}
        columns=${columns.shown}
        rows=${windows}
        renderCell=${renderCell}
        copyCell=${(row: TableRow, column: GridColumn) => row[column.id] ?? ""}
        sort=${state.sort}
        control=${control}
        onKey=${onKey}
        onOpen=${(cell: GridCell) => editing.session.startCell(cell)}
        editor=${edited && isSameCell(props.active, edited.at) ? props.editor : null}
        rowClass=${editing.rowClass}
        isRowSelected=${editing.isRowSelected}
        onSelectRow=${(index: number, extend: boolean) => editing.session.select(index, extend)}
        onActiveCell=${onCell}
        onSort=${props.onSort}
        onResize=${columns.resize}
        onReorder=${columns.move}
        onColumnMenu=${(column: string, anchor: Element) => onMenu({ column, anchor })}
      >
        ${windows.error ? null : windows.isExact ? texts.tables.noRows : texts.components.loading}
      <//>
      <${ReferencePreview} catalog=${catalog} table=${table} windows=${windows} columns=${columns} pane=${pane} active=${props.active} />
    </div>
  `;
}

function tableCell(
  catalog: DatabaseDescription,
  table: DescribedTable,
  columns: TableColumns,
  row: TableRow,
  { id }: GridColumn,
) {
  const value = row[id];
  const content = cellContent(value, columns.byName.get(id)!);
  const key = value == null ? undefined : foreignKeyOf(table, id);
  const reference = key && referencedRow(catalog, key, row);
  return reference ? html`<a class="cell-link" tabindex="-1" href=${addressOf(reference)}>${content}</a>` : content;
}

function addressBehind(
  catalog: DatabaseDescription,
  table: DescribedTable,
  row: TableRow | undefined,
  column: GridColumn | undefined,
): string | null {
  const key = column && foreignKeyOf(table, column.id);
  const reference = key && row && referencedRow(catalog, key, row);
  return reference ? addressOf(reference) : null;
}

/** True if the rows that an administrator sees and changes here depend on policies that were written for others. */
function isHiddenFromAdministrator(table: DescribedTable, role: string): boolean {
  return role === ADMINISTRATOR && table.lacks_administrator_policy;
}

/** The numbers for a request that is refused. */
const NO_ROWS = { visible: 0, total: 0, is_partial: false };

type AdministratorNoticeProps = { readonly table: DescribedTable; readonly onGranted: () => void };

/** The number of rows that are hidden from administrators, and the policy that shows them. */
function AdministratorNotice({ table, onGranted }: AdministratorNoticeProps) {
  const [isApplying, setApplying] = useState(false);
  const { schema, name } = table;
  const { value } = useLoaded(
    (signal) => explainRequest({ path: tablePath(name), schema, as: { role: ADMINISTRATOR } }, signal),
    [schema, name],
  );
  if (!value) return null;
  const { visible, total, is_partial: isPartial } = value.refusal ? NO_ROWS : value;
  return html`
    <${Notice}>
      <p>${texts.tables.noAdministratorPolicy({ visible, total, isPartial })} <${WhyLink} table=${table} /></p>
      <div class="row"><${Button} size="small" onClick=${() => setApplying(true)}>${texts.tables.applyGrant}<//></div>
    <//>
    ${isApplying && html`<${GrantDialog} table=${name} sql=${allowAdministrators(table)} onClose=${() => setApplying(false)} onGranted=${onGranted} />`}
  `;
}

import { useCallback, useMemo, useState } from "preact/hooks";
import type { SqlColumn, SqlResult, SqlRow } from "#operations/admin-types";
import { DataGrid } from "../components/data-grid.ts";
import type { GridColumn } from "../components/grid-columns.ts";
import { rowsInMemory } from "../components/grid-rows.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

const CHARACTER = 7.5;
const PADDING = 28;
const MIN_WIDTH = 72;
const MAX_WIDTH = 360;
/** The number of rows that determine the width of a column. */
const MEASURED_ROWS = 50;
/** The maximum length of a cell, which shows one line. */
const SHOWN_CHARACTERS = 400;

export function ResultGrid({
  columns,
  rows,
}: {
  readonly columns: readonly SqlColumn[];
  readonly rows: SqlResult["rows"];
}) {
  const [widths, setWidths] = useState<Readonly<Record<string, number>>>({});
  const gridRows = useMemo(() => rowsInMemory(rows), [rows]);
  const measured = useMemo(() => columns.map((column, index) => toGridColumn(column, index, rows)), [columns, rows]);
  const gridColumns = useMemo(
    () => measured.map((column) => ({ ...column, width: widths[column.id] ?? column.width })),
    [measured, widths],
  );
  const resize = useCallback((id: string, width: number) => setWidths((before) => ({ ...before, [id]: width })), []);
  return html`
    <${DataGrid}
      label=${texts.sql.resultGrid}
      columns=${gridColumns}
      rows=${gridRows}
      renderCell=${renderCell}
      copyCell=${copyCell}
      onResize=${resize}
    >
      ${texts.sql.noRows}
    <//>
  `;
}

function renderCell(row: SqlRow, { id }: GridColumn) {
  const cell = row[Number(id)] ?? null;
  if (cell === null) return html`<span class="sql-null">null</span>`;
  return cell.length > SHOWN_CHARACTERS ? `${cell.slice(0, SHOWN_CHARACTERS)}…` : cell;
}

function copyCell(row: SqlRow, { id }: GridColumn): string {
  return row[Number(id)] ?? "";
}

/** Makes a grid column. Columns of a query may have the same name. */
function toGridColumn({ name, type, category }: SqlColumn, index: number, rows: SqlResult["rows"]): GridColumn {
  const lengths = rows.slice(0, MEASURED_ROWS).map((row) => row[index]?.length ?? 4);
  const characters = Math.max(name.length + type.length + 3, ...lengths);
  const width = Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, Math.round(characters * CHARACTER + PADDING)));
  return { id: String(index), title: name, detail: type, width, align: category === "N" ? "end" : "start" };
}

import { Component } from "preact";
import { type Children, html } from "../html.ts";
import { formatCount } from "../texts/format.ts";
import type { GridColumn, PlacedColumn } from "./grid-columns.ts";
import { type CellRange, type GridCell, isWithin } from "./grid-keys.ts";

export type CellRenderer<Row> = (row: Row, column: GridColumn, cell: GridCell) => Children;

type GridRowProps<Row> = {
  readonly gridId: string;
  readonly index: number;
  /** The row; undefined while it is being read. */
  readonly row: Row | undefined;
  readonly top: number;
  readonly width: number;
  readonly columns: readonly PlacedColumn[];
  readonly renderCell: CellRenderer<Row>;
  /** The active column of this row, if the active cell is in it. */
  readonly activeColumn: number | null;
  readonly range: CellRange | null;
  readonly isSelected: boolean | null;
  readonly className: string;
  /** The content that replaces that of the active cell. */
  readonly editor: Children | null;
};

/** A row that is rendered again only when it has changed: scrolling moves the element that contains the rows. */
export class GridRow<Row> extends Component<GridRowProps<Row>> {
  override shouldComponentUpdate(next: GridRowProps<Row>): boolean {
    const before = this.props as Readonly<Record<string, unknown>>;
    return Object.entries(next).some(([name, value]) => !Object.is(before[name], value));
  }

  override render(props: GridRowProps<Row>) {
    const { index, row, top, width, columns, isSelected } = props;
    return html`
      <div
        role="row"
        class=${`grid-row ${row === undefined ? "pending" : ""} ${isSelected ? "selected" : ""} ${props.className}`}
        aria-rowindex=${index + 2}
        aria-selected=${isSelected ?? undefined}
        aria-busy=${row === undefined ? "true" : undefined}
        data-row=${index}
        style=${{ top: `${top}px` }}
      >
        ${isSelected !== null && html`<${RowHeader} index=${index} isSelected=${isSelected} />`}
        <div role="none" class="grid-cells" style=${{ width: `${width}px` }}>
          ${columns.map((placed) => renderPlaced(props, placed))}
        </div>
      </div>
    `;
  }
}

function renderPlaced<Row>(props: GridRowProps<Row>, { column, index, left }: PlacedColumn) {
  const cell = { row: props.index, column: index };
  const isActive = props.activeColumn === index;
  const isEdited = isActive && props.editor !== null;
  const isInRange = props.range !== null && isWithin(props.range, cell);
  return html`
    <div
      key=${column.id}
      id=${cellId(props.gridId, cell)}
      role="gridcell"
      class=${`grid-cell ${column.align ?? "start"} ${isActive ? "active" : ""} ${isInRange ? "in-range" : ""} ${isEdited ? "edited" : ""}`}
      aria-colindex=${index + 1}
      data-column=${index}
      style=${{ left: `${left}px`, width: `${column.width}px` }}
    >
      ${isEdited ? props.editor : props.row !== undefined && props.renderCell(props.row, column, cell)}
    </div>
  `;
}

/** Selects the row by a click; the keyboard does it by Space. */
function RowHeader({ index, isSelected }: { readonly index: number; readonly isSelected: boolean }) {
  return html`
    <div role="rowheader" class="grid-row-header" data-select-row=${index}>
      <span class="grid-check" aria-hidden="true" data-checked=${isSelected}></span>
      <span class="grid-row-number">${formatCount(index + 1)}</span>
    </div>
  `;
}

export function cellId(gridId: string, { row, column }: GridCell): string {
  return `${gridId}-${row}-${column}`;
}

import { useRef, useState } from "preact/hooks";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import type { GridColumn, PlacedColumn } from "./grid-columns.ts";
import { cellId } from "./grid-row.ts";

export type GridSort = {
  readonly column: string;
  readonly descending: boolean;
};

export type HeaderActions = {
  /** Sorts by the column; `additive` keeps the columns that the rows are already sorted by. */
  readonly onSort?: ((column: string, additive: boolean) => void) | undefined;
  readonly onResize?: ((column: string, width: number) => void) | undefined;
  /** Moves the column to the place of another one. */
  readonly onReorder?: ((column: string, place: string) => void) | undefined;
  readonly onColumnMenu?: ((column: string, anchor: Element) => void) | undefined;
};

type GridHeaderProps = HeaderActions & {
  readonly gridId: string;
  readonly columns: readonly PlacedColumn[];
  readonly sort: readonly GridSort[];
  readonly activeColumn: number | null;
  readonly hasRowHeader: boolean;
  readonly width: number;
};

export const MIN_COLUMN_WIDTH = 48;

export function GridHeader(props: GridHeaderProps) {
  const { columns, hasRowHeader, width } = props;
  const [place, setPlace] = useState<string | null>(null);
  return html`
    <div role="row" class="grid-header" aria-rowindex="1">
      ${hasRowHeader && html`<div role="columnheader" class="grid-row-header"><span class="visually-hidden">${texts.grid.rowNumber}</span></div>`}
      <div role="none" class="grid-cells" style=${{ width: `${width}px` }}>
        ${columns.map(
          (placed) =>
            html`<${HeaderCell} key=${placed.column.id} ...${props} placed=${placed} isPlace=${place === placed.column.id} onPlace=${setPlace} />`,
        )}
      </div>
    </div>
  `;
}

type HeaderCellProps = GridHeaderProps & {
  readonly placed: PlacedColumn;
  readonly isPlace: boolean;
  readonly onPlace: (column: string | null) => void;
};

function HeaderCell(props: HeaderCellProps) {
  const { placed, gridId, sort, activeColumn, isPlace, onColumnMenu } = props;
  const { column, index, left } = placed;
  const rank = sort.findIndex((each) => each.column === column.id);
  const drag = useColumnDrag(props);
  return html`
    <div
      id=${cellId(gridId, { row: -1, column: index })}
      role="columnheader"
      class=${`grid-head-cell ${column.align ?? "start"} ${activeColumn === index ? "active" : ""} ${isPlace ? "place" : ""}`}
      aria-colindex=${index + 1}
      aria-sort=${rank < 0 ? undefined : sort[rank]!.descending ? "descending" : "ascending"}
      data-header=${index}
      data-id=${column.id}
      style=${{ left: `${left}px`, width: `${column.width}px` }}
      title=${column.detail ? `${column.title} · ${column.detail}` : column.title}
      onPointerDown=${drag}
    >
      <span class="grid-title">${column.title}</span>
      ${column.detail && html`<span class="grid-detail">${column.detail}</span>`}
      ${rank >= 0 && html`<span class="grid-sort" aria-hidden="true">${sort[rank]!.descending ? "↓" : "↑"}${sort.length > 1 ? rank + 1 : ""}</span>`}
      ${
        onColumnMenu &&
        html`<span class="grid-menu-mark" aria-hidden="true" onClick=${(event: MouseEvent) => {
          event.stopPropagation();
          onColumnMenu(column.id, event.currentTarget as Element);
        }}>⋮</span>`
      }
      ${props.onResize && html`<${ResizeHandle} column=${column} onResize=${props.onResize} />`}
    </div>
  `;
}

const DRAG_PIXELS = 6;

/** A click sorts; a drag moves the column. */
function useColumnDrag({ placed, onSort, onReorder, onPlace }: HeaderCellProps) {
  return (event: PointerEvent) => {
    if (event.button !== 0 || (event.target as Element).closest(".grid-resize, .grid-menu-mark")) return;
    const header = event.currentTarget as HTMLElement;
    const { id } = placed.column;
    let place: string | null = null;
    let isDragged = false;
    const move = ({ clientX, clientY }: PointerEvent) => {
      isDragged ||= Math.abs(clientX - event.clientX) > DRAG_PIXELS;
      if (!isDragged || !onReorder) return;
      const below = document.elementFromPoint(clientX, clientY)?.closest<HTMLElement>("[data-header]");
      place = below && header.parentElement!.contains(below) ? below.dataset.id! : null;
      onPlace(place === id ? null : place);
    };
    const end = (final: PointerEvent) => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
      window.removeEventListener("pointercancel", end);
      onPlace(null);
      if (final.type === "pointercancel") return;
      if (!isDragged) {
        if (placed.column.isSortable !== false) onSort?.(id, final.shiftKey);
      } else if (place !== null && place !== id) onReorder?.(id, place);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
    window.addEventListener("pointercancel", end);
  };
}

type ResizeHandleProps = {
  readonly column: GridColumn;
  readonly onResize: (column: string, width: number) => void;
};

function ResizeHandle({ column, onResize }: ResizeHandleProps) {
  const start = useRef<{ readonly x: number; readonly width: number } | null>(null);
  const begin = (event: PointerEvent) => {
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    start.current = { x: event.clientX, width: column.width };
  };
  const move = ({ clientX }: PointerEvent) => {
    if (start.current) onResize(column.id, Math.max(MIN_COLUMN_WIDTH, start.current.width + clientX - start.current.x));
  };
  const end = () => {
    start.current = null;
  };
  return html`<span class="grid-resize" aria-hidden="true" onPointerDown=${begin} onPointerMove=${move} onPointerUp=${end} onPointerCancel=${end}></span>`;
}

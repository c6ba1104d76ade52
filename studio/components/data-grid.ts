import { useEffect, useId, useLayoutEffect, useMemo } from "preact/hooks";
import { type Children, html } from "../html.ts";
import { formatCount } from "../texts/format.ts";
import { columnsWithin, type PlacedColumn, placeColumns, widthOf } from "./grid-columns.ts";
import { type GridCursor, type GridCursorOptions, useGridCursor } from "./grid-cursor.ts";
import { GridHeader, type GridSort, type HeaderActions } from "./grid-header.ts";
import { rangeBetween } from "./grid-keys.ts";
import { type CellRenderer, cellId, GridRow } from "./grid-row.ts";
import { useGridRows } from "./grid-rows.ts";
import { type GridView, HEADER_HEIGHT, ROW_HEIGHT, useGridScroll } from "./grid-scroll.ts";

const CHECK_WIDTH = 32;
const DIGIT_WIDTH = 7;
/** The minimum width of a grid that shows the numbers of rows. */
const MIN_WIDTH_FOR_NUMBERS = 500;
/** The number of scrolled rows after which rows get new places within the element that contains and moves them. */
const ROWS_PER_ORIGIN = 1024;

type DataGridProps<Row> = GridCursorOptions<Row> & {
  /** The name of the grid for screen readers. */
  readonly label: string;
  /** Renders a cell. Keep the function the same between renderings, so that unchanged rows are not rendered again. */
  readonly renderCell: CellRenderer<Row>;
  readonly sort?: readonly GridSort[];
  readonly rowClass?: (row: Row | undefined, index: number) => string;
  /** With this and `onSelectRow` the grid has a column that selects rows, by a click or by Space. */
  readonly isRowSelected?: (row: Row, index: number) => boolean;
  /** The content of the active cell while it is edited; null if it is not. */
  readonly editor?: Children | null;
  /** The content that is shown if there are no rows. */
  readonly children?: Children;
};

const NO_SORT: readonly GridSort[] = [];

/** A grid of any number of rows, of which only those in view are in the document. */
export function DataGrid<Row>(props: DataGridProps<Row>) {
  const { rows, columns, label } = props;
  const gridId = useId();
  useGridRows(rows);
  const placed = useMemo(() => placeColumns(columns), [columns]);
  const width = useMemo(() => widthOf(columns), [columns]);
  const scroll = useGridScroll(rows.rowCount * ROW_HEIGHT);
  const { view } = scroll;
  const startWidth = props.isRowSelected ? rowHeaderWidth(rows.rowCount, view.width) : 0;
  const cursor = useGridCursor(props, placed, scroll, startWidth);
  const [first, last] = rowsInView(view.position, view.height, rows.rowCount);
  useEffect(() => rows.show(first, last), [rows, first, last]);
  useLayoutEffect(() => scroll.moveLeft(view.left), [width]);
  const seen = useSeenColumns(placed, view.left, view.width - startWidth);
  const extent = { width: `${width + startWidth}px`, height: `${HEADER_HEIGHT + scroll.elementHeight}px` };
  return html`
    <div
      ref=${scroll.element}
      class="grid"
      role="grid"
      tabindex="0"
      aria-label=${label}
      aria-rowcount=${rows.isExact ? rows.rowCount + 1 : -1}
      aria-colcount=${columns.length}
      aria-multiselectable=${props.isRowSelected ? "true" : undefined}
      aria-activedescendant=${activeCellId(gridId, cursor, seen, first, last)}
      onScroll=${scroll.onScroll}
      onWheel=${scroll.onWheel}
      ...${cursor.listeners}
    >
      <div role="none" style=${extent}>
        <div role="none" class="grid-layer" style=${layerStyle(view, startWidth)}>
          <${GridHeader}
            ...${headerProps(props)}
            ...${{ gridId, width, columns: seen, hasRowHeader: startWidth > 0 }}
            activeColumn=${cursor.active?.row === -1 ? cursor.active.column : null}
          />
          <${GridBody} ...${{ props, cursor, gridId, first, last, seen, width }} position=${view.position} />
          ${rows.rowCount === 0 && html`<div role="none" class="grid-empty">${props.children}</div>`}
        </div>
      </div>
    </div>
  `;
}

function headerProps<Row>(props: DataGridProps<Row>): HeaderActions & { readonly sort: readonly GridSort[] } {
  const { onSort, onResize, onReorder, onColumnMenu, sort = NO_SORT } = props;
  return { onSort, onResize, onReorder, onColumnMenu, sort };
}

function rowHeaderWidth(rowCount: number, viewWidth: number): number {
  const hasNumbers = viewWidth >= MIN_WIDTH_FOR_NUMBERS;
  return CHECK_WIDTH + (hasNumbers ? 4 + formatCount(rowCount).length * DIGIT_WIDTH : 0);
}

function layerStyle({ width, height, left }: GridView, startWidth: number): Readonly<Record<string, string>> {
  return {
    width: `${width}px`,
    height: `${height + HEADER_HEIGHT}px`,
    "--grid-left": `${-left}px`,
    "--grid-start": `${startWidth}px`,
  };
}

/** Returns the id of the active cell, if it is in the document. */
function activeCellId(
  gridId: string,
  { active }: GridCursor,
  seen: readonly PlacedColumn[],
  first: number,
  last: number,
): string | undefined {
  const isRendered =
    active &&
    (active.row === -1 || (active.row >= first && active.row <= last)) &&
    seen.some(({ index }) => index === active.column);
  return isRendered ? cellId(gridId, active) : undefined;
}

type BodyProps<Row> = {
  readonly props: DataGridProps<Row>;
  readonly cursor: GridCursor;
  readonly gridId: string;
  readonly first: number;
  readonly last: number;
  readonly position: number;
  readonly seen: readonly PlacedColumn[];
  readonly width: number;
};

function GridBody<Row>({ props, cursor, gridId, first, last, position, seen, width }: BodyProps<Row>) {
  const { rows, isRowSelected, rowClass, editor = null, renderCell } = props;
  const { active, anchor } = cursor;
  const origin = Math.floor(first / ROWS_PER_ORIGIN) * ROWS_PER_ORIGIN;
  const range = useMemo(
    () => (active && anchor && active.row >= 0 ? rangeBetween(active, anchor) : null),
    [active, anchor],
  );
  const isRange = range !== null && (range.from.row !== range.to.row || range.from.column !== range.to.column);
  const indices = Array.from({ length: last - first + 1 }, (_, offset) => first + offset);
  return html`
    <div role="rowgroup" class="grid-body" style=${{ transform: `translateY(${origin * ROW_HEIGHT - position}px)` }}>
      ${indices.map((index) => {
        const row = rows.rowAt(index);
        const isActive = active?.row === index;
        return html`<${GridRow}
          key=${index}
          gridId=${gridId}
          index=${index}
          row=${row}
          top=${(index - origin) * ROW_HEIGHT}
          width=${width}
          columns=${seen}
          renderCell=${renderCell}
          activeColumn=${isActive ? active.column : null}
          range=${isRange && index >= range.from.row && index <= range.to.row ? range : null}
          isSelected=${isRowSelected ? row !== undefined && isRowSelected(row, index) : null}
          className=${rowClass?.(row, index) ?? ""}
          editor=${isActive ? editor : null}
        />`;
      })}
    </div>
  `;
}

function rowsInView(position: number, height: number, rowCount: number): readonly [first: number, last: number] {
  const first = Math.floor(position / ROW_HEIGHT);
  return [first, Math.min(rowCount - 1, Math.floor((position + height - 1) / ROW_HEIGHT))];
}

/** Returns the same list as before while the same columns are visible, so that rows are not rendered again. */
function useSeenColumns(placed: readonly PlacedColumn[], left: number, width: number): readonly PlacedColumn[] {
  const seen = columnsWithin(placed, left, width);
  return useMemo(() => seen, [placed, seen[0]?.index, seen.length]);
}

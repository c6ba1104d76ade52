import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { GridColumn, PlacedColumn } from "./grid-columns.ts";
import { type HeaderActions, MIN_COLUMN_WIDTH } from "./grid-header.ts";
import { cellAfterKey, type GridCell, rangeBetween } from "./grid-keys.ts";
import type { GridRows } from "./grid-rows.ts";
import { ROW_HEIGHT } from "./grid-scroll.ts";
import { writeTabSeparated } from "./tab-separated.ts";

/** The operations of a grid for its owner. */
export type GridControl = {
  focus(): void;
  /** Moves the active cell and scrolls to it. */
  moveTo(cell: GridCell): void;
  activeCell(): GridCell | null;
};

export type GridCursorOptions<Row> = HeaderActions & {
  readonly columns: readonly GridColumn[];
  readonly rows: GridRows<Row>;
  /** Returns the text of a cell for the clipboard. */
  readonly copyCell: (row: Row, column: GridColumn) => string;
  /** Called by Enter or a double click. */
  readonly onOpen?: (cell: GridCell) => void;
  /** Called before the grid handles a key; returns true if the key is handled. */
  readonly onKey?: (event: KeyboardEvent, cell: GridCell) => boolean;
  readonly onActiveCell?: (cell: GridCell | null) => void;
  readonly onSelectRow?: (index: number, extend: boolean) => void;
  readonly control?: { current: GridControl | null };
};

type GridScroll = {
  readonly element: { readonly current: HTMLDivElement | null };
  readonly view: { readonly position: number; readonly left: number; readonly width: number; readonly height: number };
  moveTo(position: number): void;
  moveLeft(left: number): void;
};

/** The active cell, and the other corner of the range of cells. */
export type GridCursor = {
  readonly active: GridCell | null;
  readonly anchor: GridCell | null;
  readonly listeners: Readonly<Record<string, (event: never) => void>>;
};

type CursorState = Pick<GridCursor, "active" | "anchor">;

type CursorContext<Row> = CursorState & {
  readonly options: GridCursorOptions<Row>;
  readonly placed: readonly PlacedColumn[];
  readonly scroll: GridScroll;
  readonly startWidth: number;
  readonly move: (cell: GridCell, extend: boolean) => void;
};

export function useGridCursor<Row>(
  options: GridCursorOptions<Row>,
  placed: readonly PlacedColumn[],
  scroll: GridScroll,
  startWidth: number,
): GridCursor {
  const [state, setState] = useState<CursorState>({ active: null, anchor: null });
  const context = useRef<CursorContext<Row>>(null as never);
  const move = (active: GridCell, extend: boolean) => {
    const anchor = extend ? (context.current.anchor ?? active) : active;
    context.current = { ...context.current, active, anchor };
    setState({ active, anchor });
    context.current.options.onActiveCell?.(active);
  };
  context.current = { ...state, options, placed, scroll, startWidth, move };
  const listeners = useMemo(() => makeListeners(() => context.current), []);
  const { control, rows } = options;
  // The grid shows other rows from their start.
  const shownRows = useRef(rows);
  useEffect(() => {
    if (shownRows.current === rows) return;
    shownRows.current = rows;
    scroll.moveTo(0);
    const { active } = context.current;
    if (active && active.row > 0) move({ row: 0, column: active.column }, false);
  }, [rows]);
  useEffect(() => {
    if (!control) return undefined;
    control.current = makeControl(() => context.current);
    return () => {
      control.current = null;
    };
  }, [control]);
  return { ...state, listeners };
}

function makeControl<Row>(context: () => CursorContext<Row>): GridControl {
  return {
    focus: () => context().scroll.element.current?.focus({ preventScroll: true }),
    moveTo: (cell) => {
      context().move(cell, false);
      reveal(context(), cell);
    },
    activeCell: () => context().active,
  };
}

function makeListeners<Row>(context: () => CursorContext<Row>): GridCursor["listeners"] {
  const isOwn = (event: Event) => event.target === context().scroll.element.current;
  return {
    onKeyDown: (event: KeyboardEvent) => {
      if (isOwn(event) && handleKey(context(), event)) event.preventDefault();
    },
    onFocus: () => {
      const { active, move, options } = context();
      if (active === null && options.columns.length > 0)
        move({ row: options.rows.rowCount > 0 ? 0 : -1, column: 0 }, false);
    },
    onPointerDown: (event: PointerEvent) => selectByPointer(context, event),
    onDblClick: (event: MouseEvent) => {
      const cell = cellOf(event);
      if (cell) context().options.onOpen?.(cell);
    },
    onCopy: (event: ClipboardEvent) => {
      const text = isOwn(event) ? textOfRange(context()) : null;
      if (text === null) return;
      event.clipboardData!.setData("text/plain", text);
      event.preventDefault();
    },
  };
}

/** Handles a key of the grid; returns true if it is one. */
function handleKey<Row>(context: CursorContext<Row>, event: KeyboardEvent): boolean {
  const { active, options, scroll, move } = context;
  if (active === null) return false;
  if (options.onKey?.(event, active)) return true;
  if (active.row < 0 && handleHeaderKey(context, active, event)) return true;
  const size = {
    rows: options.rows.rowCount,
    columns: options.columns.length,
    page: Math.max(1, Math.floor(scroll.view.height / ROW_HEIGHT) - 1),
  };
  const next = cellAfterKey(event, active, size);
  if (next) {
    move(next, event.shiftKey && next.row >= 0);
    reveal(context, next);
    return true;
  }
  if (event.key === "Enter" && active.row >= 0 && options.onOpen) options.onOpen(active);
  else if (event.key === " " && active.row >= 0 && options.onSelectRow) options.onSelectRow(active.row, event.shiftKey);
  else if (event.key === "Escape") move(active, false);
  else return false;
  return true;
}

const RESIZE_STEP = 16;

function handleHeaderKey<Row>(
  { options, placed, scroll }: CursorContext<Row>,
  { column: index }: GridCell,
  event: KeyboardEvent,
): boolean {
  const { column } = placed[index]!;
  const direction = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
  if (event.altKey && direction !== 0) {
    const neighbour = placed[index + direction]?.column;
    if (!event.shiftKey)
      options.onResize?.(column.id, Math.max(MIN_COLUMN_WIDTH, column.width + direction * RESIZE_STEP));
    else if (neighbour) options.onReorder?.(column.id, neighbour.id);
    return true;
  }
  if (
    event.key === "ContextMenu" ||
    (event.key === "F10" && event.shiftKey) ||
    (event.key === "ArrowDown" && event.altKey)
  ) {
    const anchor = scroll.element.current!.querySelector(`[data-header="${index}"]`);
    if (anchor) options.onColumnMenu?.(column.id, anchor);
    return true;
  }
  if (event.key !== "Enter" && event.key !== " ") return false;
  if (column.isSortable !== false) options.onSort?.(column.id, event.shiftKey);
  return true;
}

/** Scrolls no further than needed to show the cell. */
function reveal<Row>({ placed, scroll, startWidth }: CursorContext<Row>, { row, column }: GridCell): void {
  const { position, left, width, height } = scroll.view;
  const top = row * ROW_HEIGHT;
  if (row >= 0 && top < position) scroll.moveTo(top);
  else if (row >= 0 && top + ROW_HEIGHT > position + height) scroll.moveTo(top + ROW_HEIGHT - height);
  const cell = placed[column];
  if (!cell) return;
  const end = cell.left + cell.column.width;
  const room = width - startWidth;
  if (cell.left < left || cell.column.width > room) scroll.moveLeft(cell.left);
  else if (end > left + room) scroll.moveLeft(end - room);
}

function cellOf(event: Event): GridCell | null {
  const cell = (event.target as Element).closest<HTMLElement>("[data-column]");
  const row = cell?.closest<HTMLElement>("[data-row]");
  return cell && row ? { row: Number(row.dataset.row), column: Number(cell.dataset.column) } : null;
}

/** Selects cells by pointer: a press selects a cell, with Shift a range; a drag selects a range. A press on a row's number selects the row. */
function selectByPointer<Row>(context: () => CursorContext<Row>, event: PointerEvent): void {
  if (event.button !== 0) return;
  const { options, move } = context();
  const header = (event.target as Element).closest<HTMLElement>("[data-select-row]");
  if (header) options.onSelectRow?.(Number(header.dataset.selectRow), event.shiftKey);
  const cell = cellOf(event);
  if (!cell || (event.target as Element).closest(".edited, a, button, input")) return;
  move(cell, event.shiftKey);
  if (event.shiftKey) event.preventDefault();
  const element = context().scroll.element.current!;
  element.focus({ preventScroll: true });
  if (event.pointerType === "touch") return;
  const drag = (moved: PointerEvent) => {
    const other = cellOf(moved);
    const { active } = context();
    if (other && (other.row !== active?.row || other.column !== active.column)) context().move(other, true);
  };
  const end = () => {
    element.removeEventListener("pointermove", drag);
    window.removeEventListener("pointerup", end);
    window.removeEventListener("pointercancel", end);
  };
  element.addEventListener("pointermove", drag);
  window.addEventListener("pointerup", end);
  window.addEventListener("pointercancel", end);
}

/** Returns the text of the range for the clipboard; the text of one cell is not quoted. */
function textOfRange<Row>({ active, anchor, options }: CursorContext<Row>): string | null {
  if (!active || active.row < 0) return null;
  const { from, to } = rangeBetween(active, anchor ?? active);
  const columns = options.columns.slice(from.column, to.column + 1);
  const lines: string[][] = [];
  for (let index = from.row; index <= to.row; index += 1) {
    const row = options.rows.rowAt(index);
    if (row !== undefined) lines.push(columns.map((column) => options.copyCell(row, column)));
  }
  const isOne = lines.length === 1 && columns.length === 1;
  return isOne ? lines[0]![0]! : writeTabSeparated(lines);
}

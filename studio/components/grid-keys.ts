/** A cell; the header has row -1. */
export type GridCell = {
  readonly row: number;
  readonly column: number;
};

type GridSize = {
  readonly rows: number;
  readonly columns: number;
  /** The number of rows that fit into the view. */
  readonly page: number;
};

type Move = (cell: GridCell, size: GridSize) => GridCell;

const MOVES: Readonly<Record<string, Move>> = {
  ArrowUp: ({ row, column }) => ({ row: row - 1, column }),
  ArrowDown: ({ row, column }) => ({ row: row + 1, column }),
  ArrowLeft: ({ row, column }) => ({ row, column: column - 1 }),
  ArrowRight: ({ row, column }) => ({ row, column: column + 1 }),
  PageUp: ({ row, column }, { page }) => ({ row: Math.max(0, row - page), column }),
  PageDown: ({ row, column }, { page }) => ({ row: row + page, column }),
  Home: ({ row }) => ({ row, column: 0 }),
  End: ({ row }, { columns }) => ({ row, column: columns - 1 }),
  "Ctrl+Home": () => ({ row: 0, column: 0 }),
  "Ctrl+End": (_cell, { rows, columns }) => ({ row: rows - 1, column: columns - 1 }),
  "Ctrl+ArrowUp": ({ column }) => ({ row: 0, column }),
  "Ctrl+ArrowDown": ({ column }, { rows }) => ({ row: rows - 1, column }),
  "Ctrl+ArrowLeft": ({ row }) => ({ row, column: 0 }),
  "Ctrl+ArrowRight": ({ row }, { columns }) => ({ row, column: columns - 1 }),
};

type KeyPress = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">;

/** Returns the cell that a key moves to; null for other keys. */
export function cellAfterKey(
  { key, ctrlKey, metaKey, altKey }: KeyPress,
  cell: GridCell,
  size: GridSize,
): GridCell | null {
  const move = altKey ? undefined : MOVES[ctrlKey || metaKey ? `Ctrl+${key}` : key];
  if (!move) return null;
  const { row, column } = move(cell, size);
  return {
    row: Math.min(Math.max(-1, row), size.rows - 1),
    column: Math.min(Math.max(0, column), size.columns - 1),
  };
}

/** The corners of a range of cells. */
export type CellRange = {
  readonly from: GridCell;
  readonly to: GridCell;
};

export function rangeBetween(one: GridCell, other: GridCell): CellRange {
  return {
    from: { row: Math.max(0, Math.min(one.row, other.row)), column: Math.min(one.column, other.column) },
    to: { row: Math.max(one.row, other.row), column: Math.max(one.column, other.column) },
  };
}

export function isWithin({ from, to }: CellRange, { row, column }: GridCell): boolean {
  return row >= from.row && row <= to.row && column >= from.column && column <= to.column;
}

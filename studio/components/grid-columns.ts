export type GridColumn = {
  readonly id: string;
  readonly title: string;
  readonly width: number;
  /** The alignment; numbers are aligned at the end. */
  readonly align?: "start" | "end";
  /** A second, smaller text of the header. */
  readonly detail?: string;
  readonly isSortable?: boolean;
};

export type PlacedColumn = {
  readonly column: GridColumn;
  readonly index: number;
  readonly left: number;
};

export function placeColumns(columns: readonly GridColumn[]): PlacedColumn[] {
  let left = 0;
  return columns.map((column, index) => {
    const placed = { column, index, left };
    left += column.width;
    return placed;
  });
}

export function widthOf(columns: readonly GridColumn[]): number {
  return columns.reduce((sum, { width }) => sum + width, 0);
}

/** Returns the visible columns. */
export function columnsWithin(placed: readonly PlacedColumn[], left: number, width: number): PlacedColumn[] {
  return placed.filter((each) => each.left < left + width && each.left + each.column.width > left);
}

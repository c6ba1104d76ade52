import { useEffect, useState } from "preact/hooks";

/** Rows that a grid shows: in memory, or read shortly before they become visible. */
export interface GridRows<Row> {
  /** The number of rows; an estimate while `isExact` is false. */
  readonly rowCount: number;
  readonly isExact: boolean;
  /** Returns the row; undefined if it is not in memory. */
  rowAt(index: number): Row | undefined;
  /** Sets the visible rows, so that these and their neighbours are read. */
  show(first: number, last: number): void;
  /** Calls the listener when rows or their number have changed. Returns the function that unsubscribes. */
  subscribe(listener: () => void): () => void;
}

export function rowsInMemory<Row>(rows: readonly Row[]): GridRows<Row> {
  return {
    rowCount: rows.length,
    isExact: true,
    rowAt: (index) => rows[index],
    show: () => {},
    subscribe: () => () => {},
  };
}

/** Renders the component again when rows have arrived or changed. */
export function useGridRows<Row>(rows: GridRows<Row>): void {
  const [, setRound] = useState(0);
  useEffect(() => rows.subscribe(() => setRound((round) => round + 1)), [rows]);
}

/** Matches the start of a cell that a spreadsheet takes for a formula. */
const FORMULA_START = /^[=+\-@\t\r]/;
/** The white space includes the byte order mark. */
const NEEDS_QUOTES = /[",;\t\r\n]|^$|^\s|\s$/;

type CsvStyle = {
  /** True if cells that begin like a formula get an apostrophe, so that a spreadsheet shows them as text. This changes the values. */
  readonly forSpreadsheets: boolean;
};

/** Writes one line with its end. Null is an empty cell, the empty string is `""`. */
export function writeCsvRecord(cells: readonly (string | null)[], { forSpreadsheets }: CsvStyle): string {
  const texts = cells.map((cell) => (cell === null ? "" : quoteCell(forSpreadsheets ? protectFormula(cell) : cell)));
  return `${texts.join(",")}\r\n`;
}

function protectFormula(cell: string): string {
  return FORMULA_START.test(cell) ? `'${cell}` : cell;
}

function quoteCell(cell: string): string {
  return NEEDS_QUOTES.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

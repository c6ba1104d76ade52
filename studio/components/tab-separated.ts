/** Writes lines of cells as spreadsheets paste them: tabs between cells, and quotes around cells with a tab, a line break or a quote. */
export function writeTabSeparated(lines: readonly (readonly string[])[]): string {
  return lines.map((cells) => cells.map(quoteCell).join("\t")).join("\n");
}

function quoteCell(text: string): string {
  return /[\t\n\r"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

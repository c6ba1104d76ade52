/** Lines of cells as spreadsheets paste them: cells between tabs, those with a tab, a line break or a quote in quotes. */
export function writeTabSeparated(lines: readonly (readonly string[])[]): string {
  return lines.map((cells) => cells.map(quoteCell).join("\t")).join("\n");
}

function quoteCell(text: string): string {
  return /[\t\n\r"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

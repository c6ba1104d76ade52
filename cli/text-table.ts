/** A table with the records' field names as header. */
export function formatRecords(records: readonly Readonly<Record<string, unknown>>[]): string {
  return formatColumns([
    Object.keys(records[0] ?? {}),
    ...records.map((record) => Object.values(record).map(formatCell)),
  ]);
}

export function formatCell(value: unknown): string {
  if (value === null) return "";
  if (value instanceof Date) return value.toISOString();
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Aligns cells in columns. */
export function formatColumns(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines.map((line) => padCells(line, widths)).join("\n");
}

function padCells(line: readonly string[], widths: readonly number[]): string {
  return line
    .map((cell, column) => cell.padEnd(widths[column]!))
    .join("   ")
    .trimEnd();
}

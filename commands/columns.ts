/** Records of one kind below the names of their fields. */
export function tabulated(records: readonly Readonly<Record<string, unknown>>[]): string {
  return inColumns([Object.keys(records[0] ?? {}), ...records.map((record) => Object.values(record).map(cellOf))]);
}

export function cellOf(value: unknown): string {
  if (value === null) return "";
  if (value instanceof Date) return value.toISOString();
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Lines of cells, one column below the other. */
export function inColumns(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines.map((line) => spread(line, widths)).join("\n");
}

function spread(line: readonly string[], widths: readonly number[]): string {
  return line
    .map((cell, column) => cell.padEnd(widths[column]!))
    .join("   ")
    .trimEnd();
}

import type { SqlColumn, SqlResult } from "#operations/admin-types";
import { writeTabSeparated } from "../components/tab-separated.ts";
import { writeCsvRecord } from "../tables/transfer/csv-writer.ts";

type ResultRows = Pick<SqlResult, "columns" | "rows">;

const JSON_TYPES = /^jsonb?$/;
/** Matches Postgres's text of a number that is also valid in JSON. */
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

export function writeResultCsv({ columns, rows }: ResultRows, forSpreadsheets: boolean): string {
  const head = (columns ?? []).map(({ name }) => name);
  return [head, ...rows].map((cells) => writeCsvRecord(cells, { forSpreadsheets })).join("");
}

/** Writes one object for each row. Numbers keep all digits, because their text is the value; values of type json are unchanged. */
export function writeResultJson({ columns, rows }: ResultRows): string {
  const names = uniqueNames(columns ?? []);
  const objects = rows.map((row) => {
    const members = row.map((cell, index) => `${JSON.stringify(names[index])}: ${writeValue(cell, columns![index]!)}`);
    return `  { ${members.join(", ")} }`;
  });
  return `[\n${objects.join(",\n")}\n]\n`;
}

/** Writes the text for the clipboard. */
export function writeResultText({ columns, rows }: ResultRows): string {
  const head = (columns ?? []).map(({ name }) => name);
  return writeTabSeparated([head, ...rows.map((cells) => cells.map((cell) => cell ?? ""))]);
}

function writeValue(cell: string | null, { type, category }: SqlColumn): string {
  if (cell === null) return "null";
  if (JSON_TYPES.test(type)) return cell;
  if (category === "B") return cell === "t" ? "true" : "false";
  return category === "N" && JSON_NUMBER.test(cell) ? cell : JSON.stringify(cell);
}

/** Makes names unique: columns of a query may have the same name, members of an object may not. */
function uniqueNames(columns: readonly SqlColumn[]): string[] {
  const used = new Set<string>();
  return columns.map(({ name }) => {
    let unique = name;
    for (let number = 2; used.has(unique); number++) unique = `${name}_${number}`;
    used.add(unique);
    return unique;
  });
}

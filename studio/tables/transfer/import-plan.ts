import { parseExactly } from "../../api/exact-json.ts";
import { emptyNamedValues } from "../../api/named-values.ts";
import { type ArrayElement, writeArrayLiteral } from "../edit/array-literal.ts";
import { columnOf, type EditedColumn, type EditedTable, isRequired, isWritable } from "../edit/edited-table.ts";
import type { RowValues } from "../edit/row-requests.ts";
import { findValueProblem, valueKind } from "../edit/value-kind.ts";
import type { InputProblem } from "../edit/value-texts.ts";
import { type CsvDelimiter, CsvReader, detectDelimiter } from "./csv-reader.ts";
import { type JsonElement, JsonElementReader } from "./json-elements.ts";

/** A record of a file, by the names in the file; JSON values are not converted yet. */
export type ImportRecord = { readonly line: number; readonly values: Readonly<Record<string, unknown>> };

type ImportFormat = "csv" | "json";

export type ImportPlan = {
  readonly table: EditedTable;
  readonly format: ImportFormat;
  /** The table column for each name in the file; null leaves it out. */
  readonly mapping: Readonly<Record<string, string | null>>;
  /** The value of an empty cell in CSV. */
  readonly emptyCells: "null" | "default" | "text";
};

/** A row to insert, with its line in the file. */
export type ImportRow = { readonly line: number; readonly values: RowValues };

export type RecordProblem = {
  readonly line: number;
  readonly column: string | null;
  readonly problem: InputProblem;
};

/** Reads the records of a CSV or JSON file in pieces. */
export type RecordReader = {
  read(piece: string): readonly ImportRecord[];
  end(): readonly ImportRecord[];
};

/** The name of cells beyond the header. */
const SURPLUS = "\u0000surplus";

/** Reads CSV; its first record has the names. */
export class CsvRecordReader implements RecordReader {
  #reader: CsvReader | null = null;
  readonly #delimiter: CsvDelimiter | null;
  #names: readonly string[] | null = null;

  constructor(delimiter: CsvDelimiter | null = null) {
    this.#delimiter = delimiter;
  }

  /** The names; null before the first record. */
  get names(): readonly string[] | null {
    return this.#names;
  }

  read(piece: string): readonly ImportRecord[] {
    this.#reader ??= new CsvReader(this.#delimiter ?? detectDelimiter(piece));
    return this.#reader.read(piece).flatMap((record) => this.#toRecord(record));
  }

  end(): readonly ImportRecord[] {
    return (this.#reader?.end() ?? []).flatMap((record) => this.#toRecord(record));
  }

  #toRecord({ line, cells }: { line: number; cells: readonly (string | null)[] }): ImportRecord[] {
    const names = this.#names;
    if (names === null) {
      const found = cells.map((cell, at) => cell?.trim() || `column ${at + 1}`);
      this.#names = found.map((name, at) => (found.indexOf(name) < at ? `${name} (${at + 1})` : name));
      return [];
    }
    const isBlank = cells.length === 1 && cells[0] === null && names.length > 1;
    if (isBlank) return [];
    const values: Record<string, unknown> = Object.fromEntries(names.map((name, at) => [name, cells[at] ?? null]));
    if (cells.length > names.length) values[SURPLUS] = true;
    return [{ line, values }];
  }
}

/** Reads an array of objects. */
export class JsonRecordReader implements RecordReader {
  readonly #reader = new JsonElementReader();

  read(piece: string): readonly ImportRecord[] {
    return this.#reader.read(piece).map(toRecord);
  }

  end(): readonly ImportRecord[] {
    this.#reader.end();
    return [];
  }
}

const NO_OBJECT = "\u0000noObject";

function toRecord({ line, text }: JsonElement): ImportRecord {
  try {
    const value = parseExactly(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return { line, values: isObject ? (value as Record<string, unknown>) : { [NO_OBJECT]: true } };
  } catch {
    return { line, values: { [NO_OBJECT]: true } };
  }
}

/** Maps columns of the same names, then names that differ only in case, spaces and underscores. */
export function proposeMapping(table: EditedTable, names: readonly string[]): Record<string, string | null> {
  const columns = table.columns.filter(isWritable).map(({ name }) => name);
  const simplify = (name: string) => name.toLowerCase().replace(/[\s_-]+/g, "");
  const free = new Set(columns);
  const mapping = emptyNamedValues<string | null>();
  const take = (name: string, column: string | undefined) => {
    if (column === undefined) return;
    mapping[name] = column;
    free.delete(column);
  };
  for (const name of names) take(name, free.has(name) ? name : undefined);
  for (const name of names.filter((each) => !Object.hasOwn(mapping, each)))
    take(
      name,
      [...free].find((column) => simplify(column) === simplify(name)),
    );
  return Object.fromEntries(names.map((name) => [name, mapping[name] ?? null]));
}

/** Returns the row of a record, or the problems that prevent its insert. */
export function convertRecord(plan: ImportPlan, { line, values }: ImportRecord): ImportRow | readonly RecordProblem[] {
  if (values[NO_OBJECT]) return [{ line, column: null, problem: { problem: "noObject" } }];
  if (values[SURPLUS]) return [{ line, column: null, problem: { problem: "tooManyCells" } }];
  const row = emptyNamedValues<string | null>();
  const problems: RecordProblem[] = [];
  for (const [name, target] of Object.entries(plan.mapping)) {
    if (target === null || !Object.hasOwn(values, name)) continue;
    const column = columnOf(plan.table, target);
    const value = plan.format === "csv" ? cellValue(values[name], plan) : jsonValue(values[name], column);
    if (value === undefined) continue;
    const problem = problemOf(value, column);
    if (problem) problems.push({ line, column: target, problem });
    else row[target] = value as string | null;
  }
  const missing = plan.table.columns.filter((column) => isRequired(column) && !Object.hasOwn(row, column.name));
  const reported = new Set(problems.map(({ column }) => column));
  for (const { name } of missing)
    if (!reported.has(name)) problems.push({ line, column: name, problem: { problem: "required" } });
  return problems.length > 0 ? problems : { line, values: row };
}

function problemOf(value: string | null | typeof NO_TEXT, column: EditedColumn): InputProblem | null {
  if (value === NO_TEXT) return { problem: "structure" };
  if (value === null) return column.nullable ? null : { problem: "required" };
  return findValueProblem(value, column);
}

const NO_TEXT = Symbol("no text");

/** Returns undefined for the default of the column. */
function cellValue(cell: unknown, { emptyCells }: ImportPlan): string | null | undefined {
  if (cell !== null) return String(cell);
  return emptyCells === "null" ? null : emptyCells === "default" ? undefined : "";
}

function jsonValue(value: unknown, column: EditedColumn): string | null | typeof NO_TEXT {
  const kind = valueKind(column);
  if (value === null) return null;
  if (kind === "json") return JSON.stringify(value);
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return kind === "array" ? writeArrayLiteral(value.map(toElement)) : NO_TEXT;
  // Numbers that keep their digits are objects until they are serialized.
  const text = JSON.stringify(value);
  return text.startsWith("{") ? NO_TEXT : text;
}

function toElement(value: unknown): ArrayElement {
  if (value === null || typeof value === "string") return value;
  return Array.isArray(value) ? value.map(toElement) : JSON.stringify(value);
}

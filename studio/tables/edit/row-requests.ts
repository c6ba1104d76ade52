import { quoteField, quoteValue } from "../../api/field-names.ts";
import { formatQuery, type QueryParameter, type TableRow, tablePath } from "../../api/rest-query.ts";
import { columnOf, type EditedColumn, type EditedTable, isWritable } from "./edited-table.ts";
import { hasEquality, isEqualityExact, valueKind } from "./value-kind.ts";

/** A request of the table interface. */
export type RestRequest = {
  readonly path: string;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
};

/** The values to write, as Postgres's texts. */
export type RowValues = Readonly<Record<string, string | null>>;

type UpdateRequest = RestRequest & {
  /** Changed columns whose old values filters cannot compare exactly; the row is read before, to compare them. */
  readonly unchecked: readonly string[];
};

/** The maximum length of a value that fits into a URL with others. */
const MAX_FILTER_LENGTH = 1_000;
/** The maximum length of the filters in one request; servers and proxies accept 8,000 bytes. */
const MAX_QUERY_LENGTH = 6_000;

/** Changes a row if the changed columns still have the shown values. */
export function updateRequest(
  table: EditedTable,
  { key, before, values }: { key: readonly string[]; before: TableRow; values: RowValues },
): UpdateRequest {
  const changed = Object.keys(values);
  const checked = comparableColumns(changed, before, (name) => hasEquality(columnOf(table, name)));
  const filters = filtersOf(key, checked, before);
  const isChecked = (name: string) => checked.includes(name) && isEqualityExact(columnOf(table, name));
  return {
    ...writeRequest(table, "PATCH", [...filters, representation(table)], encodeRow(table, values)),
    unchecked: changed.filter((name) => !isChecked(name)),
  };
}

/** Deletes a row if it still has the shown values, as far as filters can compare them. */
export function deleteUnchangedRequest(table: EditedTable, key: readonly string[], row: TableRow): RestRequest {
  const checked = comparableColumns(Object.keys(row), row, (name) => {
    const column = columnOf(table, name);
    // Types of extensions may have no `=`.
    return hasEquality(column) && valueKind(column) !== "other";
  });
  return writeRequest(table, "DELETE", [...filtersOf(key, checked, row), representation(table)]);
}

/** Returns the columns whose values fit into the filters of one request. */
function comparableColumns(
  names: readonly string[],
  row: TableRow,
  hasFilter: (name: string) => boolean,
): readonly string[] {
  let length = 0;
  return names.filter((name) => {
    const value = row[name] ?? "";
    if (!hasFilter(name) || value.length > MAX_FILTER_LENGTH) return false;
    const size = encodeURIComponent(`${name}=eq.${value}&`).length;
    const fits = length + size <= MAX_QUERY_LENGTH;
    if (fits) length += size;
    return fits;
  });
}

function filtersOf(key: readonly string[], checked: readonly string[], row: TableRow): QueryParameter[] {
  return [...new Set([...key, ...checked])].map((name) => equals(name, row[name] ?? null));
}

/** Inserts rows. `columns` are those of at least one row; missing values get the default. */
export function insertRequest(table: EditedTable, rows: readonly RowValues[]): RestRequest {
  return postRequest(table, rows, [representation(table)], "return=representation");
}

/** An insert whose rows are not read back; `existing` chooses what happens to rows whose key exists. */
export function bulkInsertRequest(
  table: EditedTable,
  rows: readonly RowValues[],
  existing: "refuse" | "skip" | "replace" = "refuse",
): RestRequest {
  const resolution = { refuse: "", skip: ", resolution=ignore-duplicates", replace: ", resolution=merge-duplicates" };
  return postRequest(table, rows, [], `return=minimal${resolution[existing]}`);
}

function postRequest(
  table: EditedTable,
  rows: readonly RowValues[],
  parameters: readonly QueryParameter[],
  prefer: string,
): RestRequest {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const columns: QueryParameter[] = names.length > 0 ? [["columns", names.map(quoteField).join(",")]] : [];
  const body = `[${rows.map((row) => encodeRow(table, row)).join(",")}]`;
  const isComplete = rows.every((row) => names.every((name) => Object.hasOwn(row, name)));
  // This evaluates the defaults of all rows, for which the caller needs privileges on sequences.
  const missing = isComplete ? "" : ", missing=default";
  return writeRequest(table, "POST", [...columns, ...parameters], body, prefer + missing);
}

/** Makes as many requests as the maximum length of an address requires. */
export function deleteRequests(table: EditedTable, key: readonly string[], rows: readonly TableRow[]): RestRequest[] {
  return keyFilters(key, rows).map((filter) => writeRequest(table, "DELETE", [filter, representation(table)]));
}

export function readRequest(table: EditedTable, key: readonly string[], rows: readonly TableRow[]): RestRequest[] {
  return keyFilters(key, rows).map((filter) => ({
    path: `${tablePath(table.name)}?${formatQuery([representation(table), filter])}`,
    method: "GET",
    headers: { "Accept-Profile": table.schema },
  }));
}

/** Returns filters that select rows by the values of these columns, in parts that fit into URLs. */
export function keyFilters(columns: readonly string[], rows: readonly TableRow[]): QueryParameter[] {
  const [single] = columns;
  const conditions = rows.map((row) =>
    columns.length === 1
      ? quoteValue(row[single!]!)
      : `and(${columns.map((name) => `${quoteField(name)}.eq.${quoteValue(row[name]!)}`).join(",")})`,
  );
  return partition([...new Set(conditions)]).map((part) =>
    columns.length === 1 ? [quoteField(single!), `in.(${part.join(",")})`] : ["or", `(${part.join(",")})`],
  );
}

function partition(conditions: readonly string[]): string[][] {
  const parts: string[][] = [];
  let length = Number.POSITIVE_INFINITY;
  for (const condition of conditions) {
    const size = encodeURIComponent(condition).length + 3;
    if (length + size > MAX_QUERY_LENGTH) {
      parts.push([]);
      length = 0;
    }
    parts.at(-1)!.push(condition);
    length += size;
  }
  return parts;
}

/** Selects all columns as texts. */
function representation({ columns }: EditedTable): QueryParameter {
  return ["select", columns.map(({ name }) => `${quoteField(name)}::text`).join(",")];
}

function equals(name: string, value: string | null): QueryParameter {
  return [quoteField(name), value === null ? "is.null" : `eq.${value}`];
}

function writeRequest(
  table: EditedTable,
  method: RestRequest["method"],
  parameters: readonly QueryParameter[],
  body?: string,
  prefer = "return=representation",
): RestRequest {
  const headers = { "Content-Profile": table.schema, "Content-Type": "application/json", Prefer: prefer };
  const path = `${tablePath(table.name)}?${formatQuery(parameters)}`;
  return { path, method, headers, ...(body !== undefined && { body }) };
}

/** Writes the row as a JSON object. JSON columns keep their text, and so the digits of numbers; other values are strings that Postgres parses. */
export function encodeRow(table: EditedTable, values: RowValues): string {
  const members = Object.entries(values).map(
    ([name, value]) => `${JSON.stringify(name)}:${encodeValue(columnOf(table, name), value)}`,
  );
  return `{${members.join(",")}}`;
}

function encodeValue(column: EditedColumn, value: string | null): string {
  if (value === null) return "null";
  return valueKind(column) === "json" ? value : JSON.stringify(value);
}

/** Returns the values with which a deleted row is inserted again. */
export function writableValues(table: EditedTable, row: TableRow): RowValues {
  return Object.fromEntries(table.columns.filter(isWritable).map(({ name }) => [name, row[name] ?? null]));
}

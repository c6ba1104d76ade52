import { type ArrayType, baseTypeOf, type CatalogTable, type DataType, type TableAccess } from "#catalog";
import type {
  CommittedTransaction,
  ReplicatedColumn,
  ReplicatedRelation,
  ReplicatedRow,
  RowChange,
} from "#live/stream";
import { isUnalteredColumn } from "./row-visibility.ts";
import { formatResumeToken } from "./subscriber.ts";

const VERBATIM_TYPES = new Set(["int2", "int4", "int8", "json", "jsonb"]);
const NUMBER_TYPES = new Set(["float4", "float8", "numeric"]);
const TIMESTAMP_TYPES = new Set(["timestamp", "timestamptz"]);

/** The columns of a table that a subscriber is sent; one object for all who are sent the same. */
export type VisibleColumns = { readonly columns: ReadonlySet<string>; readonly includesKey: boolean };

/** How a change is sent: an UPDATE of a row that the subscriber can no longer see is sent as DELETE. */
export type DeliveredChange = {
  readonly type: "INSERT" | "UPDATE" | "DELETE";
  readonly columns: VisibleColumns;
  /** True if the old row is included. */
  readonly includesOld: boolean;
};

const MAX_PAYLOAD_BYTES = 2 ** 20;
/** Longer values are left out of a change that is too large. */
const MAX_KEPT_CELL_BYTES = 64;
const ERROR_TOO_LARGE = "Error 413: Payload Too Large";
const ERROR_UNREADABLE_KEY = "Error 401: Unauthorized";
const ERROR_NO_KEY = "Error 400: Bad Request, no primary key";
const ERROR_ALTERED = "Error 409: Conflict, the table was altered behind this change, which does not have";

export function selectVisibleColumns(
  { columns, includesKey }: TableAccess,
  select: ReadonlySet<string> | null,
  table: CatalogTable,
): VisibleColumns {
  if (!select) return { columns, includesKey };
  const selected = new Set([...select, ...table.primaryKey].filter((name) => columns.has(name)));
  return { columns: selected, includesKey };
}

/** The payload of one change; it differs only by the columns that are visible. */
export class ChangePayload {
  readonly #change: RowChange;
  readonly #table: CatalogTable;
  readonly #commitTime: string;
  readonly #resumeToken: string;
  readonly #isLarge: boolean;
  readonly #encoded = new Map<VisibleColumns, Map<string, string>>();

  constructor(
    change: RowChange,
    { commitLsn, commitTime }: CommittedTransaction,
    table: CatalogTable,
    history: string,
  ) {
    this.#change = change;
    this.#table = table;
    this.#commitTime = commitTime.toISOString();
    const lacksValue = change.kind === "INSERT" && change.new!.includes(undefined);
    this.#isLarge = lacksValue || rowBytes(change.new) + rowBytes(change.old) > MAX_PAYLOAD_BYTES;
    this.#resumeToken = formatResumeToken({ position: { commitLsn, index: change.index }, history });
  }

  /** `{"schema":"public","table":"items","type":"INSERT",…}` */
  encode({ type, columns, includesOld }: DeliveredChange): string {
    const texts = this.#encoded.get(columns) ?? new Map<string, string>();
    this.#encoded.set(columns, texts);
    const kind = `${type}${includesOld ? " with old" : ""}`;
    const text = texts.get(kind) ?? this.#encodeOnce({ type, columns, includesOld });
    texts.set(kind, text);
    return text;
  }

  #encodeOnce(delivered: DeliveredChange): string {
    const { relation } = this.#change;
    const error = this.#keyError(delivered);
    const errors = error === null ? this.#errors(delivered.columns) : [error];
    const records = error === null ? this.#records(delivered) : [];
    const members = [
      `"schema":${JSON.stringify(relation.schema)},"table":${JSON.stringify(relation.name)},"type":"${delivered.type}"`,
      `"commit_timestamp":"${this.#commitTime}","columns":${encodeColumns(relation, delivered.columns)}`,
      ...records,
      `"errors":${errors.length === 0 ? "null" : JSON.stringify(errors)},"position":"${this.#resumeToken}"`,
    ];
    return `{${members.join(",")}}`;
  }

  /** Returns the reason why the change has no row. */
  #keyError({ type, columns }: DeliveredChange): string | null {
    if (this.#table.primaryKey.length === 0 && type !== "DELETE") return ERROR_NO_KEY;
    return columns.includesKey ? null : ERROR_UNREADABLE_KEY;
  }

  /** Returns the reasons why the row is incomplete. */
  #errors(columns: VisibleColumns): readonly string[] {
    const missing = this.#renamed(columns);
    const altered = missing.length > 0 ? [`${ERROR_ALTERED} ${missing.join(", ")}`] : [];
    return this.#isLarge ? [ERROR_TOO_LARGE, ...altered] : altered;
  }

  /** Columns that were renamed after the change, which has them under the old name. */
  #renamed(columns: VisibleColumns): readonly string[] {
    const names = new Set(this.#change.relation.columns.map(({ name }) => name));
    const isAltered = [...names].some((name) => !this.#table.columns.has(name));
    return isAltered ? [...columns.columns].filter((name) => !names.has(name)) : [];
  }

  #records({ type, columns, includesOld }: DeliveredChange): readonly string[] {
    const { new: row, old } = this.#change;
    const records: string[] = [];
    if (type !== "DELETE") records.push(`"record":${this.#record(row!, columns)}`);
    // Without an old row in the log, the old key is the same as the new one.
    if (type === "UPDATE")
      records.push(`"old_record":${includesOld ? this.#record(old ?? this.#keyOf(row!), columns) : "{}"}`);
    if (type === "DELETE") records.push(`"old_record":${this.#record(old!, columns)}`);
    return records;
  }

  #record(row: ReplicatedRow, { columns }: VisibleColumns): string {
    const members: string[] = [];
    for (const [at, column] of this.#change.relation.columns.entries()) {
      const cell = row[at];
      if (cell === undefined || !columns.has(column.name)) continue;
      if (this.#isLarge && cell !== null && cell.length > MAX_KEPT_CELL_BYTES) continue;
      members.push(`${JSON.stringify(column.name)}:${cell === null ? "null" : this.#value(cell, column)}`);
    }
    return `{${members.join(",")}}`;
  }

  /** A value from before its column's type was changed is a string: the client parses it by the type that the change names. */
  #value(cell: string, column: ReplicatedColumn): string {
    return isUnalteredColumn(this.#table, column)
      ? toJsonText(cell, this.#table.columns.get(column.name)!.type)
      : JSON.stringify(cell);
  }

  #keyOf(row: ReplicatedRow): ReplicatedRow {
    const { primaryKey } = this.#table;
    return this.#change.relation.columns.map(({ name }, at) => (primaryKey.includes(name) ? row[at] : undefined));
  }
}

function encodeColumns({ columns }: ReplicatedRelation, view: VisibleColumns): string {
  return JSON.stringify(
    columns.flatMap(({ name, typeName }) => (view.columns.has(name) ? [{ name, type: typeName }] : [])),
  );
}

function rowBytes(row: ReplicatedRow | null): number {
  return (row ?? []).reduce((sum, cell) => sum + (cell?.length ?? 0), 0);
}

/** The same JSON that `to_jsonb` makes from the value. */
export function toJsonText(text: string, declared: DataType): string {
  const type = baseTypeOf(declared);
  if (type.kind === "array") return jsonArray(text, type);
  if (type.kind === "composite") return jsonObject(text, type.attributes);
  if (type.schema !== "pg_catalog") return JSON.stringify(text);
  if (VERBATIM_TYPES.has(type.name)) return text;
  if (type.name === "bool") return text === "t" ? "true" : "false";
  if (NUMBER_TYPES.has(type.name)) return /^-?[\d.]/.test(text) ? text : JSON.stringify(text);
  if (TIMESTAMP_TYPES.has(type.name)) return JSON.stringify(isoTime(text));
  return JSON.stringify(text);
}

/** `2026-01-02 03:04:05.678+00` -> `2026-01-02T03:04:05.678+00:00`; years before Christ end with ` BC`. */
function isoTime(text: string): string {
  return text.replace(" ", "T").replace(/([+-]\d\d)(?= BC$|$)/, "$1:00");
}

/** `{1,2,NULL}`, `{{"a b",c}}`, `[2:3]={1,2}`, `{(1,1),(0,0);(2,2),(1,1)}` for boxes, `1 2 3` for an int2vector. */
function jsonArray(text: string, { element, delimiter }: ArrayType): string {
  let at = text.indexOf("{");
  if (at < 0)
    return `[${text
      .split(" ")
      .filter(Boolean)
      .map((value) => toJsonText(value, element))
      .join(",")}]`;
  const list = (): string => {
    const items: string[] = [];
    at++;
    while (text[at] !== "}") {
      if (text[at] === delimiter) at++;
      if (text[at] === "{") items.push(list());
      else {
        const { value, isQuoted, end } = readItem(text, at, [delimiter, "}"]);
        items.push(!isQuoted && value === "NULL" ? "null" : toJsonText(value, element));
        at = end;
      }
    }
    at++;
    return `[${items.join(",")}]`;
  };
  return list();
}

/** `(1,"a ""b""",)`: an empty item is null. */
function jsonObject(text: string, attributes: ReadonlyMap<string, { readonly type: DataType }>): string {
  let at = 1;
  const members = [...attributes].map(([name, { type }]) => {
    const { value, isQuoted, end } = readItem(text, at, [",", ")"]);
    at = end + 1;
    return `${JSON.stringify(name)}:${!isQuoted && value === "" ? "null" : toJsonText(value, type)}`;
  });
  return `{${members.join(",")}}`;
}

type ParsedItem = { readonly value: string; readonly isQuoted: boolean; readonly end: number };

/** Reads up to the next delimiter or the closing character. A quote within quotes is escaped by a backslash or doubled. */
function readItem(text: string, start: number, ends: readonly string[]): ParsedItem {
  let value = "";
  let isQuoted = false;
  let isInside = false;
  let at = start;
  for (; at < text.length; at++) {
    const character = text[at]!;
    if (character === "\\") value += text[++at];
    else if (character === '"') {
      if (isInside && text[at + 1] === '"') value += text[++at];
      else isInside = !isInside;
      isQuoted = true;
    } else if (!isInside && ends.includes(character)) break;
    else value += character;
  }
  return { value, isQuoted, end: at };
}

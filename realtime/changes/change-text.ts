import type { Table } from "../../engine/catalog/tables.ts";
import type { Change, Relation, RelationColumn, Row, Transaction } from "../../engine/changes/changes.ts";
import { jsonValue } from "./json-value.ts";
import { formatBookmark } from "./position.ts";
import { isSameColumn } from "./same-column.ts";
import type { Sight } from "./sight.ts";

/** What a subscriber is shown of a table's rows; one object for all who are shown the same. */
export type View = { readonly columns: ReadonlySet<string>; readonly readsKey: boolean };

/** How a change is told: an UPDATE to somebody who may no longer see the row is a DELETE. */
export type Told = {
  readonly type: "INSERT" | "UPDATE" | "DELETE";
  readonly view: View;
  /** Whether the row before is shown too. */
  readonly withOld: boolean;
};

const MOST_BYTES = 2 ** 20;
/** What is longer is left out of a change that is too large. */
const SHORT_BYTES = 64;
const TOO_LARGE = "Error 413: Payload Too Large";
const UNREADABLE_KEY = "Error 401: Unauthorized";
const NO_KEY = "Error 400: Bad Request, no primary key";
const ALTERED = "Error 409: Conflict, the table was altered behind this change, which does not have";

export function viewOf({ columns, readsKey }: Sight, select: ReadonlySet<string> | null, table: Table): View {
  if (!select) return { columns, readsKey };
  const wanted = new Set([...select, ...table.primaryKey].filter((name) => columns.has(name)));
  return { columns: wanted, readsKey };
}

/** The payload of one change, which differs by what is shown of it alone. */
export class ChangeText {
  readonly #change: Change;
  readonly #table: Table;
  readonly #commitTime: string;
  readonly #bookmark: string;
  readonly #isLarge: boolean;
  readonly #spelled = new Map<View, Map<string, string>>();

  constructor(change: Change, { commitLsn, commitTime }: Transaction, table: Table, history: string) {
    this.#change = change;
    this.#table = table;
    this.#commitTime = commitTime.toISOString();
    this.#isLarge = bytesOf(change.new) + bytesOf(change.old) > MOST_BYTES;
    this.#bookmark = formatBookmark({ position: { commitLsn, index: change.index }, history });
  }

  /** `{"schema":"public","table":"items","type":"INSERT",…}` */
  text({ type, view, withOld }: Told): string {
    const texts = this.#spelled.get(view) ?? new Map<string, string>();
    this.#spelled.set(view, texts);
    const kind = `${type}${withOld ? " with old" : ""}`;
    const text = texts.get(kind) ?? this.#spell({ type, view, withOld });
    texts.set(kind, text);
    return text;
  }

  #spell(told: Told): string {
    const { relation } = this.#change;
    const error = this.#keyError(told);
    const errors = error === null ? this.#errors(told.view) : [error];
    const records = error === null ? this.#records(told) : [];
    const members = [
      `"schema":${JSON.stringify(relation.schema)},"table":${JSON.stringify(relation.name)},"type":"${told.type}"`,
      `"commit_timestamp":"${this.#commitTime}","columns":${columnsOf(relation, told.view)}`,
      ...records,
      `"errors":${errors.length === 0 ? "null" : JSON.stringify(errors)},"position":"${this.#bookmark}"`,
    ];
    return `{${members.join(",")}}`;
  }

  /** Why there is no row at all. */
  #keyError({ type, view }: Told): string | null {
    if (this.#table.primaryKey.length === 0 && type !== "DELETE") return NO_KEY;
    return view.readsKey ? null : UNREADABLE_KEY;
  }

  /** What is missing in the row. */
  #errors(view: View): readonly string[] {
    const missing = this.#renamed(view);
    const altered = missing.length > 0 ? [`${ALTERED} ${missing.join(", ")}`] : [];
    return this.#isLarge ? [TOO_LARGE, ...altered] : altered;
  }

  /** Columns that the change may have under another name: of before they were renamed. */
  #renamed(view: View): readonly string[] {
    const names = new Set(this.#change.relation.columns.map(({ name }) => name));
    const isAltered = [...names].some((name) => !this.#table.columns.has(name));
    return isAltered ? [...view.columns].filter((name) => !names.has(name)) : [];
  }

  #records({ type, view, withOld }: Told): readonly string[] {
    const { new: row, old } = this.#change;
    const records: string[] = [];
    if (type !== "DELETE") records.push(`"record":${this.#record(row!, view)}`);
    // Where the log has no row before, its key is the one that the row has now.
    if (type === "UPDATE")
      records.push(`"old_record":${withOld ? this.#record(old ?? this.#keyOf(row!), view) : "{}"}`);
    if (type === "DELETE") records.push(`"old_record":${this.#record(old!, view)}`);
    return records;
  }

  #record(row: Row, { columns }: View): string {
    const members: string[] = [];
    for (const [at, column] of this.#change.relation.columns.entries()) {
      const cell = row[at];
      if (cell === undefined || !columns.has(column.name)) continue;
      if (this.#isLarge && cell !== null && cell.length > SHORT_BYTES) continue;
      members.push(`${JSON.stringify(column.name)}:${cell === null ? "null" : this.#value(cell, column)}`);
    }
    return `{${members.join(",")}}`;
  }

  /** One of a type that the column no longer has is a text, which the client reads by the type that it is told with. */
  #value(cell: string, column: RelationColumn): string {
    return isSameColumn(this.#table, column)
      ? jsonValue(cell, this.#table.columns.get(column.name)!.type)
      : JSON.stringify(cell);
  }

  #keyOf(row: Row): Row {
    const { primaryKey } = this.#table;
    return this.#change.relation.columns.map(({ name }, at) => (primaryKey.includes(name) ? row[at] : undefined));
  }
}

function columnsOf({ columns }: Relation, view: View): string {
  return JSON.stringify(
    columns.flatMap(({ name, typeName }) => (view.columns.has(name) ? [{ name, type: typeName }] : [])),
  );
}

function bytesOf(row: Row | null): number {
  return (row ?? []).reduce((sum, cell) => sum + (cell?.length ?? 0), 0);
}

import type { QueryDependencies } from "../dependencies/query-dependencies.ts";
import { textOfCells } from "../matching/affected-rows.ts";
import type { CommittedChange, ReplicatedRelation, ReplicatedRow } from "../stream/changes.ts";
import { isTransactionVisible } from "../stream/transaction-visibility.ts";

/** The rows of one table and nothing else, as an array of arrays of texts. */
export type TableRows = {
  readonly relation: number;
  readonly columns: readonly string[];
  /** The places of the primary key in `columns`. */
  readonly keyPlaces: readonly number[];
  /** The columns by which conditions and policies decide: while these are the same, a row stays in the result, or out of it. */
  readonly deciding: ReadonlySet<string>;
};

/** The rows that a query reads, if its result is the rows of one table. */
export type ReadRows = Omit<TableRows, "deciding"> & { readonly conditionColumns: readonly string[] };
type ReadingQuery = { readonly rows?: ReadRows; readonly isPrivate: boolean };

type TextRow = readonly (string | null)[];
/** Rows by the texts of their keys. */
export type RowsByKey = ReadonlyMap<string, TextRow>;
/** `rows`: the rows of the text, if they were read before. */
type RowsText = { readonly text: string; readonly rows: RowsByKey | null };

/** Types whose values, cast to text, are the text that the log has; those of booleans are converted. */
const SAME_TEXTS = new Set(
  (
    "int2 int4 int8 float4 float8 numeric bool text varchar name uuid json jsonb bytea " +
    "date time timetz timestamp timestamptz interval"
  ).split(" "),
);
const FIRST_OTHER_OID = 10_000;
const BOOLEANS: ReadonlyMap<string | null, string> = new Map([
  ["t", "true"],
  ["f", "false"],
]);

/** Null if the result of the query depends on more than the rows and the values that their policies read. */
export function tableRowsOf(
  { rows, isPrivate }: ReadingQuery,
  { relations, readsRequest }: QueryDependencies,
): TableRows | null {
  const read = relations.find(({ oid }) => oid === rows?.relation);
  if (!rows || isPrivate || readsRequest || read?.reads !== 1 || read.policyColumns === null) return null;
  const { relation, columns, keyPlaces, conditionColumns } = rows;
  return { relation, columns, keyPlaces, deciding: new Set([...conditionColumns, ...read.policyColumns]) };
}

/** The rows after the changes; null if only a run can tell. `snapshot`: the snapshot of the last run. */
export function changeRows(
  current: RowsText,
  changes: readonly CommittedChange[],
  { rows, snapshot }: { readonly rows: TableRows; readonly snapshot: string },
): RowsText | null {
  const changed = new ChangedRows(current, rows);
  for (const { xid, change } of changes) {
    if (isTransactionVisible(xid, snapshot)) continue;
    const { kind, relation, old, new: after } = change;
    const places = relation.oid === rows.relation ? placesIn(relation, rows) : null;
    if (!places) return null;
    const before = old ?? after!;
    if (kind === "DELETE") changed.delete(places, before);
    else if (kind !== "UPDATE" || !changed.update(places, { old, before, after: after! })) return null;
  }
  return changed.current;
}

/** The positions of the result's columns in a relation of the log. */
type Places = {
  readonly relation: ReplicatedRelation;
  readonly columns: readonly number[];
  readonly key: readonly number[];
  /** The deciding columns, each with its position in the result, or -1. */
  readonly deciding: readonly { readonly at: number; readonly shownAt: number }[];
};

type RowUpdate = { readonly old: ReplicatedRow | null; readonly before: ReplicatedRow; readonly after: ReplicatedRow };

class ChangedRows {
  readonly #of: TableRows;
  readonly #before: RowsText;
  /** Null until it is needed. */
  #rows: RowsByKey | null;
  #changed: Map<string, TextRow> | null = null;

  constructor(before: RowsText, of: TableRows) {
    this.#before = before;
    this.#rows = before.rows;
    this.#of = of;
  }

  /** The text is as Postgres writes it. */
  get current(): RowsText {
    if (!this.#changed) return { text: this.#before.text, rows: this.#rows };
    const rows = this.#changed;
    return { text: `[${[...rows.values()].map((row) => JSON.stringify(row)).join(", \n ")}]`, rows };
  }

  delete({ key }: Places, before: ReplicatedRow): void {
    if (this.#find(key, before)) this.#change().delete(keyOf(key, before));
  }

  /** Returns false if the row may have come or gone. */
  update({ relation, columns, key, deciding }: Places, { old, before, after }: RowUpdate): boolean {
    if (key.some((at) => before[at] !== after[at])) return false;
    const shown = this.#find(key, before);
    const isSame = deciding.every(({ at, shownAt }) => {
      const value = after[at];
      if (value === undefined || old?.[at] === value) return true;
      if (!old && relation.columns[at]!.isIdentity) return true;
      return shown !== null && shownAt >= 0 && shown[shownAt] === toCastText(value, relation, at);
    });
    if (!isSame) return false;
    const row =
      shown &&
      columns.map((at, place) => {
        const value = after[at];
        return value === undefined ? shown[place]! : toCastText(value, relation, at);
      });
    if (row) this.#change().set(keyOf(key, before), row);
    return true;
  }

  #find(key: Places["key"], row: ReplicatedRow): TextRow | null {
    // The text often has no value of the key if the row is not there: then it is not parsed.
    if (!this.#rows && !key.every((at) => this.#before.text.includes(JSON.stringify(row[at])))) return null;
    return this.#read().get(keyOf(key, row)) ?? null;
  }

  #read(): RowsByKey {
    this.#rows ??= readRows(this.#before.text, this.#of.keyPlaces);
    return this.#rows;
  }

  #change(): Map<string, TextRow> {
    this.#changed ??= new Map(this.#read());
    this.#rows = this.#changed;
    return this.#changed;
  }
}

export function readRows(text: string, keyPlaces: readonly number[]): RowsByKey {
  return new Map((JSON.parse(text) as TextRow[]).map((row) => [keyOf(keyPlaces, row), row]));
}

/** `places`: the positions of the primary key, which has no null. */
export function keyOf(places: readonly number[], row: ReplicatedRow): string {
  return textOfCells(row, places)!;
}

function toCastText(value: string | null, relation: ReplicatedRelation, at: number): string | null {
  return relation.columns[at]!.typeName === "bool" ? (BOOLEANS.get(value) ?? null) : value;
}

const knownPlaces = new WeakMap<
  TableRows,
  Places | { readonly relation: ReplicatedRelation; readonly columns: null }
>();

/** Null if the log does not have all columns as the result has them, or lacks the key of some rows. */
function placesIn(relation: ReplicatedRelation, rows: TableRows): Places | null {
  let places = knownPlaces.get(rows);
  if (places?.relation !== relation) {
    places = findPlaces(relation, rows) ?? { relation, columns: null };
    knownPlaces.set(rows, places);
  }
  return places.columns ? places : null;
}

function findPlaces(relation: ReplicatedRelation, { columns: names, keyPlaces, deciding }: TableRows): Places | null {
  const placeOf = (name: string) => relation.columns.findIndex((column) => column.name === name);
  const columns = names.map(placeOf);
  const decidingPlaces = [...deciding].map((name) => ({ at: placeOf(name), shownAt: names.indexOf(name) }));
  const areKnown = [...columns, ...decidingPlaces.map(({ at }) => at)].every((at) => {
    const column = relation.columns[at];
    return column && column.typeOid < FIRST_OTHER_OID && SAME_TEXTS.has(column.typeName);
  });
  const key = keyPlaces.map((place) => columns[place]!);
  // Keys are compared as the log has them.
  const isKeyKnown = key.every((at) => relation.columns[at]?.isIdentity && relation.columns[at].typeName !== "bool");
  return areKnown && isKeyKnown ? { relation, columns, key, deciding: decidingPlaces } : null;
}

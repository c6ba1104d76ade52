import { isDeepStrictEqual } from "node:util";
import type { ShownRelation, ShownRows, ShownTable } from "#planner/shown-tables";
import { isExactNumber, isJsonObject, type JsonObject, parseJsonExactly } from "#runtime/json";
import type { QueryDependencies } from "../dependencies/query-dependencies.ts";
import {
  type ChangeFilter,
  keyText,
  type ReadFilter,
  type ResultContents,
  type ShownKeys,
} from "../matching/affected-rows.ts";
import type { LiveResult } from "./live-subscriber.ts";

/** Keys take more memory than their text. Changes can affect larger results without any of their rows. */
const MAX_SHOWN_ROWS = 1_000;

/** The conditions of a request on the columns of tables. */
export function filtersOf(shown: readonly ShownRows[]): ReadFilter[] {
  return shown.flatMap(({ table }) => filtersOfTable(table));
}

function filtersOfTable({ comparisons, related, reads }: ShownTable): ReadFilter[] {
  const own = comparisons.map(({ relation, column, operator, values }): ReadFilter => {
    if (operator === "eq") return { relation, column, values, reads };
    const [bound] = values as [string];
    return operator === "gt" || operator === "gte"
      ? { relation, column, least: bound, greatest: null, reads }
      : { relation, column, least: null, greatest: bound, reads };
  });
  return [...own, ...related.flatMap(({ table }) => (table ? filtersOfTable(table) : []))];
}

/** The facts about later changes that the rows of the result tell; null if there are none. `before`: returned if they are the same. */
export function contentsOf(
  { text, shown }: Pick<LiveResult, "text" | "shown">,
  { relations }: Pick<QueryDependencies, "relations">,
  before: ResultContents | null = null,
): ResultContents | null {
  if (shown.length === 0) return null;
  const parsed = parseJsonExactly(text);
  const reader = new ContentsReader((read) => isReadAsOften(relations, read));
  for (const { path, table } of shown) {
    const rows = objectsAt(path, [parsed]);
    if (!rows) continue;
    reader.readTable(table, rows, hasNoRemainder(table, rows, parsed));
    reader.readPage(table, rows, parsed);
  }
  const contents = reader.rows > MAX_SHOWN_ROWS ? null : reader.contents;
  return isDeepStrictEqual(contents, before) ? before : contents;
}

/** True if the query reads the relation only in this way, and nothing else reads it. */
export function isReadAsOften(
  relations: QueryDependencies["relations"],
  { relation, reads = 1 }: Pick<ReadFilter, "relation" | "reads">,
): boolean {
  return reads > 0 && relations.some((each) => each.oid === relation && each.reads === reads);
}

/** True if the response says that there are no rows without an object. */
function hasNoRemainder({ remainders }: ShownTable, rows: readonly JsonObject[], response: unknown): boolean {
  return remainders.every(({ path, kind }) => {
    const value = valueAt(path, response);
    return kind === "flag" ? value === false : textOf(value) === String(rows.length);
  });
}

/** True if further rows without an object leave the response as it is. */
function canHaveMore({ remainders }: ShownTable, response: unknown): boolean {
  return remainders.every(({ path, kind }) => kind === "flag" && valueAt(path, response) === true);
}

function valueAt(path: ShownRows["path"], response: unknown): unknown {
  return path.reduce<unknown>((found, name) => (isJsonObject(found) ? found[name] : undefined), response);
}

class ContentsReader {
  readonly #isReadAsOften: (read: Pick<ReadFilter, "relation" | "reads">) => boolean;
  readonly #filters: ChangeFilter[] = [];
  readonly #arriving: ChangeFilter[] = [];
  readonly #shown: ShownKeys[] = [];
  rows = 0;

  constructor(isReadAsOften: (read: Pick<ReadFilter, "relation" | "reads">) => boolean) {
    this.#isReadAsOften = isReadAsOften;
  }

  get contents(): ResultContents | null {
    const [filters, arriving, shown] = [this.#filters, this.#arriving, this.#shown];
    return filters.length + arriving.length + shown.length === 0 ? null : { filters, arriving, shown };
  }

  /** `isComplete`: true if the rows are all that the rest of the response depends on. */
  readTable(table: ShownTable, rows: readonly JsonObject[], isComplete: boolean): void {
    this.rows += rows.length;
    if (this.rows > MAX_SHOWN_ROWS) return;
    if (isComplete) this.#readKeys(table, rows);
    for (const relation of table.related) this.#readRelation(table, relation, rows);
  }

  /** A row behind the last one of a full page stays behind it. It may be the one that the response tells of, so it must not leave then. */
  readPage(table: ShownTable, rows: readonly JsonObject[], response: unknown): void {
    const { relation, page, members, reads, remainders } = table;
    const member = page ? members.get(page.column) : undefined;
    if (!page || member === undefined || rows.length < page.rows || !this.#isReadAsOften({ relation, reads })) return;
    const last = textOf(rows.at(page.isReversed ? 0 : -1)![member]);
    if (typeof last !== "string" || !canHaveMore(table, response)) return;
    const bounds = page.isDescending ? { least: last, greatest: null } : { least: null, greatest: last };
    const filters = remainders.length === 0 ? this.#filters : this.#arriving;
    filters.push({ relation, column: page.column, ...bounds });
  }

  #readRelation(parent: ShownTable, relation: ShownRelation, rows: readonly JsonObject[]): void {
    const related = objectsAt(relation.path, rows);
    for (const { relation: joined, column, parentColumn } of relation.joins) {
      const reads = relation.table?.relation === joined ? relation.table.reads : 1;
      if (!this.#isReadAsOften({ relation: joined, reads })) continue;
      const ofParents = valuesOf(parent, parentColumn, rows);
      // Each parent has its row: these have all values that the parents have.
      const hasAll = !relation.isList && related?.length === rows.length && relation.table?.relation === joined;
      const values = ofParents ?? (hasAll ? valuesOf(relation.table!, column, related) : null);
      if (values) this.#filters.push({ relation: joined, column, values: [...values] });
    }
    if (relation.table && related) this.readTable(relation.table, related, relation.table.remainders.length === 0);
  }

  #readKeys({ relation, key, members, isIndependent, reads }: ShownTable, rows: readonly JsonObject[]): void {
    const names = key.flatMap((column) => members.get(column) ?? []);
    if (key.length === 0 || names.length < key.length || !isIndependent || !this.#isReadAsOften({ relation, reads }))
      return;
    const keys = new Set<string>();
    for (const row of rows) {
      const values = names.map((name) => textOf(row[name]));
      if (!values.every((value) => typeof value === "string")) return;
      keys.add(keyText(values));
    }
    this.#shown.push({ relation, columns: key, keys });
  }
}

/** The values that the column has in all rows, without null; null if they are not known. */
function valuesOf(
  { members, comparisons }: ShownTable,
  column: string,
  rows: readonly JsonObject[],
): ReadonlySet<string> | null {
  const name = members.get(column);
  if (name === undefined) {
    const fixed = comparisons.find((each) => each.column === column && each.operator === "eq");
    return fixed ? new Set(fixed.values) : null;
  }
  const values = rows.map((row) => textOf(row[name]));
  return values.includes(undefined) ? null : new Set(values.filter((value) => typeof value === "string"));
}

/** The objects at the end of the path, each object of a list separately; null if something else is there. */
function objectsAt(path: ShownRows["path"], parents: readonly unknown[]): JsonObject[] | null {
  let found = parents.flat();
  for (const name of path) {
    if (!found.every(isJsonObject)) return null;
    const members = found.map((object) => object[name]);
    // Postgres shortens long names, so a missing member may be there under a shorter name.
    if (members.includes(undefined)) return null;
    found = members.flatMap((member) => member ?? []);
  }
  return found.every(isJsonObject) ? found : null;
}

/** Undefined unless it is a text, an integer or null. */
function textOf(value: unknown): string | null | undefined {
  if (value === null || typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  return isExactNumber(value) ? value.rawJSON : undefined;
}

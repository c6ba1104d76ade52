import type { Table } from "../../../engine/catalog/tables.ts";
import type { Attribute, DataType } from "../../../engine/catalog/types.ts";
import { type Composed, column, type Expression } from "./selection.ts";

/** The rows that names in one selection are about. */
export type Scope = {
  /** What the rows are called in the statement; Postgres tells it to the client in its refusals. */
  readonly alias: string;
  /** What they are called in ours. */
  readonly name: string;
  /** Null when they are of no table: then nothing is related to them. */
  readonly table: Table | null;
  readonly columns: ReadonlyMap<string, Attribute>;
  /** The types of what functions compute from a row. */
  readonly computed: ReadonlyMap<string, DataType>;
  readonly depth: number;
  /** The aliases of this and all selections around it. */
  readonly taken: ReadonlySet<string>;
  /** How a function gets the row when the rows have lost their type. */
  readonly composed: Composed | null;
  /** The names that the selection turns out to need; that of EVERY_COLUMN for all columns. */
  readonly used: Set<string>;
};

type Around = Pick<Scope, "depth" | "taken">;

export function tableScope(table: Table, { alias, ...around }: Around & { readonly alias: string }): Scope {
  const computed = new Map([...table.computedColumns].map(([name, routine]) => [name, routine.returns.type]));
  return { ...rowScope(alias, table.columns, around), name: table.name, table, computed };
}

/** Of rows that are no table's. */
export function rowScope(alias: string, columns: Scope["columns"], { depth, taken }: Around): Scope {
  return {
    alias,
    name: alias,
    table: null,
    columns,
    computed: new Map(),
    depth,
    taken: new Set(taken).add(alias),
    composed: null,
    used: new Set(),
  };
}

/** A name of a row, known or not. */
export function use(scope: Scope, name: string): Expression {
  scope.used.add(name);
  return column(scope.alias, name);
}

/** Postgres cuts longer names off, and two could become one. */
const LONGEST_NAME = 63;

/** A name that no selection around it has: `films`, or `films_1` within another. */
export function pickAlias(wanted: string, depth: number, taken: ReadonlySet<string>): string {
  const suffix = depth === 0 ? "" : `_${depth}`;
  let alias = withSuffix(wanted, suffix);
  for (let attempt = 2; taken.has(alias); attempt++) alias = withSuffix(wanted, `${suffix}_${attempt}`);
  return alias;
}

function withSuffix(name: string, suffix: string): string {
  let text = name;
  while (Buffer.byteLength(text + suffix) > LONGEST_NAME) text = [...text].slice(0, -1).join("");
  return text + suffix;
}

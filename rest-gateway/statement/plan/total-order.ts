import { createHash } from "node:crypto";
import type { QualifiedName } from "../../../engine/catalog/qualified-name.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import type { OrderTerm } from "../intent.ts";
import { noTotalOrder } from "./page-refusals.ts";

type Rows = {
  /** Null when they are of no table. */
  readonly table: Table | null;
  readonly mayRead: (column: string) => boolean;
};

/** The client's order, completed by a key, so that no two rows are in the same place. Without a key hers must do. */
export function completeOrder(order: readonly OrderTerm[], { table, mayRead }: Rows): readonly OrderTerm[] {
  const named = new Set(order.filter(isColumn).map(({ field }) => field.name));
  const keys = (table ? keysOf(table) : []).filter((key) => key.every(mayRead));
  if (keys.some((key) => key.every((name) => named.has(name)))) return order;
  const [key = []] = keys;
  if (order.length === 0 && key.length === 0) throw noTotalOrder("There is no order, and no key that could be one.");
  // Onwards in the same direction, so that one index can serve both.
  const direction = order.at(-1)?.direction ?? null;
  const more = key.filter((name) => !named.has(name)).map((name) => ({ field: { name, path: [] }, direction }));
  return [...order, ...more.map((term) => ({ ...term, relation: null, nulls: null }))];
}

/** Short, and the same for all orders that put the rows in the same places. */
export function nameOfOrder(kind: "read" | "call", of: QualifiedName, order: readonly OrderTerm[]): string {
  const terms = order.map((term) => [term.relation, term.field, isDescending(term), hasNullsLast(term)]);
  const digest = createHash("sha256")
    .update(JSON.stringify([kind, of.schema, of.name, terms]))
    .digest();
  return digest.subarray(0, 6).toString("base64url");
}

export function isDescending({ direction }: OrderTerm): boolean {
  return direction === "desc";
}

export function hasNullsLast(term: OrderTerm): boolean {
  return term.nulls === null ? !isDescending(term) : term.nulls === "last";
}

export function isColumn({ field, relation }: OrderTerm): boolean {
  return relation === null && field.path.length === 0;
}

/** The primary key first. Of a view it is only likely to be one: its table's rows may be there more than once. */
function keysOf({ primaryKey, uniqueKeys, columns }: Table): readonly (readonly string[])[] {
  const isNeverNull = (name: string) => columns.get(name)?.nullable === false;
  const others = uniqueKeys.filter((key) => key.predicate === null && key.columns.every(isNeverNull));
  return [...(primaryKey.length > 0 ? [primaryKey] : []), ...others.map((key) => key.columns)];
}

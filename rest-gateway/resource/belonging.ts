import { reversed } from "../../engine/catalog/relationships.ts";
import type { Condition } from "../statement/intent.ts";
import type { Step } from "./parse/target.ts";
import type { Nested } from "./relations.ts";

/** The row of a step: that of its key, which lies within those before it. */
export function isRow({ collection, key, nested }: Step, parents: readonly Step[]): Condition[] {
  const named = collection.key.map(({ column }, index) => equals(column.name, key[index]!));
  return [...named, ...liesWithin(nested, parents)];
}

/** Rows that refer to the last of the steps, and that one to those before it. */
export function liesWithin(nested: Nested | null, parents: readonly Step[]): Condition[] {
  const parent = parents.at(-1);
  if (!nested || !parent) return [];
  const values = foreignKey(nested, parent);
  const before = parents.slice(0, -1);
  if (values && before.length === 0) return [...values].map(([column, value]) => equals(column, value));
  const within = isRow(parent, before);
  const related: Condition = {
    kind: "related",
    relation: nested.name,
    found: reversed(nested.relationship),
    negated: false,
    condition: { kind: "and", negated: false, conditions: within },
  };
  // Besides saying it of the parent: an index on the foreign key can find the rows by it.
  return [...(values ? [...values].map(([column, value]) => equals(column, value)) : []), related];
}

/** What the columns that refer to a row hold; null where they refer to others than those of its key. */
function foreignKey({ relationship }: Nested, { collection, key }: Step): ReadonlyMap<string, string> | null {
  const values = new Map(collection.key.map(({ column }, index) => [column.name, key[index]!]));
  const pairs = relationship.columns.map(({ source, target }) => [target, values.get(source)] as const);
  return pairs.every((pair): pair is [string, string] => pair[1] !== undefined) ? new Map(pairs) : null;
}

export function equals(name: string, value: string): Condition {
  const operation = { kind: "compare", operator: "eq", quantifier: null, value } as const;
  return { kind: "filter", field: { name, path: [] }, negated: false, operation };
}

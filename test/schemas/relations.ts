import type { ForeignKey, Table } from "./described.ts";
import { qualified, quoted } from "./rows.ts";

/** The relation by a foreign key, seen from a table `t`, to another one `o`. */
export type Relation = {
  readonly kind: { readonly arrow: "->" | "<-" | "<->"; readonly from?: string };
  readonly target: Table;
  /** The name in /rest/v1: the table, and the constraint, junction or column that tells it from others to that table. */
  readonly embedding: readonly [table: string, hint?: string];
  /** The condition on `t` and `o`. */
  readonly join: string;
  readonly isSingle: boolean;
  readonly key: ForeignKey;
};

export function relationsOf(tables: readonly Table[], table: Table): Relation[] {
  return [...forward(tables, table), ...backward(tables, table), ...across(tables, table)];
}

export function forward(tables: readonly Table[], table: Table): Relation[] {
  return table.foreignKeys.flatMap((key) => {
    const target = tables.find(({ name }) => name === key.target);
    const join = matching(key, "t", "o");
    // The constraint of a table that refers to itself has no direction: the column, in the table's place, has one.
    const isSelf = target === table;
    if (!target || (isSelf && key.columns.length > 1)) return [];
    const embedding: Relation["embedding"] = isSelf ? [key.columns[0]!] : [target.name, key.name];
    return { kind: { arrow: "->" as const }, target, embedding, join, isSingle: true, key };
  });
}

export function backward(tables: readonly Table[], table: Table): Relation[] {
  return tables.flatMap((target) =>
    target.foreignKeys
      .filter((key) => key.target === table.name && (target !== table || key.columns.length === 1))
      .map((key) => ({
        kind: { arrow: "<-" as const },
        target,
        embedding: [target.name, target === table ? key.columns[0]! : key.name],
        join: matching(key, "o", "t"),
        isSingle: isUnique(target, key.columns),
        key,
      })),
  );
}

/** Tables whose primary key holds two foreign keys to different tables relate those to each other. */
function across(tables: readonly Table[], table: Table): Relation[] {
  return tables.flatMap((junction) => {
    const within = junction.foreignKeys.filter(
      ({ columns }) => columns.every((name) => junction.primaryKey.includes(name)) && !isUnique(junction, columns),
    );
    const own = within.filter(({ target }) => target === table.name);
    const others = within.filter(({ target }) => target !== table.name);
    if (own.length !== 1) return [];
    return others
      .filter(({ target }) => others.filter((other) => other.target === target).length === 1)
      .flatMap((key) => {
        const target = tables.find(({ name }) => name === key.target);
        if (!target) return [];
        const from = `${qualified(target)} as o join ${qualified(junction)} as j on ${matching(key, "j", "o")}`;
        return {
          kind: { arrow: "<->" as const, from },
          target,
          embedding: [target.name, junction.name],
          join: matching(own[0]!, "j", "t"),
          isSingle: false,
          key,
        };
      });
  });
}

function matching({ columns, targetColumns }: ForeignKey, referrer: string, referred: string): string {
  return columns
    .map((name, index) => `${referrer}.${quoted(name)} = ${referred}.${quoted(targetColumns[index]!)}`)
    .join(" and ");
}

function isUnique({ uniques }: Table, columns: readonly string[]): boolean {
  return uniques.some((unique) => unique.length === columns.length && unique.every((name) => columns.includes(name)));
}

import type { Caller } from "../../engine/caller/caller.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Binding } from "./binding.ts";
import { type View, viewOf } from "./change-text.ts";
import { type ClaimsReader, claimsKey } from "./claims-read.ts";
import { type RowSight, type Sight, sightOf } from "./sight.ts";
import type { Subscriber } from "./subscriber.ts";

/** Those to whom a table's changes matter. */
export type Audience = { readonly table: Table; readonly groups: readonly Group[] };

/** Subscribers who see the same rows, so that Postgres is asked once for all of them. */
export type Group = {
  /** One of them; the others have the same role and the same claims, as far as the policies read them. */
  readonly caller: Caller;
  readonly rows: RowSight;
  readonly members: readonly Member[];
};

/** Bindings of one subscriber that show the same columns: they are told of a change by one message. */
export type Member = {
  readonly subscriber: Subscriber;
  readonly bindings: readonly Binding[];
  readonly view: View;
  /** Whether Postgres has to be asked what a filter says. */
  readonly asks: boolean;
};

type Terms = {
  readonly catalog: Catalog;
  readonly table: Table;
  readonly claims: ClaimsReader;
};

export async function findAudience(subscribers: Iterable<Subscriber>, terms: Terms): Promise<Audience> {
  const { catalog, table, claims: reader } = terms;
  const groups = new Map<string, { caller: Caller; sight: Sight; members: Member[] }>();
  const views = new Map<Sight, Map<string, View>>();
  for (const subscriber of subscribers) {
    const bindings = subscriber.bindings.filter((binding) => concerns(binding, table));
    if (bindings.length === 0) continue;
    const { caller } = subscriber;
    const sight = sightOf(catalog, table, caller.role);
    if (!sight || sight.rows === "none") continue;
    if (!bindings.every((binding) => stillHolds(binding, sight, table))) {
      subscriber.lose(`a column of ${table.name} that was asked for is not what it was`);
      continue;
    }
    const claimsRead = sight.rows === "all" ? "" : claimsKey(caller, await reader.read(table));
    const key = JSON.stringify([caller.role, claimsRead]);
    const group = groups.get(key) ?? { caller, sight, members: [] };
    groups.set(key, group);
    group.members.push(...toMembers(subscriber, bindings, sight, table, views));
  }
  return {
    table,
    groups: [...groups.values()].map(({ caller, sight, members }) => ({ caller, rows: sight.rows, members })),
  };
}

/** Those with the same claims together: claims that cannot be read are nobody else's concern. */
export function partsOf({ rows, members }: Group): readonly Group[] {
  const parts = Map.groupBy(members, ({ subscriber }) => subscriber.caller.claimsText);
  return [...parts.values()].map((part) => ({ caller: part[0]!.subscriber.caller, rows, members: part }));
}

export function concerns(
  { schema, table }: Binding,
  relation: { readonly schema: string; readonly name: string },
): boolean {
  return (schema === null || schema === relation.schema) && (table === null || table === relation.name);
}

/** What is asked for is read at the join: by now a column may be closed to the subscriber, altered or gone. */
function stillHolds({ tests, select }: Binding, sight: Sight, { columns }: Table): boolean {
  const isSelected = [...(select ?? [])].every((column) => sight.columns.has(column));
  const isOfType = (column: string, oid: number) => columns.get(column)?.baseType.oid === oid;
  return isSelected && tests.every(({ column, type }) => sight.columns.has(column) && isOfType(column, type.oid));
}

function toMembers(
  subscriber: Subscriber,
  bindings: readonly Binding[],
  sight: Sight,
  table: Table,
  views: Map<Sight, Map<string, View>>,
): Member[] {
  const bySelect = Map.groupBy(bindings, ({ select }) => (select ? JSON.stringify([...select].sort()) : ""));
  return [...bySelect].map(([key, alike]) => {
    const known = views.get(sight) ?? new Map<string, View>();
    views.set(sight, known);
    const view = known.get(key) ?? viewOf(sight, alike[0]!.select, table);
    known.set(key, view);
    const asks = alike.some(({ tests }) => tests.some(({ questions }) => questions.length > 0));
    return { subscriber, bindings: alike, view, asks };
  });
}

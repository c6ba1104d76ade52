import type { Caller } from "../../engine/caller/caller.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Binding } from "./binding.ts";
import { type View, viewOf } from "./change-text.ts";
import { type ClaimsReader, claimsKey } from "./claims-read.ts";
import type { Question } from "./question.ts";
import { type RowSight, type Sight, sightOf } from "./sight.ts";
import type { Subscriber } from "./subscriber.ts";

/** Those to whom a table's changes matter. */
export type Audience = { readonly table: Table; readonly groups: readonly Group[] };

/** Subscribers who see the same rows, so that Postgres is asked once for all of them. */
export type Group = {
  /** One of them; the others have the same role and the same claims, as far as the policies read them. */
  readonly caller: Caller;
  readonly rows: RowSight;
  readonly questions: readonly Question[];
  readonly members: readonly Member[];
};

/** Bindings of one subscriber that show the same columns: they are told of a change by one message. */
export type Member = {
  readonly subscriber: Subscriber;
  readonly bindings: readonly Binding[];
  readonly view: View;
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
      subscriber.lose(`a column by which changes of ${table.name} were filtered is not what it was`);
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
    groups: [...groups.values()].map(({ caller, sight, members }) => ({
      caller,
      rows: sight.rows,
      members,
      questions: members.flatMap(questionsOf),
    })),
  };
}

/** Those whose filters ask nothing together, and each of the others alone: a filter that fails is nobody else's concern. */
export function partsOf({ caller, rows, members }: Group): readonly Group[] {
  const asking = members.filter((member) => questionsOf(member).length > 0);
  const others = members.filter((member) => !asking.includes(member));
  const parts = [others, ...asking.map((member) => [member])].filter((part) => part.length > 0);
  return parts.map((part) => ({ caller, rows, members: part, questions: part.flatMap(questionsOf) }));
}

export function concerns(
  { schema, table }: Binding,
  relation: { readonly schema: string; readonly name: string },
): boolean {
  return (schema === null || schema === relation.schema) && (table === null || table === relation.name);
}

/** A filter is read when it is asked for: by now its column may be closed to the subscriber, altered or gone. */
function stillHolds({ tests }: Binding, sight: Sight, { columns }: Table): boolean {
  return tests.every(({ column, type }) => sight.columns.has(column) && columns.get(column)?.baseType.oid === type.oid);
}

function questionsOf({ bindings }: Member): readonly Question[] {
  return bindings.flatMap(({ tests }) => tests.flatMap(({ questions }) => questions));
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
    return { subscriber, bindings: alike, view };
  });
}

import type { CatalogKeeper } from "../../engine/catalog/keep.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Relation } from "../../engine/changes/changes.ts";
import type { Logger } from "../../engine/log.ts";
import { type Audience, findAudience, type Group } from "./audience.ts";
import type { BlindSpots } from "./blind-spots.ts";
import type { ClaimsReader } from "./claims-read.ts";
import type { Published } from "./published.ts";
import { isSameColumn } from "./same-column.ts";
import type { Subscriber } from "./subscriber.ts";

export type AudienceServices = {
  readonly catalog: CatalogKeeper;
  readonly claims: ClaimsReader;
  readonly published: Published;
  readonly blindSpots: BlindSpots;
  readonly log: Pick<Logger, "warn">;
};

/** Who of the subscribers is to be told of a table's changes; null where nobody here knows the table. */
export type Audiences = (subscribers: ReadonlySet<Subscriber>, relation: Relation) => Promise<Audience | null>;

export function makeAudiences({ catalog, claims, published, blindSpots, log }: AudienceServices): Audiences {
  const checked = new WeakSet<Relation>();

  const tableOf = async (relation: Relation): Promise<Table | null> => {
    const known = () => catalog.current().findTable(relation);
    if (!isAsTold(known(), relation) && !checked.has(relation)) await catalog.reload();
    checked.add(relation);
    const table = known();
    return table?.oid === relation.oid ? table : null;
  };

  /** Those who are bound by policies that read what the change does not have cannot be told of it. */
  const withoutBlind = async ({ table, groups }: Audience, relation: Relation): Promise<Audience> => {
    const seen = relation.columns.filter((column) => isSameColumn(table, column));
    loseFiltered({ table, groups }, relation);
    const unseen = await blindSpots(table, new Set(seen.map(({ name }) => name)));
    if (unseen.length === 0) return { table, groups };
    const columns = await published.columns(table);
    const isLeftOut = columns !== null && !unseen.every((name) => columns.has(name));
    const [judged, blind] = [groups.filter(isJudgedUnseen), groups.filter((group) => !isJudgedUnseen(group))];
    if (isLeftOut) {
      const { schema, name } = table;
      if (blind.length > 0) log.warn({ schema, name, unseen }, "the publication leaves out columns that policies read");
    } else {
      // It was made, or altered, a moment ago: what was changed before knows nothing of it.
      for (const { subscriber } of blind.flatMap(({ members }) => members)) subscriber.lose(alteredReason(table));
    }
    return { table, groups: judged };
  };

  return async (subscribers, relation) => {
    const table = await tableOf(relation);
    if (!table) return null;
    const audience = await findAudience(subscribers, { catalog: catalog.current(), table, claims });
    return withoutBlind(audience, relation);
  };
}

function isAsTold(table: Table | undefined, { oid, columns }: Relation): boolean {
  return table?.oid === oid && columns.every((column) => isSameColumn(table, column));
}

/** A filter cannot be held against values of before its column was altered. */
function loseFiltered({ table, groups }: Audience, { columns }: Relation): void {
  const altered = new Set(columns.filter((column) => !isSameColumn(table, column)).map(({ name }) => name));
  if (altered.size === 0) return;
  for (const { subscriber, bindings } of groups.flatMap(({ members }) => members)) {
    const isFiltered = bindings.some(({ tests }) => tests.some(({ column }) => altered.has(column)));
    if (isFiltered) subscriber.lose(alteredReason(table));
  }
}

function alteredReason({ name }: Table): string {
  return `${name} was altered meanwhile`;
}

function isJudgedUnseen({ rows }: Group): boolean {
  return typeof rows === "string";
}

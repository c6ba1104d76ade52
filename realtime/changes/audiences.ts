import type { CatalogKeeper } from "../../engine/catalog/keep.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Relation } from "../../engine/changes/changes.ts";
import type { Logger } from "../../engine/log.ts";
import { type Audience, findAudience, type Group } from "./audience.ts";
import type { BlindSpots } from "./blind-spots.ts";
import type { ClaimsRead } from "./claims-read.ts";
import type { Published } from "./published.ts";
import type { Subscriber } from "./subscriber.ts";

export type AudienceServices = {
  readonly catalog: CatalogKeeper;
  readonly readClaims: (table: Table) => Promise<ClaimsRead>;
  readonly published: Published;
  readonly blindSpots: BlindSpots;
  readonly log: Pick<Logger, "warn">;
};

/** Who of the subscribers is to be told of a table's changes; null where nobody here knows the table. */
export type Audiences = (subscribers: ReadonlySet<Subscriber>, relation: Relation) => Promise<Audience | null>;

export function makeAudiences({ catalog, readClaims, published, blindSpots, log }: AudienceServices): Audiences {
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
    const unseen = await blindSpots(table, new Set(relation.columns.map(({ name }) => name)));
    if (unseen.length === 0) return { table, groups };
    const columns = await published.columns(table);
    const isLeftOut = columns !== null && !unseen.every((name) => columns.has(name));
    const [judged, blind] = [groups.filter(isJudgedUnseen), groups.filter((group) => !isJudgedUnseen(group))];
    if (isLeftOut) {
      const { schema, name } = table;
      if (blind.length > 0) log.warn({ schema, name, unseen }, "the publication leaves out columns that policies read");
    } else {
      // It was made a moment ago: what was changed before knows nothing of it.
      const reason = `${table.name} was altered meanwhile`;
      for (const { subscriber } of blind.flatMap(({ members }) => members)) subscriber.lose(reason);
    }
    return { table, groups: judged };
  };

  return async (subscribers, relation) => {
    const table = await tableOf(relation);
    if (!table) return null;
    const audience = await findAudience(subscribers, { catalog: catalog.current(), table, readClaims });
    return withoutBlind(audience, relation);
  };
}

function isAsTold(table: Table | undefined, { oid, columns }: Relation): boolean {
  return table?.oid === oid && columns.every(({ name }) => table.columns.has(name));
}

function isJudgedUnseen({ rows }: Group): boolean {
  return typeof rows === "string";
}

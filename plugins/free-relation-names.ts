import type { PgCodecWithAttributes } from "postgraphile/@dataplan/pg";
import { oncePer } from "../engine/once-per.ts";
import { settleNames } from "./free-names.ts";
import { columnsShownAsRelations } from "./relation-names.ts";
import type { Relation } from "./table.ts";

type Details = GraphileBuild.PgRelationsPluginRelationDetails;
type Inflection = GraphileBuild.Inflection;

/** Those of which it is being found out what they want to be called. */
const asked = new WeakSet<PgCodecWithAttributes>();

/** What the relation is called, where others of its table, or a column, have the name that it wants. */
export function freeRelationName(inflection: Inflection, details: Details, wanted: string): string {
  const { codec, registry, relationName } = details;
  if (asked.has(codec)) return wanted;
  return renamedRelations(codec, registry, inflection).get(relationName) ?? wanted;
}

const renamedRelations = oncePer(
  (
    codec: PgCodecWithAttributes,
    registry: Details["registry"],
    inflection: Inflection,
  ): ReadonlyMap<string, string> => {
    const relations = Object.entries(registry.pgRelations[codec.name] ?? {}) as [string, Relation][];
    const hidden = columnsShownAsRelations(codec, registry);
    const columns = Object.keys(codec.attributes).filter((column) => !hidden.has(column));
    const columnNames = new Set(columns.map((attributeName) => inflection.attribute({ attributeName, codec })));
    const renamed = new Map<string, string>();

    asked.add(codec);
    const claims = relations.map(([relationName, relation]) => ({
      wanted: nameOf(inflection, { codec, registry, relationName }, relation),
      suffix: "_",
      needs: (name: string) => [name],
      rename: (name: string) => renamed.set(relationName, name),
    }));
    asked.delete(codec);
    settleNames(claims, (name) => columnNames.has(name));
    return renamed;
  },
);

function nameOf(inflection: Inflection, details: Details, { isReferencee, isUnique }: Relation): string {
  if (!isReferencee) return inflection.singleRelation(details);
  return isUnique ? inflection.singleRelationBackwards(details) : inflection._manyRelation(details);
}

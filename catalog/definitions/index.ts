import { comments } from "./comments.ts";
import { type Definition, toArchiveQuery, toComparisonQuery } from "./definition.ts";
import { defaultPrivileges, groupedGrants, singleGrants } from "./privileges.ts";
import { relationDefinitions, tablePartQuery } from "./relations.ts";
import * as parts from "./table-parts.ts";
import { publications, publishedTableQuery, typeDefinitions, userMappings } from "./types.ts";

export { comments } from "./comments.ts";
export {
  IS_PERMANENT,
  isOwn,
  isOwnRelation,
  isUsers,
  objectLabel,
  roleName,
  SCHEMA_PUBLIC,
  type SchemaRow,
  type TableColumn,
} from "./definition.ts";
export { defaultPrivileges, grantedObjects, ownerQuery } from "./privileges.ts";
export { SEQUENCE_OPTIONS } from "./relations.ts";

/** A query of `SchemaRow`: the sequences of serial columns. */
export const ownedSequencesQuery = toComparisonQuery(parts.ownedSequences);

/** The queries of an archive: of objects, in the order of their dependencies, and of statements that run before and after the rows. */
export function archiveQueries(version: number) {
  const form = { version, isArchive: true };
  const { attachedIndexes, attachedPartitions, columnSettings, constraintIndexOptions, constraints } = parts;
  const { foreignKeys, indexSettings, inheritedNotNulls, ownedSequences, rules, statistics } = parts;
  const queriesOf = (...definitions: readonly Definition[]) => definitions.map(toArchiveQuery);
  return {
    objects: [...queriesOf(...typeDefinitions(form)), userMappings, ...queriesOf(...relationDefinitions(form))],
    objectsAfterRows: queriesOf(
      parts.indexes(form),
      constraints,
      parts.defaults(form),
      rules,
      parts.triggers(form),
      statistics,
    ),
    beforeRows: queriesOf(attachedPartitions, parts.typedTables, inheritedNotNulls),
    afterRows: queriesOf(
      ...[attachedIndexes, foreignKeys, parts.unvalidatedNotNulls, ownedSequences, constraintIndexOptions],
      ...[indexSettings, columnSettings, publications(form), parts.tableSettings(form), parts.policies(form)],
    ),
    refreshes: queriesOf(parts.refreshes),
    eventTriggers: queriesOf(parts.eventTriggers),
  };
}

/**
 * The queries for reading and comparing a schema, in the order for reading the statements about one object. A user mapping
 * belongs to a role, and may contain a password.
 */
export function comparisonQueries(version: number) {
  const form = { version, isArchive: false };
  const { attachedPartitions, columnSettings, constraintIndexOptions, indexSettings, rules, typedTables } = parts;
  const objects = [parts.eventTriggers, parts.statistics, publications(form)];
  const relationParts = [parts.indexes(form), rules, parts.triggers(form), parts.defaults(form), attachedPartitions];
  const settings = [typedTables, constraintIndexOptions, indexSettings, columnSettings, parts.tableSettings(form)];
  return {
    definitions: [
      ...[...typeDefinitions(form), ...relationDefinitions(form), ...objects].map(toComparisonQuery),
      defaultPrivileges(form).join(" union all "),
      ...[...relationParts, ...settings, parts.policies(form)].map(toComparisonQuery),
    ],
    groupedGrants,
    singleGrants,
    comments,
    tableParts: [tablePartQuery(form), publishedTableQuery(form)],
  };
}

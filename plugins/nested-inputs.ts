import { bakedInputRuntime } from "grafast";
import {
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
} from "grafast/graphql";
import { memoizePerObject } from "#runtime";
import { makeExtension } from "./extension.ts";
import { validIdOf } from "./IdScalarPlugin.ts";
import { withUniqueNames } from "./name-claims.ts";
import { isTable, type PgRelation, type PgTable, type SchemaResource, writableColumnsOf } from "./table.ts";
import { type NamedRelation, relationsOf } from "./WherePlugin.ts";
import { writtenColumnOf } from "./written-columns.ts";

type NestedInsertTag = true | "forward" | "backward";

declare global {
  namespace GraphileBuild {
    interface PgCodecRelationTags {
      /** The inputs that create rows have a field for the row that the foreign key refers to, and one for the rows that refer to it. */
      nestedInsert: NestedInsertTag;
    }
    interface PgResourceTags {
      /** The same for all foreign keys of the table. */
      nestedInsert: NestedInsertTag;
    }
  }
}

/** A row to insert, with related rows. */
export type RowInput = {
  readonly table: PgTable;
  readonly columns: ReadonlyMap<string, unknown>;
  readonly related: readonly RelatedRowInputs[];
};

/** The rows of one field. Null: the foreign key is null. */
type RelatedRowInputs = {
  readonly relation: PgRelation;
  readonly field: string;
  readonly rows: readonly RowInput[] | null;
};

/**
 * The relations along which a row can be inserted together with its containing row, from which `through` leads. They are named as relations; a
 * column's field keeps its name.
 */
export function nestedRelationsOf(
  build: GraphileBuild.Build,
  table: PgTable,
  through: PgRelation | null,
): readonly NamedRelation[] {
  const relations = allNestedRelationsOf(table, build);
  if (!through) return relations;
  const taken = takenColumns(through);
  return relations.filter(({ relation }) => {
    const isSetTwice = !relation.isReferencee && relation.localAttributes.some((column) => taken.includes(column));
    return !isSetTwice && !isReverse(relation, through);
  });
}

/** The columns of the related rows that the row around them sets. */
export function takenColumns({ isReferencee, remoteAttributes }: PgRelation): readonly string[] {
  return isReferencee ? remoteAttributes : [];
}

const allNestedRelationsOf = memoizePerObject((table: PgTable, build: GraphileBuild.Build): NamedRelation[] => {
  const { inflection } = build;
  const { codec } = table;
  const offered = relationsOf(table, build).filter(({ relation }) => isOffered(build, table, relation));
  const columns = Object.keys(codec.attributes).map((attributeName) => inflection.attribute({ attributeName, codec }));
  const named = offered.map((each) => [each.name, each] as const);
  return [...withUniqueNames(named, (name) => columns.includes(name))].map(([name, each]) => ({ ...each, name }));
});

function isOffered(build: GraphileBuild.Build, table: PgTable, relation: PgRelation): boolean {
  const target = relation.remoteResource as SchemaResource;
  if (!isTable(target) || build.behavior.pgResourceMatches(target, "resource:insert") !== true) return false;
  // Sign-ups are counted one by one.
  if (target.extensions?.tags?.signUp) return false;
  const taken = takenColumns(relation);
  if (writableColumnsOf(build, target, "insert").every((column) => taken.includes(column))) return false;
  const { tags } = relation.extensions ?? {};
  const referencing = relation.isReferencee ? target : table;
  const tag = tags?.nestedInsert ?? referencing.extensions?.tags?.nestedInsert;
  return tag === true || tag === (relation.isReferencee ? "backward" : "forward");
}

/** True if the relations use one foreign key in opposite directions. */
function isReverse(one: PgRelation, other: PgRelation): boolean {
  return (
    one.isReferencee !== other.isReferencee &&
    one.localCodec === other.remoteResource.codec &&
    one.remoteResource.codec === other.localCodec &&
    one.localAttributes.join() === other.remoteAttributes.join() &&
    one.remoteAttributes.join() === other.localAttributes.join()
  );
}

const nestedRelation = makeExtension<PgRelation>("nestedRelation");
export const withNestedRelation = nestedRelation.add;

/** True if the input has fields for related rows. */
export function hasNestedFields(inputType: GraphQLInputType): boolean {
  const type = getNamedType(inputType);
  return isInputObjectType(type) && isInputOfSeveral(type);
}

const isInputOfSeveral = memoizePerObject((type: GraphQLInputObjectType): boolean =>
  Object.values(type.getFields()).some((field) => nestedRelation.of(field) !== null),
);

/** Marks the types of related rows. */
export const NESTED_TYPE_EXTENSION = { isNestedRow: true };

/** True for a value of rows that are inserted together. Their number and columns do not change the statement. */
export function isNestedValue(type: GraphQLInputType): boolean {
  return getNamedType(type).extensions.isNestedRow === true || hasNestedFields(type);
}

/** Reads the value of an input. */
export function readRowInput(
  schema: GraphQLSchema,
  inputType: GraphQLInputType,
  table: PgTable,
  value: object,
): RowInput {
  const type = getNamedType(inputType);
  if (!isInputObjectType(type)) throw new TypeError(`${type} is no input of a row`);
  const columns = new Map<string, unknown>();
  const related: RelatedRowInputs[] = [];
  const given = value as Readonly<Record<string, unknown>>;
  for (const field of Object.values(type.getFields())) {
    const { name } = field;
    if (!Object.hasOwn(given, name) || given[name] === undefined) continue;
    const relation = nestedRelation.of(field);
    if (relation) related.push({ relation, field: name, rows: readRows(schema, field.type, relation, given[name]) });
    else {
      const { column, codec } = writtenColumnOf(field)!;
      columns.set(column, bakedInputRuntime(schema, field.type, validIdOf(given[name], codec)));
    }
  }
  return { table, columns, related };
}

function readRows(
  schema: GraphQLSchema,
  type: GraphQLInputType,
  { remoteResource }: PgRelation,
  value: unknown,
): readonly RowInput[] | null {
  if (value === null) return null;
  const items = Array.isArray(value) ? value : [value];
  return items.map((item) => readRowInput(schema, type, remoteResource as PgTable, item));
}

import type { PgCodecAttribute } from "@dataplan/pg";
import { functionOfField } from "./FunctionPrecedencePlugin.ts";
import { type FieldSource, functionArgumentsOf, sourceOf, toPagePart, withSource } from "./field-sources.ts";
import { nodeIdSource, nodeSource } from "./NodePlugins.ts";
import type { OrderValueReader } from "./OrderByPlugin.ts";
import { requestedOrder, rowOrderOf } from "./PaginationPlugin.ts";
import {
  type Codec,
  columnOf,
  type FieldScope,
  isTable,
  keyOf,
  type PgRelation,
  type PgTable,
  relationOf,
  type SchemaResource,
} from "./table.ts";
import { conditionFieldsOf } from "./WherePlugin.ts";

export const FieldSourcesPlugin: GraphileConfig.Plugin = {
  name: "FieldSourcesPlugin",
  description: "Fields carry the column, relation, table or function that they stand for",
  schema: {
    hooks: {
      GraphQLInterfaceType(type, _build, { scope: { pgPolymorphism } }) {
        if (pgPolymorphism?.mode !== "union") return type;
        throw new Error(`"@interface mode:union" is not supported: ${type.name} can be mode:relational`);
      },
      GraphQLObjectType_fields_field(field, build, { scope, Self }) {
        const source = sourceOf(field) ?? nodeIdSource(build, scope, Self.name) ?? sourceOfScope(build, scope);
        if (source) return withSource(field, source);
        if (!needsSource(scope)) return field;
        throw new Error(`The field ${Self.name}.${scope.fieldName}, which "@behavior" has added, is not supported`);
      },
    },
  },
};

/** True for the fields of queries, mutations and rows. */
function needsSource({ isRootQuery, isRootMutation, isPgConnectionRelated, pgCodec }: FieldScope): boolean {
  const isOfRow = Boolean(pgCodec?.attributes) && !isPgConnectionRelated;
  return Boolean(isRootQuery || isRootMutation || isOfRow);
}

function sourceOfScope(build: GraphileBuild.Build, scope: FieldScope): FieldSource | null {
  const { fieldName, pgCodec, pgFieldAttribute, pgRelationDetails, isConnectionType, isConnectionEdgeType } = scope;
  if (scope.isRootMutation || scope.isRootSubscription || fieldName === undefined) return null;
  if (scope.isRootNodeField) return nodeSource(build);
  if (isConnectionType || isConnectionEdgeType || scope.isPageInfo) {
    const part = toPagePart(fieldName);
    return part && { kind: "page", part };
  }
  if (pgFieldAttribute) {
    const { codec, via, expression } = pgFieldAttribute;
    if (expression) return null;
    const column = columnOf(pgCodec!, pgFieldAttribute);
    if (via) return sourceOfOtherColumn(build, pgCodec!, column, pgFieldAttribute);
    const isRow = Boolean(codec.attributes) && codec.extensions?.isTableLike !== false;
    const table = isRow ? (build.pgTableResource(codec as never) as SchemaResource | null) : null;
    return { kind: "column", column, codec, table, via: null };
  }
  if (pgRelationDetails) {
    const relation = relationOf(pgRelationDetails);
    return relation ? sourceOfRelation(build, scope, relation) : null;
  }
  return scope.pgRefDetails ? sourceOfRef(build, scope.pgRefDetails) : sourceOfResource(build, scope);
}

/** A column that the type has of another table, to whose row a relation leads. */
function sourceOfOtherColumn(
  { input: { pgRegistry } }: GraphileBuild.Build,
  { name }: Codec,
  column: string,
  { codec, via }: PgCodecAttribute,
): FieldSource | null {
  const { relation: relationName, attribute } =
    typeof via === "string" ? { relation: via, attribute: column } : { attribute: column, ...via };
  const relation = pgRegistry.pgRelations[name]?.[relationName!];
  return relation?.isUnique ? { kind: "column", column: attribute, codec, table: null, via: relation } : null;
}

function sourceOfRelation(
  build: GraphileBuild.Build,
  { isPgSingleRelationField, isPgManyRelationListField }: FieldScope,
  relation: PgRelation,
): FieldSource | null {
  if (isPgSingleRelationField) return { kind: "related row", path: [relation] };
  const table = relation.remoteResource as SchemaResource;
  if (!isPgManyRelationListField || !isTable(table)) return null;
  return { kind: "rows", relation, isConnection: false, ...rowsOf(build, table) };
}

/** A reference over several tables. Each row leads to at most one row, along one path. */
function sourceOfRef(
  { inflection }: GraphileBuild.Build,
  { registry, codec, ref }: GraphileBuild.PgRelationsPluginRefDetails,
): FieldSource {
  const { paths, definition } = ref;
  const path: PgRelation[] = [];
  for (const { relationName } of paths[0]!) {
    const from = path.at(-1)?.remoteResource.codec ?? codec;
    path.push(registry.pgRelations[from.name]![relationName]!);
  }
  const typeName = inflection.tableType(path.at(-1)!.remoteResource.codec);
  const isOfTable = (definition.graphqlType ?? typeName) === typeName;
  const isOne = Boolean(definition.singular) && path.every(({ isUnique }) => isUnique);
  if (isOne && isOfTable && paths.length === 1) return { kind: "related row", path };
  const [name] = Object.entries(codec.refs ?? {}).find(([, each]) => each === ref) ?? [];
  const line = [codec.extensions?.tags?.ref ?? []].flat().find((text) => String(text).split(/\s/, 1)[0] === name);
  throw new Error(`"@ref ${line ?? name}" of ${codec.name} must be singular, and lead along one path to one row`);
}

function sourceOfResource(build: GraphileBuild.Build, scope: FieldScope): FieldSource | null {
  const { pgFieldResource: resource, pgFieldResourceUnique: unique } = scope;
  const isConnection = scope.isPgFieldConnection === true;
  const called = functionOfField(build, scope);
  if (called) return isConnection ? null : sourceOfFunction(build, called, !scope.isRootQuery);
  if (!resource || !isTable(resource) || !scope.isRootQuery) return null;
  if (unique) {
    const key = unique.attributes.map((column: string) => ({
      column,
      argument: build.inflection.attribute({ attributeName: column, codec: resource.codec }),
    }));
    return { kind: "row", table: resource, key };
  }
  if (!isConnection && !scope.isPgFieldSimpleCollection) return null;
  if (isConnection && keyOf(resource) === null) return null;
  return { kind: "rows", relation: null, isConnection, ...rowsOf(build, resource) };
}

function rowsOf(build: GraphileBuild.Build, table: PgTable) {
  // A comment that names no column is an error of the build.
  rowOrderOf(table, build);
  return {
    table,
    orderOf: (orderBy: unknown, reader: OrderValueReader) => requestedOrder(table, build, orderBy, reader),
    conditionFields: () => conditionFieldsOf(table, build),
    maxPageSize: build.options.maxPageSize!,
  };
}

function sourceOfFunction(build: GraphileBuild.Build, resource: SchemaResource, ofRow: boolean): FieldSource {
  const args = functionArgumentsOf(build, resource, ofRow ? 1 : 0);
  return { kind: "call", resource, args, ofRow, maxPageSize: build.options.maxPageSize! };
}

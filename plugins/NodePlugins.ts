import { isInterfaceType } from "grafast/graphql";
import { AddNodeInterfaceToSuitableTypesPlugin, NodeIdCodecBase64JSONPlugin, NodePlugin } from "graphile-build";
import { PgTableNodePlugin } from "graphile-build-pg";
import { memoizePerObject } from "#runtime";
import type { FieldSource, NodeTable } from "./field-sources.ts";
import { rowTypesOf } from "./row-types.ts";
import { type FieldScope, type PgTable, primaryKeyOf, tablesOf } from "./table.ts";
import { mayUse, withVisibility } from "./VisibilityPlugin.ts";

const NODE_TYPE = "Node";
const NODE_FIELD = "node";
const NODE_ID = "nodeId";

/** Core's plugins for `Node`, `node(nodeId)` and global ids. Its accessors by global id would have the names of our fields. */
export const CORE_NODE_PLUGINS: readonly GraphileConfig.Plugin[] = [
  NodePlugin,
  AddNodeInterfaceToSuitableTypesPlugin,
  NodeIdCodecBase64JSONPlugin,
];

/** Core's plugin for nodes of tables, placed after the replacement of core's plugin of tables. */
export const TableNodesPlugin: GraphileConfig.Plugin = {
  ...PgTableNodePlugin,
  name: "TableNodesPlugin",
  after: ["IndexedTablesPlugin", "IndexedPolymorphismPlugin"],
  schema: {
    ...PgTableNodePlugin.schema,
    hooks: {
      init: {
        after: ["IndexedTablesPlugin", "PgCodecs", "default"],
        callback: PgTableNodePlugin.schema!.hooks!.init as never,
      },
    },
  },
};

/** Implements GRAPHQL_NODE. Database objects that have the names of Relay's objects are renamed. */
export const NodeIdsPlugin: GraphileConfig.Plugin = {
  name: "NodeIdsPlugin",
  description: "Rows have a global id, nodeId, beside their own, for roles that may select their key",
  after: ["NamesPlugin", "NodePlugin"],
  inflection: {
    replace: {
      nodeIdFieldName: () => NODE_ID,
      _singularizedResourceName: (previous, _preset, resource) => {
        const name = previous!(resource);
        return name.toLowerCase() === NODE_FIELD ? `${name}_record` : name;
      },
      customQueryField: (previous, _preset, details) => renamed(previous!(details), NODE_FIELD),
      attribute: (previous, _preset, details) => renamed(previous!(details), NODE_ID),
      computedAttributeField: (previous, _preset, details) => renamed(previous!(details), NODE_ID),
    },
  },
  schema: {
    hooks: {
      GraphQLInterfaceType: (config) =>
        config.name === NODE_TYPE ? { ...config, extensions: { ...config.extensions, ...LOSABLE } } : config,
      GraphQLObjectType_fields_field(field, build, { scope, Self }) {
        const node = nodeOfIdField(build, scope, Self.name);
        if (!node) return field;
        const { table, key, rowType } = node;
        return withVisibility(field, mayUse("select", table, [...key, ...(rowType ? [rowType.column] : [])]));
      },
    },
  },
};

/** The tables whose rows have a global id, by the names of their types. */
const nodeTablesOf = memoizePerObject((build: GraphileBuild.Build): ReadonlyMap<string, NodeTable> => {
  const nodes = tablesOf(build)
    .flatMap((table) => nodesOfTable(build, table))
    .filter(({ typeName }) => build.getNodeIdHandler?.(typeName));
  return new Map(nodes.map((node) => [node.typeName, node]));
});

/** Several for a table that several types share (`@interface mode:single`). */
function nodesOfTable({ inflection }: GraphileBuild.Build, table: PgTable): NodeTable[] {
  const key = primaryKeyOf(table);
  if (!key) return [];
  const shared = table.codec.polymorphism?.mode === "single" ? rowTypesOf(table) : null;
  if (!shared) return [{ table, typeName: inflection.tableType(table.codec), key, rowType: null }];
  const { column, types } = shared;
  return types.map(({ typeName, value }) => ({ table, typeName, key, rowType: { column, value } }));
}

function nodeOfIdField(build: GraphileBuild.Build, { fieldName }: FieldScope, typeName: string): NodeTable | null {
  return (fieldName === NODE_ID && nodeTablesOf(build).get(typeName)) || null;
}

/** The source of the field `nodeId`; null for other fields. */
export function nodeIdSource(build: GraphileBuild.Build, scope: FieldScope, typeName: string): FieldSource | null {
  const node = nodeOfIdField(build, scope, typeName);
  return node && { kind: "node id", ...node };
}

/** The source of the field `node`. */
export function nodeSource(build: GraphileBuild.Build): FieldSource {
  return { kind: "node", argument: NODE_ID, nodeOf: (typeName) => nodeTablesOf(build).get(typeName) ?? null };
}

const LOSABLE = { isLosable: true };

/** True if a type loses the interface when a role's schema hides one of the interface's fields in it. */
export function isLosableInterface(type: object): boolean {
  return isInterfaceType(type) && type.extensions.isLosable === true;
}

function renamed(name: string, taken: string): string {
  return name === taken ? `${name}_` : name;
}

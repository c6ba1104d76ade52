import { type GraphQLFieldConfigMap, isInterfaceType } from "grafast/graphql";
import { AddNodeInterfaceToSuitableTypesPlugin, NodeIdCodecBase64JSONPlugin, NodePlugin } from "graphile-build";
import { PgTableNodePlugin } from "graphile-build-pg";
import { memoizePerObject } from "#runtime";
import { type FieldSource, type NodeTable, withSource } from "./field-sources.ts";
import { isTable, type SchemaResource } from "./table.ts";
import { maySelectKey, withVisibility } from "./VisibilityPlugin.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      NodeIdsPlugin: true;
      TableNodesPlugin: true;
    }
  }
}

const NODE_TYPE = "Node";
const NODE_FIELD = "node";
export const NODE_ID = "nodeId";

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
  after: ["NamesPlugin", "NameClashesPlugin", "NodePlugin"],
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
      GraphQLObjectType_fields: {
        after: ["AddNodeInterfaceToSuitableTypesPlugin"],
        callback(fields, build, { Self, scope }) {
          const field = fields[NODE_ID];
          if (!field || !build.getNodeIdHandler!(Self.name) || !scope.pgCodec) return fields;
          const table = build.pgTableResource(scope.pgCodec as never) as SchemaResource | null;
          if (!table || !isTable(table)) return fields;
          const node = nodeTablesOf(build).get(Self.name);
          const sourced = node ? withSource(field, { kind: "node id", ...node }) : field;
          const changed: GraphQLFieldConfigMap<unknown, unknown> = {
            ...fields,
            [NODE_ID]: withVisibility(sourced, maySelectKey(table)),
          };
          return changed as typeof fields;
        },
      },
    },
  },
};

/** The tables whose rows have a global id, by the names of their types. */
const nodeTablesOf = memoizePerObject((build: GraphileBuild.Build): ReadonlyMap<string, NodeTable> => {
  const tables = Object.values(build.pgResources).filter(isTable);
  const nodes = tables.flatMap((table): [string, NodeTable][] => {
    const typeName = build.inflection.tableType(table.codec);
    const key = table.uniques.find(({ isPrimary }) => isPrimary)?.attributes;
    return key && build.getNodeIdHandler!(typeName) ? [[typeName, { table, typeName, key }]] : [];
  });
  return new Map(nodes);
});

/** The source of the field `node`. */
export function nodeSource(build: GraphileBuild.Build): FieldSource {
  return { kind: "node", argument: NODE_ID, nodeOf: (typeName) => nodeTablesOf(build).get(typeName) ?? null };
}

const LOSABLE = { isLosable: true } as const;

/** True if a type loses the interface when a role's schema hides one of the interface's fields in it. */
export function isLosableInterface(type: object): boolean {
  return isInterfaceType(type) && Boolean((type.extensions as Partial<typeof LOSABLE>).isLosable);
}

function renamed(name: string, taken: string): string {
  return name === taken ? `${name}_` : name;
}

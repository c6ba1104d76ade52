import { defaultPreset as graphileBuildPreset } from "graphile-build";
import {
  defaultPreset as graphileBuildPgPreset,
  PgAllRowsPlugin,
  PgAttributesPlugin,
  PgBasicsPlugin,
  PgCodecsPlugin,
  PgCustomTypeFieldPlugin,
  PgRelationsPlugin,
  PgRowByUniquePlugin,
  PgTypesPlugin,
} from "graphile-build-pg";
import { type Catalog, updatableEvents } from "#catalog";
import { AggregatesPlugin } from "./AggregatesPlugin.ts";
import { ArrayDimensionsPlugin } from "./ArrayDimensionsPlugin.ts";
import { BuiltInTypesPlugin } from "./BuiltInTypesPlugin.ts";
import { BulkMutationsPlugin } from "./BulkMutationsPlugin.ts";
import { CallableFunctionsPlugin } from "./CallableFunctionsPlugin.ts";
import { ClientRolesPlugin } from "./ClientRolesPlugin.ts";
import { CollectionsPlugin, ConnectionShapePlugin } from "./ConnectionPlugins.ts";
import { EmptySchemaPlugin } from "./EmptySchemaPlugin.ts";
import { FieldSourcesPlugin } from "./FieldSourcesPlugin.ts";
import { FiltersPlugin } from "./FiltersPlugin.ts";
import { ForeignKeysPlugin } from "./ForeignKeysPlugin.ts";
import { FunctionArgumentsPlugin } from "./FunctionArgumentsPlugin.ts";
import { FunctionMutationsPlugin } from "./FunctionMutationsPlugin.ts";
import { FunctionPrecedencePlugin } from "./FunctionPrecedencePlugin.ts";
import { IdScalarPlugin } from "./IdScalarPlugin.ts";
import {
  IndexedIntrospectionPlugin,
  IndexedLookupsPlugin,
  IndexedPolymorphismPlugin,
  IndexedTablesPlugin,
  MemoizedBehaviorsPlugin,
} from "./LinearTimePlugins.ts";
import { LiveQueryPlugin } from "./LiveQueryPlugin.ts";
import { NamesPlugin } from "./NamesPlugin.ts";
import { NestedInsertPlugin } from "./NestedInsertPlugin.ts";
import { CORE_NODE_PLUGINS, NodeIdsPlugin, TableNodesPlugin } from "./NodePlugins.ts";
import { NonNullPlugin } from "./NonNullPlugin.ts";
import { OrderByPlugin } from "./OrderByPlugin.ts";
import { PaginationPlugin } from "./PaginationPlugin.ts";
import { RowPresencePlugin } from "./RowPresencePlugin.ts";
import { JsonScalarPlugin, ScalarInputPlugin, StrictScalarsPlugin, TimeScalarPlugin } from "./ScalarPlugins.ts";
import { SearchResultsPlugin } from "./SearchResultsPlugin.ts";
import { SubscriptionsPlugin } from "./SubscriptionsPlugin.ts";
import { TableMutationsPlugin } from "./TableMutationsPlugin.ts";
import { TransactionPlugin } from "./TransactionPlugin.ts";
import { CompositeTypesPlugin, EnumsPlugin, ExtensionTypesPlugin } from "./TypePlugins.ts";
import { TypesInOrderPlugin } from "./TypesInOrderPlugin.ts";
import { UnloggedTablesPlugin, VisibilityPlugin } from "./VisibilityPlugin.ts";
import { WherePlugin } from "./WherePlugin.ts";

export type PresetOptions = {
  readonly pgService: GraphileConfig.PgServiceConfiguration;
  /** The maximum number of rows that one list or connection returns. */
  readonly maxPageSize: number;
  /** True if connections have sums, averages and extreme values of their rows. */
  readonly aggregates?: boolean;
  /** Knows which views are updatable. Absent: Postgres is asked. */
  readonly catalog?: Catalog;
  /** True if rows are a `Node` of Relay, with global ids. */
  readonly nodes?: boolean;
};

declare global {
  namespace GraphileBuild {
    interface SchemaOptions {
      maxPageSize?: number;
    }
  }
}

/** The order of PostGraphile's Amber preset: fields and types appear in the schema in the order of their plugins. */
const PLUGINS_IN_ORDER: GraphileConfig.Preset = {
  plugins: [
    PgBasicsPlugin,
    PgCodecsPlugin,
    PgTypesPlugin,
    PgAllRowsPlugin,
    PgRowByUniquePlugin,
    PgAttributesPlugin,
    PgRelationsPlugin,
    PgCustomTypeFieldPlugin,
  ],
};

const OWN_PLUGINS: readonly GraphileConfig.Plugin[] = [
  MemoizedBehaviorsPlugin,
  IndexedIntrospectionPlugin,
  IndexedLookupsPlugin,
  IndexedPolymorphismPlugin,
  IndexedTablesPlugin,
  ClientRolesPlugin,
  UnloggedTablesPlugin,
  CallableFunctionsPlugin,
  IdScalarPlugin,
  TimeScalarPlugin,
  JsonScalarPlugin,
  BuiltInTypesPlugin,
  StrictScalarsPlugin,
  ScalarInputPlugin,
  NamesPlugin,
  CollectionsPlugin,
  ForeignKeysPlugin,
  FunctionPrecedencePlugin,
  PaginationPlugin,
  ConnectionShapePlugin,
  FiltersPlugin,
  WherePlugin,
  OrderByPlugin,
  AggregatesPlugin,
  SearchResultsPlugin,
  FunctionArgumentsPlugin,
  FunctionMutationsPlugin,
  EnumsPlugin,
  ExtensionTypesPlugin,
  NonNullPlugin,
  TableMutationsPlugin,
  NestedInsertPlugin,
  BulkMutationsPlugin,
  TransactionPlugin,
  SubscriptionsPlugin,
  LiveQueryPlugin,
  RowPresencePlugin,
  CompositeTypesPlugin,
  ArrayDimensionsPlugin,
  EmptySchemaPlugin,
  VisibilityPlugin,
  FieldSourcesPlugin,
  TypesInOrderPlugin,
];

/** Makes the preset that turns the catalog into a GraphQL schema. */
export function makePreset({
  pgService,
  maxPageSize,
  aggregates = false,
  catalog,
  nodes = false,
}: PresetOptions): GraphileConfig.Preset {
  return {
    extends: [PLUGINS_IN_ORDER, graphileBuildPreset, graphileBuildPgPreset],
    plugins: [...OWN_PLUGINS, ...(nodes ? [TableNodesPlugin, NodeIdsPlugin] : [])],
    disablePlugins: [...DISABLED_PLUGINS, ...(nodes ? [] : CORE_NODE_PLUGINS.map(({ name }) => name))],
    pgServices: [pgService],
    // It warns of several foreign keys over the same columns, which are one relation here, and of unknown global ids.
    gather: {
      pgStrictFunctions: true,
      installWatchFixtures: false,
      muteWarnings: true,
      ...(catalog && { viewEvents: (schema, name) => updatableEvents(catalog.findTable({ schema, name })) }),
    },
    schema: {
      pgForbidSetofFunctionsToReturnNull: true,
      defaultBehavior: "list connection",
      muteWarnings: true,
      maxPageSize,
      aggregates,
    },
  };
}

const DISABLED_PLUGINS: readonly GraphileConfig.Plugin["name"][] = [
  // Replaced by IndexedIntrospectionPlugin, IndexedPolymorphismPlugin and IndexedTablesPlugin.
  "PgIntrospectionPlugin",
  "PgPolymorphismPlugin",
  "PgTablesPlugin",
  // Replaced by TypesInOrderPlugin, which does not recurse per type.
  "CollectReferencedTypesPlugin",
  "NodeIdCodecPipeStringPlugin",
  "RegisterQueryNodePlugin",
  "NodeAccessorPlugin",
  // Replaced by TableNodesPlugin.
  "PgTableNodePlugin",
  "PgNodeIdAttributesPlugin",
  "MutationPayloadQueryPlugin",
  "ClientMutationIdDescriptionPlugin",
  "PgMutationPayloadEdgePlugin",
  "PgMutationCreatePlugin",
  "PgMutationUpdateDeletePlugin",
  "PgConditionArgumentPlugin",
  "PgConditionCustomFieldsPlugin",
  "PgConnectionArgOrderByPlugin",
  "PgConnectionArgOrderByDefaultValuePlugin",
  "PgOrderByPrimaryKeyPlugin",
  "PgOrderAllAttributesPlugin",
  "PgOrderCustomFieldsPlugin",
  "PgFirstLastBeforeAfterArgsPlugin",
  "PgIndexBehaviorsPlugin",
  "BuiltinScalarConnectionsPlugin",
  "PgJWTPlugin",
];

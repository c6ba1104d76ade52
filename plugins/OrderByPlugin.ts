import { isEnumCodec } from "@dataplan/pg";
import type { SQL } from "@dataplan/pg/pg-sql2";
import type { GraphQLInputFieldConfig } from "grafast/graphql";
import { memoizePerObject } from "#runtime";
import { baseCodecOf } from "./codecs.ts";
import { AddedTypes, withUniqueNames } from "./name-claims.ts";
import { type InputObject, SEARCH_RESULT_CODECS, searchResultOf } from "./row-conditions.ts";
import type { BindValue } from "./row-operators.ts";
import { type Codec, type PgRelation, type PgTable, tablesOf } from "./table.ts";
import { mayFollowRelation, mayUse, withVisibility } from "./VisibilityPlugin.ts";
import {
  collectionTableOf,
  columnsAndRelations,
  conditionFieldsOf,
  isSearchedTable,
  type NamedRowField,
  ROW_ARGUMENT,
  relationsOf,
  searchTypeOf,
  visibleColumnsOf,
} from "./WherePlugin.ts";

declare global {
  namespace GraphileBuild {
    interface ScopeInputObject {
      isRowOrder?: boolean;
    }
  }
}

type OrderDirection = {
  readonly direction: "ASC" | "DESC";
  /** The place of nulls; by default, as in Postgres, last if ascending and first if descending. */
  readonly nulls?: "FIRST" | "LAST";
};

/** A value that is computed from a row and may be null. */
type ComputedOrderValue = { readonly valueFor: (row: SQL) => SQL; readonly codec: Codec; readonly notNull?: never };

/** A term of the order of rows: a column or a computed value of the row itself, or of the row that the relations lead to. */
export type RowOrderTerm = OrderDirection & {
  readonly relations?: readonly PgRelation[];
  /** The name of a column, or a computed value. */
  readonly by: string | ComputedOrderValue;
};

const SORT_DIRECTIONS: Readonly<Record<string, OrderDirection & { readonly description: string }>> = {
  ASC: { direction: "ASC", description: "Ascending, nulls last." },
  DESC: { direction: "DESC", description: "Descending, nulls first." },
  ASC_NULLS_FIRST: { direction: "ASC", nulls: "FIRST", description: "Ascending, nulls first." },
  ASC_NULLS_LAST: { direction: "ASC", nulls: "LAST", description: "Ascending, nulls last." },
  DESC_NULLS_FIRST: { direction: "DESC", nulls: "FIRST", description: "Descending, nulls first." },
  DESC_NULLS_LAST: { direction: "DESC", nulls: "LAST", description: "Descending, nulls last." },
};

export const OrderByPlugin: GraphileConfig.Plugin = {
  name: "OrderByPlugin",
  description: "Collections are ordered by any column, and by the columns of rows that they refer to",
  schema: {
    hooks: {
      init: {
        after: ["PgCodecs", "IndexedTablesPlugin", "FiltersPlugin", "WherePlugin"],
        callback(_, build) {
          orderTypes.registerEnum(build, null, "SortDirection", "The direction of an order.", SORT_DIRECTIONS);
          for (const table of tablesOf(build)) registerOrderType(build, table);
          return _;
        },
      },
      GraphQLObjectType_fields_field_args: {
        // An argument for a column named "order_by" keeps its name.
        after: ["FiltersPlugin", "PaginationPlugin"],
        callback(args, build, { scope, Self }) {
          const table = collectionTableOf(scope);
          const type = table && orderTypeOf(build, table);
          if (!type || "orderBy" in args) return args;
          const { GraphQLList, GraphQLNonNull } = build.graphql;
          const orderBy = {
            type: new GraphQLList(new GraphQLNonNull(type)),
            description: "The order of the rows; the key decides among equal ones.",
            extensions: ROW_ARGUMENT,
          };
          return build.extend(args, { orderBy }, `Ordering ${Self.name}.${scope.fieldName}`);
        },
      },
    },
  },
};

/** The types of orders by table; null is the key of the direction. */
const orderTypes = new AddedTypes<PgTable | null>();
const rankTypes = new AddedTypes<PgTable>();

/** Null if no column has an order. */
export function orderTypeOf(build: GraphileBuild.Build, table: PgTable) {
  if (sortableColumnsOf(table, build).length === 0) return null;
  return orderTypes.inputOf(build, table);
}

function registerOrderType(build: GraphileBuild.Build, table: PgTable): void {
  const { inflection } = build;
  const preferred = inflection.inputType(`${inflection.tableType(table.codec)}OrderBy`);
  orderTypes.registerInput(build, table, preferred, { isRowOrder: true }, () => ({
    description: `One column, or the rank of a search, by which ${inflection._allRows(table)} are ordered.`,
    isOneOf: true,
    fields: () =>
      Object.fromEntries([...orderFieldsOf(table, build)].map(([field, of]) => [field, orderField(build, table, of)])),
  }));
  registerRankType(build, table);
}

function registerRankType(build: GraphileBuild.Build, table: PgTable): void {
  const { inflection } = build;
  if (!isSearchedTable(table, build)) return;
  const preferred = inflection.inputType(`${inflection.tableType(table.codec)}SearchRankOrder`);
  const { GraphQLNonNull } = build.graphql;
  rankTypes.registerInput(build, table, preferred, { isRowOrder: true }, () => ({
    description: "An order by how well a search matches.",
    fields: () => ({
      search: { type: new GraphQLNonNull(searchTypeOf(build, table)!), description: "It has exactly one operator." },
      direction: { type: new GraphQLNonNull(directionTypeOf(build)), defaultValue: "DESC" },
    }),
  }));
}

function directionTypeOf(build: GraphileBuild.Build) {
  return orderTypes.inputOf(build, null);
}

type OrderField =
  | { readonly kind: "column"; readonly column: string }
  | { readonly kind: "related row"; readonly relation: PgRelation }
  | { readonly kind: "search rank" };

function orderField(build: GraphileBuild.Build, table: PgTable, field: OrderField): GraphQLInputFieldConfig {
  switch (field.kind) {
    case "column":
      return withVisibility({ type: directionTypeOf(build) }, mayUse("select", table, [field.column]));
    case "related row": {
      const type = orderTypeOf(build, field.relation.remoteResource as PgTable)!;
      return withVisibility({ type }, mayFollowRelation(build, field.relation));
    }
    case "search rank":
      return withVisibility({ type: rankTypes.inputOf(build, table) }, mayUse("select", table));
  }
}

/** The names are those of the `where` input. */
const orderFieldsOf = memoizePerObject(
  (table: PgTable, build: GraphileBuild.Build): ReadonlyMap<string, OrderField> => {
    const toColumn = (column: string): OrderField => ({ kind: "column", column });
    const relations = relationsOf(table, build)
      .filter(
        ({ relation, isMany }) => !isMany && sortableColumnsOf(relation.remoteResource as PgTable, build).length > 0,
      )
      .map(({ name, relation }): NamedRowField<OrderField> => [name, { kind: "related row", relation }]);
    const rank: NamedRowField<OrderField> = ["searchRank", { kind: "search rank" }];
    const named = [
      ...columnsAndRelations(build, table, sortableColumnsOf(table, build), toColumn, relations),
      ...(rankTypes.namesOf(build).has(table) ? [rank] : []),
    ];
    return withUniqueNames(named, (name) => name === "and" || name === "or" || name === "not");
  },
);

export const sortableColumnsOf = memoizePerObject((table: PgTable, build: GraphileBuild.Build): string[] => {
  const { codec } = table;
  return visibleColumnsOf(table, build).filter((column) => {
    // Core has no order for enums.
    const isEnum = isEnumCodec(baseCodecOf(codec.attributes[column]!.codec));
    const behavior = isEnum ? "attribute:filterBy" : "attribute:orderBy";
    return build.behavior.pgCodecAttributeMatches([codec, column], behavior) === true;
  });
});

/** Reads the values within an `orderBy`. */
export type OrderValueReader = {
  readonly bind: BindValue;
  /** A value that becomes part of the statement's text. */
  readonly constantOf: (value: unknown) => unknown;
};

/** The terms of an `orderBy` value. */
export function orderTermsOf(
  build: GraphileBuild.Build,
  table: PgTable,
  orderBy: unknown,
  reader: OrderValueReader,
): RowOrderTerm[] {
  const termOf = (of: PgTable, value: InputObject, relations: readonly PgRelation[]): RowOrderTerm[] => {
    const [[name, inner] = ["", null]] = Object.entries(value);
    const field = orderFieldsOf(of, build).get(name);
    switch (field?.kind) {
      case "related row": {
        const { relation } = field;
        return termOf(relation.remoteResource as PgTable, inner as InputObject, [...relations, relation]);
      }
      case "column":
        return [{ relations, by: field.column, ...directionOf(inner, reader) }];
      case "search rank": {
        const { search, direction } = inner as { readonly search: InputObject; readonly direction: unknown };
        const valueFor = (row: SQL) => searchResultOf("rank", conditionFieldsOf(of, build), search, row, reader.bind);
        const by = { valueFor, codec: SEARCH_RESULT_CODECS.rank };
        return [{ relations, by, ...directionOf(direction, reader) }];
      }
      default:
        return [];
    }
  };
  return ((orderBy ?? []) as readonly InputObject[]).flatMap((value) => termOf(table, value, []));
}

function directionOf(value: unknown, { constantOf }: OrderValueReader): OrderDirection {
  const { direction, nulls } = SORT_DIRECTIONS[constantOf(value) as string]!;
  return { direction, ...(nulls && { nulls }) };
}

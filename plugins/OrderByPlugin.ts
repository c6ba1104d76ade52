import { isEnumCodec } from "@dataplan/pg";
import type {} from "graphile-build-pg";
import { memoizePerObject } from "#runtime";
import { baseCodecOf } from "./codecs.ts";
import { assignUniqueNames, freeTypeName } from "./name-claims.ts";
import { columnsShownAsRelations } from "./relation-names.ts";
import { isTable, type PgRelation, type PgTable } from "./table.ts";
import { mayFollowRelation, mayUse, withVisibility } from "./VisibilityPlugin.ts";
import { collectionTableOf, ROW_ARGUMENT, relationsOf, visibleColumnsOf } from "./WherePlugin.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      OrderByPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface ScopeInputObject {
      isRowOrder?: boolean;
    }
  }
}

/** A column by which rows are ordered: their own, or one of the row that the relations lead to. */
export type RowOrderTerm = {
  readonly relations?: readonly PgRelation[];
  readonly attribute: string;
  readonly direction: "ASC" | "DESC";
  /** As Postgres has it unless given: the last ascending, the first descending. */
  readonly nulls?: "FIRST" | "LAST";
};

type OrderDirection = Pick<RowOrderTerm, "direction" | "nulls">;

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
          const direction = freeTypeName(build, "SortDirection");
          orderTypeNamesOf(build).set(null, direction);
          build.registerEnumType(
            direction,
            {},
            () => ({
              description: "The direction of an order.",
              values: Object.fromEntries(
                Object.entries(SORT_DIRECTIONS).map(([name, { description }]) => [name, { value: name, description }]),
              ),
            }),
            "OrderByPlugin",
          );
          for (const table of Object.values(build.pgResources).filter(isTable)) registerOrderType(build, table);
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

const orderTypeNamesOf = memoizePerObject((_build: GraphileBuild.Build) => new Map<PgTable | null, string>());

/** Null if no column has an order. */
export function orderTypeOf(build: GraphileBuild.Build, table: PgTable) {
  if (sortableColumnsOf(table, build).length === 0) return null;
  return build.getInputTypeByName(orderTypeNamesOf(build).get(table)!);
}

function registerOrderType(build: GraphileBuild.Build, table: PgTable): void {
  const { inflection } = build;
  const name = freeTypeName(build, inflection.inputType(`${inflection.tableType(table.codec)}OrderBy`));
  orderTypeNamesOf(build).set(table, name);
  build.registerInputObjectType(
    name,
    { isRowOrder: true },
    () => ({
      description: `One column by which ${inflection._allRows(table)} are ordered.`,
      isOneOf: true,
      fields: () =>
        Object.fromEntries(
          [...orderFieldsOf(table, build)].map(([field, of]) => [field, orderField(build, table, of)]),
        ),
    }),
    "OrderByPlugin",
  );
}

type OrderField =
  | { readonly kind: "column"; readonly column: string }
  | { readonly kind: "related row"; readonly relation: PgRelation };

function orderField(build: GraphileBuild.Build, table: PgTable, field: OrderField) {
  if (field.kind === "column") {
    const type = build.getInputTypeByName(orderTypeNamesOf(build).get(null)!);
    return withVisibility({ type }, mayUse("select", table, [field.column]));
  }
  const type = orderTypeOf(build, field.relation.remoteResource as PgTable)!;
  return withVisibility({ type }, mayFollowRelation(build, field.relation));
}

/** The names are those of the `where` input. */
const orderFieldsOf = memoizePerObject(
  (table: PgTable, build: GraphileBuild.Build): ReadonlyMap<string, OrderField> => {
    const { codec } = table;
    const hidden = columnsShownAsRelations(codec, build.input.pgRegistry);
    const columns = sortableColumnsOf(table, build).map((column): [string, OrderField] => [
      build.inflection.attribute({ attributeName: column, codec }),
      { kind: "column", column },
    ]);
    const isHidden = ([, field]: [string, OrderField]) => field.kind === "column" && hidden.has(field.column);
    const relations = relationsOf(table, build)
      .filter(
        ({ relation, isMany }) => !isMany && sortableColumnsOf(relation.remoteResource as PgTable, build).length > 0,
      )
      .map(({ name, relation }): [string, OrderField] => [name, { kind: "related row", relation }]);
    const named = [...columns.filter((column) => !isHidden(column)), ...relations, ...columns.filter(isHidden)];
    assignUniqueNames(
      named.map((entry) => ({
        preferred: entry[0],
        suffix: "_",
        derivedNames: (name) => [name],
        rename: (name) => (entry[0] = name),
      })),
      (name) => name === "and" || name === "or" || name === "not",
    );
    return new Map(named);
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

type OrderValue = { readonly [field: string]: string | OrderValue };

/** The terms of an `orderBy` value. */
export function orderTermsOf(build: GraphileBuild.Build, table: PgTable, orderBy: unknown): RowOrderTerm[] {
  return ((orderBy ?? []) as readonly OrderValue[]).flatMap((value) => termOf(build, table, value, []) ?? []);
}

function termOf(
  build: GraphileBuild.Build,
  table: PgTable,
  value: OrderValue,
  relations: readonly PgRelation[],
): RowOrderTerm | null {
  const [[name, inner] = ["", ""]] = Object.entries(value);
  const field = orderFieldsOf(table, build).get(name);
  if (!field) return null;
  if (field.kind === "related row") {
    const { relation } = field;
    return termOf(build, relation.remoteResource as PgTable, inner as OrderValue, [...relations, relation]);
  }
  const { direction, nulls } = SORT_DIRECTIONS[inner as string]!;
  return { relations, attribute: field.column, direction, ...(nulls && { nulls }) };
}

import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import type { GraphQLFieldConfigArgumentMap, GraphQLInputType } from "grafast/graphql";
import { memoizePerObject } from "#runtime";
import { itemCodecOf, toFlatCodec } from "./ArrayDimensionsPlugin.ts";
import { castToComparable } from "./codecs.ts";
import { type FilterSource, withRowFilter } from "./field-sources.ts";
import { uniqueNamesOf } from "./name-claims.ts";
import { equals, operatorOf } from "./operators.ts";
import { type Codec, inputTypeOf, isTable, keyOf, type PgTable, resourcesOf, tablesOf } from "./table.ts";
import { mayExecute, mayUse, type VisibilityRule, withVisibility } from "./VisibilityPlugin.ts";

declare global {
  namespace GraphileBuild {
    interface ScopeInputObject {
      isTableFilter?: boolean;
    }
    interface PgCodecAttributeTags {
      /** Makes the column an argument of the connection, indexed or not. Other columns of the table are then fields of `filter` only. */
      filterable: true;
    }
    interface PgResourceTags {
      /** A function of one argument that returns rows of the table: also a filter of the connection. */
      filter: true;
    }
  }
  namespace DataplanPg {
    interface PgCodecAttributeExtensions {
      /** The access methods of the indexes that begin with this column: btree, gin, … */
      indexedBy?: readonly string[];
    }
  }
}

const EQUALITY_METHODS: ReadonlySet<string> = new Set(["btree", "hash"]);
const RANGE_METHODS: ReadonlySet<string> = new Set(["btree", "brin"]);
const TIME_TYPES: ReadonlySet<string> = new Set(["timestamptz", "timestamp", "date"]);

/** Arguments of a connection that are not filters. */
const RESERVED_ARGUMENTS: ReadonlySet<string> = new Set(["first", "last", "before", "after", "filter"]);

export const FiltersPlugin: GraphileConfig.Plugin = {
  name: "FiltersPlugin",
  description: "Connections are filtered by indexed columns",
  gather: {
    hooks: {
      pgCodecs_attribute(_info, { pgClass, pgAttribute, attribute }) {
        const indexedBy = pgClass
          .getIndexes()
          .filter((index) => index.indpred === null && index.getKeys()[0] === pgAttribute)
          .map((index) => index.getIndexClass()?.getAccessMethod()?.amname ?? "");
        if (indexedBy.length > 0) attribute.extensions = { ...attribute.extensions, indexedBy };
      },
    },
  },
  schema: {
    hooks: {
      init(_, build) {
        for (const table of tablesOf(build)) {
          if (!build.behavior.pgResourceMatches(table, "query:resource:connection")) continue;
          build.registerInputObjectType(
            filterTypeName(build, table),
            { isTableFilter: true },
            () => ({
              description: `Selects the ${build.inflection._allRows(table)} that meet every given condition.`,
              fields: () =>
                Object.fromEntries(tableFiltersOf(table, build).map((filter) => [filter.name, filterInput(filter)])),
            }),
            "FiltersPlugin",
          );
        }
        return _;
      },
      GraphQLObjectType_fields_field_args(args, build, { scope, Self }) {
        const { pgFieldResource: table, isPgFieldConnection, fieldName } = scope;
        if (!isPgFieldConnection || !table || !isTable(table)) return args;
        const filters = tableFiltersOf(table, build);
        if (filters.length === 0) return args;
        const flat = filters.filter(({ name, isFieldArgument }) => isFieldArgument && !RESERVED_ARGUMENTS.has(name));
        const added: GraphQLFieldConfigArgumentMap = Object.fromEntries(
          flat.map((filter) => [filter.name, filterInput(filter)]),
        );
        added.filter = { type: build.getInputTypeByName(filterTypeName(build, table)) };
        return build.extend(args, added, `Filtering ${Self.name}.${fieldName}`);
      },
    },
  },
};

function filterTypeName({ inflection }: GraphileBuild.Build, { codec }: PgTable): string {
  return inflection.inputType(`${inflection.tableType(codec)}Filter`);
}

/** Filters that an index serves (equality, times after and before, an element of an array), and functions that find rows. */
const tableFiltersOf = memoizePerObject((table: PgTable, build: GraphileBuild.Build): TableFilter[] => {
  const { codec } = table;
  const key = keyOf(table);
  const isTagged = (column: string) => Boolean(codec.attributes[column]!.extensions?.tags?.filterable);
  const columns = Object.keys(codec.attributes).filter(
    (column) =>
      (isTagged(column) || codec.attributes[column]!.extensions?.indexedBy) &&
      !(key?.length === 1 && key[0] === column) &&
      build.behavior.pgCodecAttributeMatches([codec, column], "attribute:filterBy"),
  );
  const hasTaggedColumns = columns.some(isTagged);
  const byColumn = columns.flatMap((column) =>
    columnFilters(build, table, column).map((filter) => ({ column, ...filter })),
  );
  const byFunction = functionFilters(build, table);
  const names = resolveFilterNames([...byColumn, ...byFunction]);
  return [
    ...byColumn.map((filter) => ({
      ...filter,
      name: names.get(filter)!,
      isFieldArgument: hasTaggedColumns ? isTagged(filter.column) : filter.isFieldArgument,
    })),
    ...byFunction.map((filter) => ({ ...filter, name: names.get(filter)! })),
  ];
});

/** An argument, or a field of `filter`. */
function filterInput(filter: TableFilter) {
  const { type, description, visibility: rule } = filter;
  return withRowFilter(withVisibility({ type, description }, rule), filter);
}

type TableFilter = FilterSource & {
  readonly name: string;
  readonly description: string;
  readonly type: GraphQLInputType;
  /** True if the filter is also an argument of the field itself, not only a field of `filter`. */
  readonly isFieldArgument: boolean;
  readonly visibility: VisibilityRule;
};

/** Arguments of the field keep their names; a column `tag` comes before the element filter of a column `tags`. */
function resolveFilterNames(filters: readonly TableFilter[]): ReadonlyMap<TableFilter, string> {
  const inOrder = filters.toSorted((one, other) => Number(other.isFieldArgument) - Number(one.isFieldArgument));
  return uniqueNamesOf(inOrder.map((filter) => [filter.name, filter]));
}

function columnFilters(build: GraphileBuild.Build, table: PgTable, column: string): TableFilter[] {
  const row = table.codec;
  const { codec, extensions } = row.attributes[column]!;
  const visibility = mayUse("select", table, [column]);
  const methods = extensions?.indexedBy ?? [];
  const name = build.inflection.attribute({ attributeName: column, codec: row });
  const makeFilter = (
    name: string,
    description: string,
    valueCodec: Codec,
    isFieldArgument: boolean,
    operation: Omit<FilterSource, "condition"> & { readonly condition: (column: SQL, value: SQL) => SQL },
  ): TableFilter[] => {
    const type = inputTypeOf(build, valueCodec);
    if (!type) return [];
    const condition: FilterSource["condition"] = (row, value) =>
      operation.condition(sql`${row}.${sql.identifier(column)}`, value);
    return [{ name, description, type, isFieldArgument, visibility, ...operation, condition }];
  };

  if (codec.arrayOfCodec) {
    if (!methods.includes("gin")) return [];
    const element = build.inflection.singularize(name);
    return makeFilter(element, `With this among its ${name}.`, itemCodecOf(codec), false, {
      codec: toFlatCodec(codec),
      isItem: true,
      condition: (columnSql, value) => sql`${columnSql} ${operatorOf(codec, "@>")} ${value}`,
    });
  }
  if (TIME_TYPES.has(codec.name)) {
    if (!methods.some((method) => RANGE_METHODS.has(method))) return [];
    const eventName = name.replace(/(At|On)$/, "");
    return [
      ...makeFilter(`${eventName}After`, `With a later ${name}.`, codec, false, {
        codec,
        condition: (columnSql, value) => sql`${columnSql} ${operatorOf(codec, ">")} ${value}`,
      }),
      ...makeFilter(`${eventName}Before`, `With an earlier ${name}.`, codec, false, {
        codec,
        condition: (columnSql, value) => sql`${columnSql} ${operatorOf(codec, "<")} ${value}`,
      }),
    ];
  }
  if (!methods.some((method) => EQUALITY_METHODS.has(method)) && !extensions?.tags?.filterable) return [];
  return makeFilter(name, `With this ${name}.`, codec, true, {
    column,
    codec: castToComparable(sql.blank, codec)[1],
    condition: (columnSql, value) => {
      const [compared, comparedCodec] = castToComparable(columnSql, codec);
      return equals(comparedCodec, compared, value);
    },
  });
}

function functionFilters(build: GraphileBuild.Build, table: PgTable): TableFilter[] {
  const key = keyOf(table)?.map((column) => sql.identifier(column));
  if (!key) return [];
  const functions = resourcesOf(build.input.pgRegistry, table.codec).filter(
    ({ extensions, parameters }) => extensions?.tags?.filter && parameters?.length === 1,
  );
  return functions.flatMap((resource): TableFilter[] | TableFilter => {
    const { from } = resource;
    const [parameter] = resource.parameters;
    const [argument] = build.pgGetArgDetailsFromParameters(resource).argDetails;
    if (!argument || typeof from !== "function") return [];
    return {
      name: argument.graphqlArgName,
      description: resource.description ?? "",
      type: build.graphql.getNullableType(argument.inputType),
      isFieldArgument: false,
      visibility: mayExecute(resource),
      codec: parameter.codec,
      condition: (row, value) => {
        const ofRow = key.map((column) => sql`${row}.${column}`);
        const found = from({ placeholder: value });
        return sql`(${sql.join(ofRow, ", ")}) in (select ${sql.join(key, ", ")} from ${found})`;
      },
    };
  });
}

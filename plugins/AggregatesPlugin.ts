import { TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import type { GrafastFieldConfig, Step } from "grafast";
import type { GraphQLObjectType, GraphQLOutputType } from "grafast/graphql";
import { baseCodecOf } from "./codecs.ts";
import { withSource } from "./field-sources.ts";
import { toOriginalCodec } from "./IdScalarPlugin.ts";
import { AddedTypes, freeTypeName } from "./name-claims.ts";
import { sortableColumnsOf } from "./OrderByPlugin.ts";
import { type Codec, outputTypeOf, type PgTable, tablesOf } from "./table.ts";
import { mayUse, withVisibility } from "./VisibilityPlugin.ts";
import { visibleColumnsOf } from "./WherePlugin.ts";

declare global {
  namespace GraphileBuild {
    interface SchemaOptions {
      /** True if connections have `aggregates`. */
      aggregates?: boolean;
    }
  }
}

type AggregateField = GrafastFieldConfig<Step>;

/** The results of Postgres's sum() and avg() by type. */
const NUMBER_RESULTS: ReadonlyMap<string, Readonly<Record<"sum" | "avg", Codec>>> = new Map([
  ["int2", { sum: TYPES.bigint, avg: TYPES.numeric }],
  ["int4", { sum: TYPES.bigint, avg: TYPES.numeric }],
  ["int8", { sum: TYPES.numeric, avg: TYPES.numeric }],
  ["numeric", { sum: TYPES.numeric, avg: TYPES.numeric }],
  ["float4", { sum: TYPES.float, avg: TYPES.float }],
  ["float8", { sum: TYPES.float, avg: TYPES.float }],
]);
const EXTREME_TYPES: ReadonlySet<string> = new Set(
  "int2 int4 int8 numeric float4 float8 text varchar bpchar citext date time timetz timestamp timestamptz inet".split(
    " ",
  ),
);

type AggregatesPart = "sum" | "avg" | "min" | "max" | "group";

const DESCRIPTIONS: Readonly<Record<AggregatesPart, string>> = {
  group: "The values by which the rows are grouped: the selected columns.",
  sum: "The sums of the values that are not null.",
  avg: "The averages of the values that are not null.",
  min: "The least values.",
  max: "The greatest values.",
};

export const AggregatesPlugin: GraphileConfig.Plugin = {
  name: "AggregatesPlugin",
  description: "Connections have counts, sums, averages and extreme values of their rows, grouped by columns",
  schema: {
    hooks: {
      init: {
        // Types of the database keep their names.
        after: ["PgCodecs", "IndexedTablesPlugin", "FiltersPlugin", "WherePlugin", "OrderByPlugin"],
        callback(_, build) {
          if (!build.options.aggregates) return _;
          for (const table of tablesOf(build)) registerAggregateTypes(build, table);
          return _;
        },
      },
      GraphQLObjectType_fields(fields, build, { scope, Self, fieldWithHooks }) {
        const { isConnectionType, isPgConnectionRelated, pgCodec } = scope;
        if (!build.options.aggregates || !isConnectionType || !isPgConnectionRelated || !pgCodec?.attributes)
          return fields;
        const table = build.pgTableResource(pgCodec as PgTable["codec"]) as PgTable | undefined;
        const type = table && aggregatesTypeOf(build, table);
        if (!type) return fields;
        const { GraphQLList, GraphQLNonNull } = build.graphql;
        const maxPageSize = build.options.maxPageSize!;
        const aggregates = fieldWithHooks({ fieldName: "aggregates" }, () => {
          const field: AggregateField = {
            type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(type))),
            description: "Aggregates of all rows of the connection: one item, or one for each group.",
          };
          return withSource(field, { kind: "aggregates", maxPageSize });
        });
        return build.extend(fields, { aggregates }, `Adding aggregates to ${Self.name}`);
      },
    },
  },
};

/** The types of aggregates, by the types of rows. */
const aggregatesTypes = new AddedTypes<string>();

function aggregatesTypeOf(build: GraphileBuild.Build, table: PgTable): GraphQLObjectType | null {
  const name = aggregatesTypes.namesOf(build).get(build.inflection.tableType(table.codec));
  return name === undefined ? null : (build.getOutputTypeByName(name) as GraphQLObjectType);
}

function registerAggregateTypes(build: GraphileBuild.Build, table: PgTable): void {
  const tableType = build.inflection.tableType(table.codec);
  const parts = (Object.keys(DESCRIPTIONS) as AggregatesPart[]).map((name) => {
    const type = freeTypeName(build, `${tableType}${name[0]!.toUpperCase()}${name.slice(1)}`);
    register(build, type, DESCRIPTIONS[name], () => columnFields(build, table, name));
    return { name, type };
  });
  const name = aggregatesTypes.claimName(build, tableType, `${tableType}Aggregates`);
  register(build, name, `Aggregates of \`${tableType}\` rows.`, () => {
    const { GraphQLNonNull } = build.graphql;
    const count = new GraphQLNonNull(outputTypeOf(build, TYPES.bigint)!);
    const countField: AggregateField = { type: count, description: "The number of rows." };
    const fields: Record<string, AggregateField> = {
      count: withSource(countField, { kind: "aggregate", value: () => COUNT, codec: TYPES.bigint, isGroup: false }),
    };
    for (const part of parts) {
      if (columnsOf(build, table, part.name).length === 0) continue;
      const type = build.getOutputTypeByName(part.type);
      const field: AggregateField = { type: new GraphQLNonNull(type), description: DESCRIPTIONS[part.name] };
      fields[part.name] = withSource(field, { kind: "aggregates part" });
    }
    return fields;
  });
}

function register(
  build: GraphileBuild.Build,
  name: string,
  description: string,
  fields: () => Record<string, AggregateField>,
): void {
  build.registerObjectType(name, {}, () => ({ description, fields }), "AggregatesPlugin");
}

type AggregatedColumn = { readonly column: string; readonly result: Codec };

function columnsOf(build: GraphileBuild.Build, table: PgTable, aggregate: AggregatesPart): AggregatedColumn[] {
  const columns = aggregate === "group" ? sortableColumnsOf(table, build) : visibleColumnsOf(table, build);
  return columns.flatMap((column) => {
    const result = resultOf(aggregate, table.codec.attributes[column]!.codec);
    return result && outputTypeOf(build, result) ? [{ column, result }] : [];
  });
}

function resultOf(aggregate: AggregatesPart, codec: Codec): Codec | null {
  const original = toOriginalCodec(codec);
  const base = toOriginalCodec(baseCodecOf(original));
  switch (aggregate) {
    case "group":
      return codec;
    case "sum":
    case "avg":
      // The sum of ids has no meaning.
      return original === codec ? (NUMBER_RESULTS.get(base.name)?.[aggregate] ?? null) : null;
    default:
      return EXTREME_TYPES.has(base.name) ? codec : null;
  }
}

function columnFields(
  build: GraphileBuild.Build,
  table: PgTable,
  aggregate: AggregatesPart,
): Record<string, AggregateField> {
  return Object.fromEntries(
    columnsOf(build, table, aggregate).map(({ column, result }) => {
      const name = build.inflection.attribute({ attributeName: column, codec: table.codec });
      const field: AggregateField = {
        type: build.graphql.getNullableType(outputTypeOf(build, result)!) as GraphQLOutputType,
      };
      const source = {
        kind: "aggregate",
        value: (row: SQL) => aggregateSql(row, aggregate, column, result),
        codec: result,
        isGroup: aggregate === "group",
      } as const;
      return [name, withVisibility(withSource(field, source), mayUse("select", table, [column]))];
    }),
  );
}

const AGGREGATE_FUNCTIONS: Readonly<Record<Exclude<AggregatesPart, "group">, SQL>> = {
  sum: sql`sum`,
  avg: sql`avg`,
  min: sql`min`,
  max: sql`max`,
};

const COUNT = sql`pg_catalog.count(*)`;

/** The aggregates of citext are where the extension is. */
function aggregateSql(row: SQL, aggregate: AggregatesPart, column: string, codec: Codec): SQL {
  const value = sql`${row}.${sql.identifier(column)}`;
  if (aggregate === "group") return value;
  const schema = baseCodecOf(toOriginalCodec(codec)).name === "citext" ? sql.blank : sql`pg_catalog.`;
  return sql`${schema}${AGGREGATE_FUNCTIONS[aggregate]}(${value})`;
}

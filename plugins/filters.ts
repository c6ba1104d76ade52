import { type PgSelectQueryBuilder, sqlValueWithCodec } from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import type { GraphQLInputType } from "postgraphile/graphql";
import { oncePer } from "../engine/once-per.ts";
import { comparable } from "./comparable.ts";
import { settleNames } from "./free-names.ts";
import { type Codec, inputTypeOf, keyOf, resourcesOf, type Table } from "./table.ts";
import { mayExecute, mayUse, type VisibleTo } from "./visibility.ts";

declare global {
  namespace DataplanPg {
    interface PgCodecAttributeExtensions {
      /** The access methods of the indexes that begin with this column: btree, gin, … */
      indexedBy?: readonly string[];
    }
  }
  namespace GraphileBuild {
    interface PgCodecAttributeTags {
      /** An argument of the connection, with an index or without. Where a table has such, its other filters are none. */
      filterable: true;
    }
    interface PgResourceTags {
      /** A function that finds rows by one value: it filters the connection as well. */
      filter: true;
    }
  }
}

export type Filter = {
  readonly name: string;
  readonly description: string;
  readonly type: GraphQLInputType;
  /** An argument of the field itself, besides being one of `filter`. */
  readonly isArgument: boolean;
  readonly apply: (builder: PgSelectQueryBuilder, value: unknown) => void;
  readonly visibleTo: VisibleTo;
};

const EQUALS: ReadonlySet<string> = new Set(["btree", "hash"]);
const RANGES: ReadonlySet<string> = new Set(["btree", "brin"]);
const TIMES: ReadonlySet<string> = new Set(["timestamptz", "timestamp", "date"]);

/** What an index can answer: equality, times after and before, an element of a list; and functions that find rows. */
export const filtersOf = oncePer((table: Table, build: GraphileBuild.Build): Filter[] => {
  const { codec } = table;
  const key = keyOf(table);
  const isChosen = (column: string) => Boolean(codec.attributes[column]!.extensions?.tags?.filterable);
  const columns = Object.keys(codec.attributes).filter(
    (column) =>
      (isChosen(column) || codec.attributes[column]!.extensions?.indexedBy) &&
      !(key?.length === 1 && key[0] === column) &&
      build.behavior.pgCodecAttributeMatches([codec, column], "attribute:filterBy"),
  );
  const areChosen = columns.some(isChosen);
  const byColumn = columns.flatMap((column) =>
    columnFilters(build, table, column).map((filter) => ({ column, ...filter })),
  );
  const ofFunctions = functionFilters(build, table);
  const renamed = renamedFilters([...byColumn, ...ofFunctions]);
  return [
    ...byColumn.map((filter) => ({
      ...filter,
      name: renamed.get(filter) ?? filter.name,
      isArgument: areChosen ? isChosen(filter.column) : filter.isArgument,
    })),
    ...ofFunctions.map((filter) => ({ ...filter, name: renamed.get(filter) ?? filter.name })),
  ];
});

/** A column `tag` keeps its name from what the column `tags` has among its own. */
function renamedFilters(filters: readonly Filter[]): ReadonlyMap<Filter, string> {
  const renamed = new Map<Filter, string>();
  const inOrder = filters.toSorted((one, other) => Number(other.isArgument) - Number(one.isArgument));
  settleNames(
    inOrder.map((filter) => ({
      wanted: filter.name,
      suffix: "_",
      needs: (name) => [name],
      rename: (name) => renamed.set(filter, name),
    })),
  );
  return renamed;
}

function columnFilters(build: GraphileBuild.Build, table: Table, column: string): Filter[] {
  const row = table.codec;
  const { codec, extensions } = row.attributes[column]!;
  const visibleTo = mayUse("select", table, [column]);
  const methods = extensions?.indexedBy ?? [];
  const name = build.inflection.attribute({ attributeName: column, codec: row });
  const where = (
    name: string,
    description: string,
    valueCodec: Codec,
    isArgument: boolean,
    condition: (column: SQL, value: unknown) => SQL,
  ) => {
    const type = inputTypeOf(build, valueCodec);
    if (!type) return [];
    const apply: Filter["apply"] = (builder, value) =>
      builder.where(condition(sql`${builder.alias}.${sql.identifier(column)}`, value));
    return [{ name, description, type, isArgument, apply, visibleTo }];
  };

  if (codec.arrayOfCodec) {
    if (!methods.includes("gin")) return [];
    const element = build.inflection.singularize(name);
    return where(
      element,
      `With this among its ${name}.`,
      codec.arrayOfCodec,
      false,
      (it, value) => sql`${it} @> ${sqlValueWithCodec([value], codec)}`,
    );
  }
  if (TIMES.has(codec.name)) {
    if (!methods.some((method) => RANGES.has(method))) return [];
    const event = name.replace(/(At|On)$/, "");
    return [
      ...where(
        `${event}After`,
        `With a later ${name}.`,
        codec,
        false,
        (it, value) => sql`${it} > ${sqlValueWithCodec(value, codec)}`,
      ),
      ...where(
        `${event}Before`,
        `With an earlier ${name}.`,
        codec,
        false,
        (it, value) => sql`${it} < ${sqlValueWithCodec(value, codec)}`,
      ),
    ];
  }
  if (!methods.some((method) => EQUALS.has(method)) && !extensions?.tags?.filterable) return [];
  return where(name, `With this ${name}.`, codec, true, (it, value) => {
    const [compared, comparedCodec] = comparable(it, codec);
    return sql`${compared} = ${sqlValueWithCodec(value, comparedCodec)}`;
  });
}

function functionFilters(build: GraphileBuild.Build, table: Table): Filter[] {
  const key = keyOf(table)?.map((column) => sql.identifier(column));
  if (!key) return [];
  const functions = resourcesOf(build.input.pgRegistry, table.codec).filter(
    ({ extensions, parameters }) => extensions?.tags?.filter && parameters?.length === 1,
  );
  return functions.flatMap((resource) => {
    const { from } = resource;
    const [parameter] = resource.parameters;
    const [argument] = build.pgGetArgDetailsFromParameters(resource).argDetails;
    if (!argument || typeof from !== "function") return [];
    return {
      name: argument.graphqlArgName,
      description: resource.description ?? "",
      type: build.graphql.getNullableType(argument.inputType),
      isArgument: false,
      visibleTo: mayExecute(resource),
      apply: (builder, value) => {
        const rows = from({ placeholder: sqlValueWithCodec(value, parameter.codec) });
        const ofRow = key.map((column) => sql`${builder.alias}.${column}`);
        builder.where(sql`(${sql.join(ofRow, ", ")}) in (select ${sql.join(key, ", ")} from ${rows})`);
      },
    };
  });
}

import { TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { ApiError, memoizePerObject } from "#runtime";
import { castToComparable, TIME_CODECS } from "./codecs.ts";
import { type OrderValueReader, orderTermsOf, type RowOrderTerm } from "./OrderByPlugin.ts";
import { joinRelation } from "./row-conditions.ts";
import { type Codec, isTable, keyOf, type PgRelation, type PgTable, relationOf, sqlNameOf } from "./table.ts";

declare global {
  namespace GraphileBuild {
    interface BehaviorStrings {
      "manyRelation:resource:list:offset": true;
    }
    interface PgResourceTags {
      /** `created_at desc, title`: the order of lists and connections; the key is appended. */
      order: string;
    }
  }
}

const ORDER_TERM = /^\s*(?<column>.+?)(?:\s+(?<direction>asc|desc))?\s*$/i;

const EXACT_TEXT_CODECS: ReadonlySet<Codec> = new Set([
  TIME_CODECS.timestamptz,
  TIME_CODECS.timestamp,
  TIME_CODECS.date,
]);

const DEFAULT_PAGE_SIZE = 10;

export const PaginationPlugin: GraphileConfig.Plugin = {
  name: "PaginationPlugin",
  description: "limit and offset on lists, cursors on connections, a total order, and a maximum page size",
  schema: {
    behaviorRegistry: {
      add: {
        "manyRelation:resource:list:offset": {
          description: "does this list have an offset?",
          entities: ["pgCodecRelation"],
        },
      },
    },
    entityBehavior: { pgCodecRelation: "manyRelation:resource:list:offset" },
    hooks: {
      GraphQLObjectType_fields_field_args(args, build, { scope, Self }) {
        const paging = pagingArguments(build, scope);
        return paging ? build.extend(args, paging, `Paging ${Self.name}.${scope.fieldName}`) : args;
      },
    },
  },
};

/**
 * A cursor must hold the order values as Postgres writes them, since it is compared with them. Core uses the values that it shows
 * to clients, which differ for null, NaN, intervals, bytes and others.
 */
const cursorCodecOf = memoizePerObject((codec: Codec): Codec => {
  // These are selected as exact text anyway.
  if (EXACT_TEXT_CODECS.has(codec)) return codec;
  const { castFromPg: _, ...plain } = codec;
  return { ...plain, fromPg: (text) => text };
});

type PagedFieldScope = GraphileBuild.ScopeObjectFieldsField;

function pagingArguments(
  { graphql: { GraphQLInt, GraphQLString }, behavior }: GraphileBuild.Build,
  scope: PagedFieldScope,
) {
  const { pgFieldResource, isPgFieldConnection, isPgFieldSimpleCollection, pgRelationDetails } = scope;
  if (!pgFieldResource || !isTable(pgFieldResource)) return null;
  if (isPgFieldConnection) {
    return {
      first: {
        type: GraphQLInt,
        description: `The number of edges from the start, or after the cursor; ${DEFAULT_PAGE_SIZE} unless last is given.`,
      },
      after: { type: GraphQLString, description: "The cursor of an edge: returns the edges after it." },
      last: { type: GraphQLInt, description: "The number of edges from the end, or before the cursor." },
      before: { type: GraphQLString, description: "The cursor of an edge: returns the edges before it." },
    };
  }
  if (!isPgFieldSimpleCollection) return null;
  const limit = { type: GraphQLInt, defaultValue: DEFAULT_PAGE_SIZE, description: "The maximum number of items." };
  const offset = { type: GraphQLInt, defaultValue: 0, description: "The number of items to skip." };
  const relation = pgRelationDetails && relationOf(pgRelationDetails);
  const skips = !relation || behavior.pgCodecRelationMatches(relation, "manyRelation:resource:list:offset");
  return skips ? { limit, offset } : { limit };
}

export type RowOrder = {
  readonly terms: readonly RowOrderTerm[];
  /** No two rows are equal in it, so a cursor identifies one row. */
  readonly isTotal: boolean;
};

/**
 * The order that the table's comment gives, then the key, in the same direction so that one index serves both. Without a key: all
 * comparable columns, which at least is a stable order.
 */
export const rowOrderOf = memoizePerObject((table: PgTable, { behavior }: GraphileBuild.Build): RowOrder => {
  const tagged = parseOrderTag(table);
  const key = keyOf(table);
  const isSortable = (column: string) =>
    behavior.pgCodecAttributeMatches([table.codec, column], "attribute:orderBy") === true;
  const tieBreakers = key ?? Object.keys(table.codec.attributes).filter(isSortable);
  const direction = tagged.at(-1)?.direction ?? "ASC";
  const tieBreakerTerms = tieBreakers
    .filter((column) => !tagged.some(({ by }) => by === column))
    .map((by): RowOrderTerm => ({ by, direction }));
  return { terms: [...tagged, ...tieBreakerTerms], isTotal: key !== null };
});

/** The order that a client requests, then the key; or else the order of the table. */
export function requestedOrder(
  table: PgTable,
  build: GraphileBuild.Build,
  orderBy: unknown,
  reader: OrderValueReader,
): RowOrder {
  const order = rowOrderOf(table, build);
  const requested = orderTermsOf(build, table, orderBy, reader);
  const last = requested.at(-1);
  if (!last) return order;
  const key = keyOf(table);
  const tieBreakers = key ? key.map((by) => ({ by, direction: last.direction })) : order.terms;
  const isRequested = ({ by }: RowOrderTerm) => requested.some((term) => term.by === by && !term.relations?.length);
  return { ...order, terms: [...requested, ...tieBreakers.filter((term) => !isRequested(term))] };
}

/** One expression of an `order by`. */
export type OrderSql = {
  readonly fragment: SQL;
  readonly codec: Codec;
  readonly isNullable: boolean;
  readonly direction: "ASC" | "DESC";
};

/**
 * Core's cursor conditions put nulls at the wrong end (@dataplan/pg 1.1.2). So `is null` becomes an order term of its own for nullable
 * columns, and an index serves only orders over columns that are not null.
 */
export function orderExpressionsOf(row: SQL, { codec }: PgTable, { terms, isTotal }: RowOrder): OrderSql[] {
  return terms.flatMap(({ relations = [], by, direction, nulls }): OrderSql[] => {
    const orderedCodec = relations.at(-1)?.remoteResource.codec ?? codec;
    const { codec: columnCodec, notNull = false } = typeof by === "string" ? orderedCodec.attributes[by]! : by;
    const valueFor = typeof by === "string" ? (of: SQL) => sql`${of}.${sql.identifier(by)}` : by.valueFor;
    const column = valueOfRelated(row, relations, valueFor);
    const mayBeNull = !notNull || relations.length > 0;
    const isNullable = mayBeNull && (!columnCodec.notNull || relations.length > 0);
    const [fragment, comparedCodec] = castToComparable(column, columnCodec);
    const value = { fragment, codec: cursorCodecOf(comparedCodec), isNullable, direction };
    if (!mayBeNull || (!isTotal && nulls === undefined)) return [value];
    const nullsFirst = nulls ? nulls === "FIRST" : direction === "DESC";
    const isNull = sql`(${column} is null)`;
    return [
      { fragment: isNull, codec: TYPES.boolean, isNullable: false, direction: nullsFirst ? "DESC" : "ASC" },
      value,
    ];
  });
}

/** Null if there is no related row, or if the caller may not see it. */
function valueOfRelated(
  row: SQL,
  [relation, ...further]: readonly PgRelation[],
  valueFor: (row: SQL) => SQL,
  depth = 0,
): SQL {
  if (!relation) return valueFor(row);
  const { remoteResource } = relation;
  const related = relatedAliasOf(relation, depth);
  const onlyOne = remoteResource.extensions?.mayRepeatKeys ? sql` limit 1` : sql.blank;
  const column = valueOfRelated(related, further, valueFor, depth + 1);
  return sql`(select ${column} from ${remoteResource.from as SQL} as ${related} where ${joinRelation(relation, row, related)}${onlyOne})`;
}

/** The same alias each time, since core compares order expressions with each other. */
function relatedAliasOf(relation: PgRelation, depth: number): SQL {
  const aliases = relatedAliases(relation);
  aliases[depth] ??= sql.identifier(Symbol(relation.remoteResource.name));
  return aliases[depth];
}

const relatedAliases = memoizePerObject((_relation: PgRelation): SQL[] => []);

function parseOrderTag(table: PgTable): RowOrderTerm[] {
  const { order } = table.extensions?.tags ?? {};
  if (typeof order !== "string") return [];
  return order.split(",").map((text) => {
    const { column = "", direction = "asc" } = ORDER_TERM.exec(text)?.groups ?? {};
    if (!table.codec.attributes[column])
      throw new Error(`"@order ${order}" of ${sqlNameOf(table)}: there is no column "${column}"`);
    return { by: column, direction: direction.toLowerCase() === "desc" ? "DESC" : "ASC" };
  });
}

type Count = number | null | undefined;

/** The effective `limit`, at most `max`. */
export function readLimit(limit: Count, max: number): number {
  return Math.min(requireNonNegative("limit", limit ?? DEFAULT_PAGE_SIZE), max);
}

export function readOffset(offset: Count): number {
  return requireNonNegative("offset", offset ?? 0);
}

/** The effective `first` and `last`; without either, the first page. */
export function readPage(
  first: Count,
  last: Count,
  max: number,
): { readonly first: number | null; readonly last: number | null } {
  if (first != null && last != null) throw new ApiError("invalid", "VALIDATION_ERROR", "Give first or last, not both.");
  if (last != null) return { first: null, last: Math.min(requireNonNegative("last", last), max) };
  return { first: Math.min(requireNonNegative("first", first ?? DEFAULT_PAGE_SIZE), max), last: null };
}

function requireNonNegative(name: string, count: number): number {
  if (count < 0) throw new ApiError("invalid", "VALIDATION_ERROR", `${name} must not be negative.`);
  return count;
}

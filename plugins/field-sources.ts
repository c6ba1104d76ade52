import type { PgSelectArgumentDigest } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import type { GraphQLInputType, GraphQLSchema } from "grafast/graphql";
import type { OwnValue } from "#catalog";
import { makeExtension } from "./extension.ts";
import type { OrderValueReader } from "./OrderByPlugin.ts";
import type { RowOrder } from "./PaginationPlugin.ts";
import type { RowsWrite } from "./planned-write.ts";
import type { ConditionFields, InputObject } from "./row-conditions.ts";
import type { BindValue } from "./row-operators.ts";
import { type Codec, type PgRelation, type PgTable, type SchemaResource, sqlNameOf } from "./table.ts";

/** The database object or value behind a field of the schema. */
export type FieldSource =
  /** A column of the parent row, or of the row that the relation leads to; `table` is the table whose row the column holds. */
  | {
      readonly kind: "column";
      readonly column: string;
      readonly codec: Codec;
      readonly table: SchemaResource | null;
      readonly via: PgRelation | null;
    }
  /** A column of the parent row that the role may read only in its own rows. */
  | ({ readonly kind: "own value"; readonly codec: Codec } & OwnValue)
  /** The row of the table that the arguments identify. */
  | { readonly kind: "row"; readonly table: PgTable; readonly key: readonly KeyArgument[] }
  /** The row that the parent row refers to, or the only one that refers to it; with several relations, the row at their end. */
  | { readonly kind: "related row"; readonly path: readonly PgRelation[] }
  /** Rows of the table; with a relation, those that belong to the parent row. */
  | {
      readonly kind: "rows";
      readonly table: PgTable;
      readonly relation: PgRelation | null;
      readonly isConnection: boolean;
      /** The order that a value of `orderBy` requests; if there is none, the table's order. */
      readonly orderOf: (orderBy: unknown, reader: OrderValueReader) => RowOrder;
      /** The fields of `where`. */
      readonly conditionFields: () => ConditionFields;
      readonly maxPageSize: number;
    }
  /** The result of a function that reads; `ofRow` is a function of the parent row. */
  | {
      readonly kind: "call";
      readonly resource: SchemaResource;
      readonly args: readonly FunctionArgument[];
      readonly ofRow: boolean;
      readonly maxPageSize: number;
    }
  /** The result of a function that may write. Its arguments are `id`, and fields of `input`. */
  | {
      readonly kind: "mutation";
      readonly resource: SchemaResource;
      readonly args: readonly FunctionArgument[];
      readonly countsSignUp: boolean;
    }
  /** The row that a generated mutation writes, or the fact that it has deleted one. */
  | {
      readonly kind: "write";
      readonly verb: MutationVerb;
      readonly table: PgTable;
      /** The key of the row to update or delete. */
      readonly key: readonly KeyArgument[];
      /** The error if no row was written; null if the field then returns false. */
      readonly noRowError: (() => Error) | null;
      readonly countsSignUp: boolean;
    }
  /** The rows that a generated mutation writes. */
  | {
      readonly kind: "rows write";
      readonly table: PgTable;
      /** The names of the arguments; the first is the input. */
      readonly args: readonly string[];
      readonly toWrite: (schema: GraphQLSchema, inputType: GraphQLInputType, values: readonly unknown[]) => RowsWrite;
    }
  /** The global id of the row: the type and the key. */
  | ({ readonly kind: "node id" } & NodeTable)
  /** The row that has the global id of the argument; null for types that have none. */
  | { readonly kind: "node"; readonly argument: string; readonly nodeOf: (typeName: string) => NodeTable | null }
  /** The row of an event. */
  | ({ readonly kind: "event"; readonly table: PgTable } & EventTopics)
  /** A column of other callers' rows. */
  | { readonly kind: "withheld"; readonly error: Error }
  /** The result that the search of the argument has for the row of an edge. */
  | {
      readonly kind: "search result";
      readonly argument: string;
      readonly valueFor: (search: InputObject, row: SQL, bind: BindValue) => SQL;
      readonly codec: Codec;
    }
  /** Aggregates of all rows of the connection. */
  | { readonly kind: "aggregates"; readonly maxPageSize: number }
  /** Aggregates of one kind, of the same rows. */
  | { readonly kind: "aggregates part" }
  /** One value of a group of rows. */
  | {
      readonly kind: "aggregate";
      readonly value: (row: SQL) => SQL;
      readonly codec: Codec;
      /** True if the rows are grouped by this value. */
      readonly isGroup: boolean;
    }
  /** The same value in each response, as JSON. */
  | { readonly kind: "constant"; readonly text: string }
  /** A field of the types that every connection has. */
  | { readonly kind: "page"; readonly part: PagePart };

/** A table whose rows have a global id. */
export type NodeTable = {
  readonly table: PgTable;
  readonly typeName: string;
  readonly key: readonly string[];
  /** The column that has the type of a row, and its value in rows of this type. Null: all rows of the table are of the type. */
  readonly rowType: { readonly column: string; readonly value: string } | null;
};

/** The events that a subscription follows: those with the value of its argument, if it has one. */
export type EventTopics = {
  readonly argument: string | null;
  readonly topicFor: (value: unknown, query: QueryTopicValue) => Promise<string>;
};

/** Queries one value as the subscriber. */
export type QueryTopicValue = (text: string, values: readonly unknown[]) => Promise<string | null | undefined>;

/** The value of the row, if it is the caller's own. */
export function ownValueSql(row: SQL, { function: called, key }: OwnValue): SQL {
  return sql`${sql.identifier(called.schema, called.name)}(${row}.${sql.identifier(key)})`;
}

export type MutationVerb = "create" | "update" | "delete";

export type KeyArgument = { readonly column: string; readonly argument: string };

export type FunctionArgument = Pick<PgSelectArgumentDigest, "name"> & {
  readonly argument: string;
  readonly codec: Codec;
};

export function functionArgumentsOf(
  build: GraphileBuild.Build,
  resource: SchemaResource,
  offset: number,
): readonly FunctionArgument[] {
  const { argDetails } = build.pgGetArgDetailsFromParameters(resource, resource.parameters, offset);
  const globalId = argDetails.findIndex((details) => "fetcher" in details);
  if (globalId >= 0) {
    const tag = `"@arg${offset + globalId}variant nodeId" of ${sqlNameOf(resource)}`;
    throw new Error(`${tag} is not supported: the argument can be the key of the row`);
  }
  return argDetails.map(({ graphqlArgName, postgresArgName, pgCodec }) => ({
    argument: graphqlArgName,
    codec: pgCodec,
    ...(postgresArgName && { name: postgresArgName }),
  }));
}

const PAGE_PARTS = [
  "edges",
  "node",
  "cursor",
  "pageInfo",
  "totalCount",
  "hasNextPage",
  "hasPreviousPage",
  "startCursor",
  "endCursor",
] as const;
export type PagePart = (typeof PAGE_PARTS)[number];

export function toPagePart(fieldName: string): PagePart | null {
  return PAGE_PARTS.find((part) => part === fieldName) ?? null;
}

/** The condition that an argument sets, or a field of a filter input. */
export type FilterSource = {
  /** The codec of the value in SQL. */
  readonly codec: Codec;
  /** The client's value is the only item of a list of this codec. */
  readonly isItem?: true;
  readonly condition: (row: SQL, value: SQL) => SQL;
  /** The column that has the value. */
  readonly column?: string;
};

/** Null for a field without a source. */
export const { add: withSource, of: sourceOf } = makeExtension<FieldSource>("source");

export const { add: withRowFilter, of: rowFilterOf } = makeExtension<FilterSource>("rowFilter");

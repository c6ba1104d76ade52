import { type PgSelectStep, TYPES } from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import {
  ConstantStep,
  type connection,
  constant,
  type ExecutionDetails,
  type FieldPlanResolver,
  type GrafastResultsList,
  lambda,
  Step,
} from "postgraphile/grafast";
import { memoizePerObject } from "../engine/cache/memoize.ts";
import { ApiError } from "../engine/errors.ts";
import { castToComparable } from "./codecs.ts";
import { type Codec, isTable, keyOf, type PgTable, sqlNameOf } from "./table.ts";
import { TIME_CODECS } from "./time-codecs.ts";

const ORDER_TERM = /^\s*(?<column>.+?)(?:\s+(?<direction>asc|desc))?\s*$/i;

const cursorCodecOf = memoizePerObject((codec: Codec): Codec => {
  // These are selected in this spelling anyway.
  if (EXACT_TEXT_CODECS.has(codec)) return codec;
  const { castFromPg: _, ...plain } = codec;
  return { ...plain, fromPg: (text) => text };
});

const EXACT_TEXT_CODECS: ReadonlySet<Codec> = new Set([
  TIME_CODECS.timestamptz,
  TIME_CODECS.timestamp,
  TIME_CODECS.date,
]);

const DEFAULT_PAGE_SIZE = 10;

declare global {
  namespace GraphileConfig {
    interface Plugins {
      PaginationPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface BehaviorStrings {
      "manyRelation:resource:list:offset": true;
    }
  }
}

type PagedFieldScope = GraphileBuild.ScopeObjectFieldsField;
type SelectedRows = PgSelectStep<PgTable>;
type PagedConnection = ReturnType<typeof connection>;

export const PaginationPlugin: GraphileConfig.Plugin = {
  name: "PaginationPlugin",
  description: "limit and offset on lists, cursors on connections, an order that is total, and an end to both",
  schema: {
    behaviorRegistry: {
      add: {
        "manyRelation:resource:list:offset": {
          description: "may rows be skipped here?",
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
      GraphQLObjectType_fields_field(field, build, { scope }) {
        const { pgFieldResource: resource, isPgFieldConnection, isPgFieldSimpleCollection } = scope;
        const { plan } = field;
        if (!plan || !resource || !(isPgFieldConnection || isPgFieldSimpleCollection)) return field;
        const maxPageSize = build.options.maxPageSize!;
        if (!isTable(resource)) return { ...field, plan: planFunctionRows(plan, maxPageSize) };
        const order = rowOrderOf(
          resource,
          (column) => build.behavior.pgCodecAttributeMatches([resource.codec, column], "attribute:orderBy") === true,
        );
        return {
          ...field,
          plan: isPgFieldConnection ? planConnection(plan, order, maxPageSize) : planList(plan, order, maxPageSize),
        };
      },
    },
  },
};

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
        description: `So many from the beginning, or after the cursor: ${DEFAULT_PAGE_SIZE} unless last is given.`,
      },
      after: { type: GraphQLString, description: "The cursor of an edge: what comes after it." },
      last: { type: GraphQLInt, description: "So many from the end, or before the cursor." },
      before: { type: GraphQLString, description: "The cursor of an edge: what comes before it." },
    };
  }
  if (!isPgFieldSimpleCollection) return null;
  const limit = { type: GraphQLInt, defaultValue: DEFAULT_PAGE_SIZE, description: "At most so many." };
  const offset = { type: GraphQLInt, defaultValue: 0, description: "Without so many at the beginning." };
  const relation = pgRelationDetails && relationOf(pgRelationDetails);
  const skips = !relation || behavior.pgCodecRelationMatches(relation, "manyRelation:resource:list:offset");
  return skips ? { limit, offset } : { limit };
}

function relationOf({ registry, codec, relationName }: GraphileBuild.PgRelationsPluginRelationDetails) {
  return registry.pgRelations[codec.name]?.[relationName];
}

/** A function says itself how many rows it returns, and in which order; only the deployment's limit comes on top. */
function planFunctionRows(plan: FieldPlanResolver, maxPageSize: number): FieldPlanResolver {
  return ($parent, args, info) => {
    const $rows = plan($parent, args, info) as SelectedRows;
    $rows.setFirst(constant(maxPageSize));
    return $rows;
  };
}

function planList(plan: FieldPlanResolver, order: RowOrder, maxPageSize: number): FieldPlanResolver {
  const limitOf = (limit: number | null | undefined) => readLimit(limit, maxPageSize);
  return ($parent, args, info) => {
    const $rows = plan($parent, args, info) as SelectedRows;
    applyOrder($rows, order);
    const limit = checkedCount(args.getRaw("limit"), limitOf);
    $rows.setFirst(limit.$count);
    if (!info.field.args.some(({ name }) => name === "offset")) return withChecks($rows, [limit.$check]);
    const offset = checkedCount(args.getRaw("offset"), readOffset);
    $rows.setOffset(offset.$count);
    return withChecks($rows, [limit.$check, offset.$check]);
  };
}

type Count = number | null | undefined;

/** What the statement is given, and what fails where the client's number is refused. One that stands in the document is looked at once. */
function checkedCount(
  $given: Step<Count>,
  read: (count: Count) => number,
): { $count: Step<number>; $check: Step | null } {
  if ($given instanceof ConstantStep) return { $count: constant(read($given.data)), $check: null };
  const $check = lambda($given, read);
  const $count = lambda($given, (count) => {
    try {
      return read(count);
    } catch {
      return 0;
    }
  });
  return { $count, $check };
}

function withChecks($rows: SelectedRows, checks: readonly (Step | null)[]): Step {
  const needed = checks.filter((check) => check !== null);
  return needed.length === 0 ? $rows : new CheckedRowsStep($rows, needed);
}

function planConnection(plan: FieldPlanResolver, order: RowOrder, maxPageSize: number): FieldPlanResolver {
  const pageOf = ([first, last]: readonly [number | undefined, number | undefined]) =>
    readPage(first, last, maxPageSize);
  return ($parent, args, info) => {
    const $connection = plan($parent, args, info) as PagedConnection;
    applyOrder($connection.getSubplan() as Step as SelectedRows, order);
    const $page = lambda([args.getRaw("first"), args.getRaw("last")], pageOf);
    $connection.setFirst(lambda($page, ({ first }) => first));
    $connection.setLast(lambda($page, ({ last }) => last));
    $connection.setAfter(args.getRaw("after"));
    $connection.setBefore(args.getRaw("before"));
    return $connection;
  };
}

declare global {
  namespace GraphileBuild {
    interface PgResourceTags {
      /** `created_at desc, title`: how rows come in lists and connections; the key completes it. */
      order: string;
    }
  }
}

type RowOrderTerm = { readonly attribute: string; readonly direction: "ASC" | "DESC" };

type RowOrder = {
  readonly terms: readonly RowOrderTerm[];
  /** No two rows share their place, so that a cursor can mean one. */
  readonly isTotal: boolean;
};

/**
 * Rows come in the order that the comment of the table says, and within it by key, in the same direction so that one
 * index serves both. Without a key any order will do that is the same each time: by all columns that can be compared.
 */
function rowOrderOf(table: PgTable, isSortable: (column: string) => boolean): RowOrder {
  const tagged = parseOrderTag(table);
  const key = keyOf(table);
  const tieBreakers = key ?? Object.keys(table.codec.attributes).filter(isSortable);
  const direction = tagged.at(-1)?.direction ?? "ASC";
  const tieBreakerTerms = tieBreakers
    .filter((column) => !tagged.some(({ attribute }) => attribute === column))
    .map((attribute): RowOrderTerm => ({ attribute, direction }));
  return { terms: [...tagged, ...tieBreakerTerms], isTotal: key !== null };
}

/**
 * Core's conditions for what follows a cursor take nulls for the wrong end (@dataplan/pg 1.1.2). Whether there is a value
 * becomes a term of its own then; so an index serves only where the columns of the order are not null.
 */
function applyOrder($rows: PgSelectStep<PgTable>, { terms, isTotal }: RowOrder): void {
  const { attributes } = $rows.resource.codec;
  for (const { attribute, direction } of terms) {
    if (isTotal && !attributes[attribute]!.notNull) {
      const fragment = sql`(${$rows.alias}.${sql.identifier(attribute)} is null)`;
      $rows.orderBy({ fragment, codec: TYPES.boolean, nullable: false, direction });
    }
    $rows.orderBy({ attribute, direction, callback: toCursorComparison });
  }
  if (isTotal) $rows.setOrderIsUnique();
}

/**
 * A cursor holds the values that a row is ordered by, and is compared with them as Postgres reads them. Core puts in what it
 * shows of them instead, which is another value for null, NaN, intervals, bytes and others.
 */
function toCursorComparison(column: SQL, codec: Codec, isNullable: boolean): [SQL, Codec, boolean] {
  const [compared, comparedCodec] = castToComparable(column, codec);
  return [compared, cursorCodecOf(comparedCodec), isNullable];
}

function parseOrderTag(table: PgTable): RowOrderTerm[] {
  const { order } = table.extensions?.tags ?? {};
  if (typeof order !== "string") return [];
  return order.split(",").map((text) => {
    const { column = "", direction = "asc" } = ORDER_TERM.exec(text)?.groups ?? {};
    if (!table.codec.attributes[column])
      throw new Error(`"@order ${order}" of ${sqlNameOf(table)}: there is no column "${column}"`);
    return { attribute: column, direction: direction.toLowerCase() === "desc" ? "DESC" : "ASC" };
  });
}

type CountInput = number | null | undefined;

/** `limit`: never more than the deployment allows, however much was asked. */
export function readLimit(limit: CountInput, max: number): number {
  return Math.min(requireNonNegative("limit", limit ?? DEFAULT_PAGE_SIZE), max);
}

export function readOffset(offset: CountInput): number {
  return requireNonNegative("offset", offset ?? 0);
}

/** A page is counted from the one end or from the other; without either it is the first page. */
export function readPage(
  first: CountInput,
  last: CountInput,
  max: number,
): { readonly first: number | null; readonly last: number | null } {
  if (first != null && last != null)
    throw new ApiError(400, "VALIDATION_ERROR", "Ask for first or last, not for both.");
  if (last != null) return { first: null, last: Math.min(requireNonNegative("last", last), max) };
  return { first: Math.min(requireNonNegative("first", first ?? DEFAULT_PAGE_SIZE), max), last: null };
}

function requireNonNegative(name: string, count: number): number {
  if (count < 0) throw new ApiError(400, "VALIDATION_ERROR", `${name} must not be negative.`);
  return count;
}

type SelectedItems = ReturnType<PgSelectStep["items"]>;

/**
 * The rows of a list whose arguments may be refused. The list is often a part of its parent's statement, which would fail with
 * its arguments; so it is read with others in their place, and fails itself.
 */
class CheckedRowsStep extends Step {
  static override $$export = { moduleName: import.meta.filename, exportName: "CheckedRowsStep" };

  constructor($rows: PgSelectStep, checks: readonly Step[]) {
    super();
    this.isSyncAndSafe = true;
    this.addStrongDependency($rows.items());
    for (const $check of checks) this.addDependency($check);
  }

  listItem($item: Step): Step {
    return (this.getDepOptions(0).step as SelectedItems).listItem(
      $item as Parameters<SelectedItems["listItem"]>[0],
    ) as Step;
  }

  override execute({ indexMap, values }: ExecutionDetails): GrafastResultsList<unknown> {
    const rows = values[0]!;
    return indexMap((index) => rows.at(index));
  }
}

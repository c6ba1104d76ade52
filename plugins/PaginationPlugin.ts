import type {} from "postgraphile";
import type { PgSelectStep } from "postgraphile/@dataplan/pg";
import {
  ConstantStep,
  type connection,
  constant,
  type FieldPlanResolver,
  lambda,
  type Step,
} from "postgraphile/grafast";
import { CheckedRowsStep } from "./checked-rows.ts";
import { applyOrder, type Order, orderOf } from "./order.ts";
import { DEFAULT_PAGE_SIZE, readLimit, readOffset, readPage } from "./page-size.ts";
import { isTable, type Table } from "./table.ts";

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

type Scope = GraphileBuild.ScopeObjectFieldsField;
type Rows = PgSelectStep<Table>;
type Connection = ReturnType<typeof connection>;

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
        const max = build.options.maxPageSize!;
        if (!isTable(resource)) return { ...field, plan: planAll(plan, max) };
        const order = orderOf(
          resource,
          (column) => build.behavior.pgCodecAttributeMatches([resource.codec, column], "attribute:orderBy") === true,
        );
        return { ...field, plan: isPgFieldConnection ? planConnection(plan, order, max) : planList(plan, order, max) };
      },
    },
  },
};

function pagingArguments({ graphql: { GraphQLInt, GraphQLString }, behavior }: GraphileBuild.Build, scope: Scope) {
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
function planAll(plan: FieldPlanResolver, max: number): FieldPlanResolver {
  return ($parent, args, info) => {
    const $rows = plan($parent, args, info) as Rows;
    $rows.setFirst(constant(max));
    return $rows;
  };
}

function planList(plan: FieldPlanResolver, order: Order, max: number): FieldPlanResolver {
  const limitOf = (limit: number | null | undefined) => readLimit(limit, max);
  return ($parent, args, info) => {
    const $rows = plan($parent, args, info) as Rows;
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

function withChecks($rows: Rows, checks: readonly (Step | null)[]): Step {
  const needed = checks.filter((check) => check !== null);
  return needed.length === 0 ? $rows : new CheckedRowsStep($rows, needed);
}

function planConnection(plan: FieldPlanResolver, order: Order, max: number): FieldPlanResolver {
  const pageOf = ([first, last]: readonly [number | undefined, number | undefined]) => readPage(first, last, max);
  return ($parent, args, info) => {
    const $connection = plan($parent, args, info) as Connection;
    applyOrder($connection.getSubplan() as Step as Rows, order);
    const $page = lambda([args.getRaw("first"), args.getRaw("last")], pageOf);
    $connection.setFirst(lambda($page, ({ first }) => first));
    $connection.setLast(lambda($page, ({ last }) => last));
    $connection.setAfter(args.getRaw("after"));
    $connection.setBefore(args.getRaw("before"));
    return $connection;
  };
}

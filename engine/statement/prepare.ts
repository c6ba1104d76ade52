import { memoizePerObject } from "../cache/memoize.ts";
import { type CacheHits, RecentMap } from "../cache/recent-map.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { DirectRelationship } from "../catalog/relationships.ts";
import type { Stepwise } from "../concurrency/stepwise.ts";
import type { Statement } from "../database/statement.ts";
import { ApiError } from "../errors.ts";
import type {
  CallArgument,
  CursorPage,
  FieldReference,
  FilterOperation,
  Intent,
  OrderTerm,
  ResponseFormat,
  ResponseOptions,
  RowCondition,
  RowOperation,
  RowPayload,
  RowSelection,
  SelectItem,
} from "./intent.ts";
import { bindValues, bindValuesInSteps } from "./plan/bind-parameters.ts";
import { isJsonObject } from "./plan/find-routine.ts";
import { type Plan, type PlanOptions, planIntent } from "./plan/plan.ts";
import { type StreamedPlan, toProbePlan, toStreamedPlan } from "./plan/streamed-plan.ts";
import { buildQuery, buildRowsQuery } from "./query/build-query.ts";
import type { StatementTemplate } from "./query/sql.ts";

/** Most that is selected is selected again. */
const selectKey = memoizePerObject((select: readonly SelectItem[]): string =>
  JSON.stringify(select.map(outlineSelectItem)),
);

export type PreparedRequest = {
  readonly plan: Plan;
  /** Gives the whole answer in one row. */
  readonly statement: Statement;
  /** Null for an answer that can only be had whole. */
  readonly stream: StreamedRead | null;
  /** The same for another intent, which differs in its values only. */
  withIntent(intent: Intent): PreparedRequest;
};

/** Other ways to an answer that may be too long to be held. */
export type StreamedRead = {
  readonly plan: StreamedPlan;
  /** Gives the whole answer too, or else more rows than it may have. */
  readonly probe: Statement;
  /** Gives one row after the other. */
  rows(): Statement;
  readonly history: ShapeHistory;
};

/** What is known of all requests of one shape. */
type ShapeHistory = {
  /** Whether the latest answer was too long to be held. */
  wasTooLong: boolean;
};

type CachedPlan = { readonly plan: Plan; readonly query: StatementTemplate; readonly stream: CachedStream | null };
type CachedStream = {
  readonly plan: StreamedPlan;
  readonly probe: StatementTemplate;
  readonly rows: StatementTemplate;
  readonly history: ShapeHistory;
};

const MAX_CACHED_PLANS = 2_000;

type PreparerOptions = Omit<PlanOptions, "role"> & {
  /** Answers are told whole, however long they are. */
  readonly neverStreams?: boolean;
};

type PrepareArguments = readonly [intent: Intent, manner: ResponseOptions, catalog: Catalog, role: string];

export type RequestPreparer = {
  prepare(...request: PrepareArguments): PreparedRequest;
  /** The same where a body is so large that its values take long to be put together. */
  prepareInSteps(...request: PrepareArguments): Stepwise<PreparedRequest>;
};

/** Plans what an intent of its shape needs, once per catalogue and role; each request brings only its values. */
export function makeRequestPreparer(
  { neverStreams = false, ...settings }: PreparerOptions,
  hits?: CacheHits,
): RequestPreparer {
  const cache = new RecentMap<string, CachedPlan>(MAX_CACHED_PLANS, undefined, hits);
  let cachedFor: Catalog | null = null;

  const findOrPlan = (intent: Intent, manner: ResponseOptions, catalog: Catalog, role: string): CachedPlan => {
    if (catalog !== cachedFor) {
      cache.clear();
      cachedFor = catalog;
    }
    const key = `${role}\n${statementShapeKey(intent, manner)}`;
    let cached = cache.get(key);
    if (!cached) {
      cached = planForCache(planIntent(intent, manner, catalog, { ...settings, role }), neverStreams);
      cache.set(key, cached);
    }
    return cached;
  };

  return {
    prepare: (intent, manner, catalog, role) => bindRequest(findOrPlan(intent, manner, catalog, role), intent),
    *prepareInSteps(intent, manner, catalog, role) {
      const cached = findOrPlan(intent, manner, catalog, role);
      return bindRequest(cached, intent, yield* bindValuesInSteps(cached.query.parameters, intent));
    },
  };
}

function planForCache(plan: Plan, neverStreams: boolean): CachedPlan {
  const streamed = neverStreams ? null : toStreamedPlan(plan);
  return { plan, query: buildQuery(plan), stream: streamed && planStreamForCache(plan, streamed) };
}

function planStreamForCache(wholePlan: Plan, plan: StreamedPlan): CachedStream {
  return {
    plan,
    probe: buildQuery(toProbePlan(wholePlan)),
    rows: buildRowsQuery(plan),
    history: { wasTooLong: false },
  };
}

function bindRequest(
  cached: CachedPlan,
  intent: Intent,
  values = bindValues(cached.query.parameters, intent),
): PreparedRequest {
  const { plan, query, stream } = cached;
  const statement = { text: query.text, values };
  const withIntent = (other: Intent) => bindRequest(cached, other);
  if (!stream) return { plan, statement, stream, withIntent };
  const { probe, rows, history } = stream;
  return {
    plan,
    statement,
    withIntent,
    stream: {
      plan: stream.plan,
      // It differs in its limit alone.
      probe: { text: probe.text, values: statement.values },
      rows: () => ({ text: rows.text, values: bindValues(rows.parameters, intent) }),
      history,
    },
  };
}

/**
 * Equal for intents that differ in their values only: they have one plan, and so one statement. Refuses names that
 * Postgres cannot have.
 */
export function statementShapeKey(
  intent: Intent,
  { formats, includesBody: body, maxAffected }: ResponseOptions,
): string {
  const others = JSON.stringify([
    intent.kind,
    intent.target.schema,
    intent.target.name,
    outlineSelection(intent.selection),
    intent.count,
    outlineKind(intent),
    formats.map(outlineFormat),
    body,
    maxAffected,
  ]);
  const key = selectKey(intent.selection.select) + others;
  // An odd number of backslashes: the character itself, and not the six characters that spell it.
  if (key.includes("u0000") && /(?<!\\)(\\\\)*\\u0000/.test(key)) {
    throw new ApiError(400, "22021", 'invalid byte sequence for encoding "UTF8": 0x00');
  }
  return key;
}

function outlineKind(intent: Intent): unknown[] {
  switch (intent.kind) {
    case "read":
      return [outlinePage(intent.page)];
    case "insert": {
      const { payload, missingAsDefault, upsert, single, returned } = intent;
      return [returned, ...outlinePayload(payload), missingAsDefault, upsert?.resolution, upsert?.onConflict, single];
    }
    case "update":
      return [intent.returned, ...outlinePayload(intent.payload), intent.missingAsDefault, intent.returnsUnchangedRows];
    case "delete":
      return [intent.returned];
    case "call":
      return [
        ...outlineArgument(intent.argument),
        intent.readOnly,
        outlinePage(intent.page),
        intent.row && [intent.row.of.schema, intent.row.of.name, intent.row.conditions.map(outlineCondition)],
      ];
  }
}

/** Rows before and behind a null are found in another way than those of a value. */
function outlinePage(page: CursorPage | null): unknown {
  if (page?.kind !== "after") return page?.kind;
  return [page.position.order, page.position.values.map((value) => value === null)];
}

function outlinePayload({ columns, isArray, valueSpans: grid }: RowPayload): unknown[] {
  return [columns, isArray, grid !== undefined];
}

function outlineArgument(argument: CallArgument): unknown[] {
  switch (argument.kind) {
    case "query":
      return ["query", argument.values.map(([name]) => name)];
    case "json":
      return ["json", argument.names, isJsonObject(argument.body), argument.isCsv === true];
    case "raw":
      return ["raw", argument.type];
  }
}

function outlineSelection({ conditions, orders, ranges: windows }: RowSelection): unknown[] {
  return [
    conditions.map(({ path, value }) => [path, outlineCondition(value)]),
    orders.map(({ path, value }) => [path, value.map(outlineOrderTerm)]),
    windows.map(({ path, value }) => [path, value.offset, value.limit]),
  ];
}

function outlineSelectItem(item: SelectItem): unknown[] {
  if (item.kind === "column") {
    const { field, alias, cast, aggregate } = item;
    return [field && outlineField(field), alias, cast, aggregate && [aggregate.name, aggregate.cast]];
  }
  const { name, alias, hint, relationship, join, spread, select } = item;
  return [name, alias, hint, outlineRelationship(relationship), join, spread, select.map(outlineSelectItem)];
}

function outlineRelationship(relationship: DirectRelationship | undefined): unknown {
  return (
    relationship && [
      relationship.constraint,
      relationship.keyAt,
      relationship.target.schema,
      relationship.target.name,
      relationship.columns,
    ]
  );
}

function outlineField({ name, path }: FieldReference): unknown[] {
  return [name, ...path.map(({ arrow, key }) => [arrow, key])];
}

function outlineCondition(condition: RowCondition): unknown[] {
  const { kind, negated } = condition;
  switch (condition.kind) {
    case "filter":
      return [kind, negated, outlineField(condition.field), outlineOperation(condition.operation)];
    case "related":
      return [
        kind,
        negated,
        condition.relation,
        outlineRelationship(condition.found),
        outlineCondition(condition.condition),
      ];
    case "row":
      return [kind, negated, ...outlineRowOperation(condition.operation)];
    default:
      return [kind, negated, condition.conditions.map(outlineCondition)];
  }
}

function outlineOperation(operation: FilterOperation): unknown[] {
  switch (operation.kind) {
    case "compare":
      return [operation.operator, operation.quantifier];
    case "is":
      return ["is", operation.value];
    case "search":
      return [operation.operator, operation.language];
    default:
      return [operation.kind];
  }
}

function outlineRowOperation(operation: RowOperation): unknown[] {
  switch (operation.kind) {
    case "found":
      return [operation.kind, operation.by.schema, operation.by.name];
    case "permitted":
      return [operation.kind, operation.command];
    default:
      return [operation.kind];
  }
}

function outlineOrderTerm({ field, relation, direction, nulls }: OrderTerm): unknown[] {
  return [outlineField(field), relation, direction, nulls];
}

function outlineFormat(format: ResponseFormat): unknown[] {
  if (format.kind === "plan") return [format.type, format.as, format.options, outlineFormat(format.of)];
  return [format.kind, format.type, format.kind === "media" ? null : format.nulls];
}

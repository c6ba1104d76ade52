import type { Catalog, DirectRelationship } from "#catalog";
import type { Statement } from "#postgres/statement";
import { ApiError, type CacheHits, memoizePerObject, RecentMap } from "#runtime";
import type { Stepwise } from "#runtime/concurrency";
import { withoutHiddenEstimates } from "./hidden-rows.ts";
import type {
  CallArgument,
  CursorPage,
  FieldReference,
  FilterOperation,
  Intent,
  Measure,
  OperandOperation,
  OrderTerm,
  ResponseFormat,
  ResponseOptions,
  RowCondition,
  RowOperation,
  RowPayload,
  RowSelection,
  SelectItem,
} from "./intent/intent.ts";
import { bindValues, bindValuesInSteps, listOperations } from "./plan/bind-parameters.ts";
import { isObjectText } from "./plan/find-target.ts";
import { bindKeysetOrder, orderOfShape } from "./plan/keyset-order.ts";
import type { NestedStep } from "./plan/nested-step.ts";
import { type Plan, type PlanOptions, type StreamedPlan, toProbePlan, toStreamedPlan } from "./plan/plan.ts";
import { planCall } from "./plan/plan-call.ts";
import { type NestedInsertIntent, planNestedInsert } from "./plan/plan-nested.ts";
import { type NestedUpdateIntent, planNestedUpdate } from "./plan/plan-nested-update.ts";
import { planRead } from "./plan/plan-read.ts";
import { planWrite } from "./plan/plan-write.ts";
import type { LegacyTarget } from "./plan/select-tree.ts";
import type { PlanContext } from "./plan/selection-context.ts";
import { buildNestedInsert } from "./query/build-nested.ts";
import { buildNestedChange } from "./query/build-nested-change.ts";
import { buildEstimateQuery, buildQuery, buildRowsQuery } from "./query/build-query.ts";
import type { StatementTemplate } from "./query/sql.ts";

/** The key is memoized, since most selections repeat. */
const selectKey = memoizePerObject((select: readonly SelectItem[]): string =>
  JSON.stringify(select.map(outlineSelectItem)),
);

/** A plan and its SQL. It serves all intents of one shape, which differ only in their values. */
export type PlannedRequest = {
  readonly plan: Plan;
  /** Returns the whole response in one row. */
  readonly template: StatementTemplate;
  /** Null: the response is never streamed. */
  readonly stream: PlannedStream | null;
  /** Null: no estimate of the number of rows was requested. */
  readonly estimate: PlannedEstimate | null;
  /** Bound statements that run before it in the same transaction; such a request is planned for one intent only. */
  readonly nested: NestedStatements | null;
};

/** The statements of a nested insert or update, and their plans. */
export type NestedStatements = {
  readonly statements: readonly Statement[];
  readonly steps: readonly NestedStep[];
};

type PlannedStream = {
  readonly plan: StreamedPlan;
  /** Returns the whole response too, or one row more than may be buffered. */
  readonly probe: StatementTemplate;
  /** Returns one row of the response after the other. */
  readonly rows: StatementTemplate;
  readonly history: ShapeHistory;
};

/** The history of requests of the same shape. */
type ShapeHistory = {
  /** True if the latest response was too long to be buffered. */
  wasTooLong: boolean;
};

type PlannedEstimate = {
  readonly template: StatementTemplate;
  /** The exact count is used up to this number of rows; null: the estimate is always queried. */
  readonly exactUpTo: number | null;
};

/** A planned request with the values of one intent, ready to run. */
export type PreparedRequest = Pick<PlannedRequest, "plan" | "nested"> & {
  readonly intent: Intent;
  readonly statement: Statement;
  readonly stream: PreparedStream | null;
  readonly estimate: PreparedEstimate | null;
};

export type PreparedStream = Pick<PlannedStream, "plan" | "history"> & {
  readonly probe: Statement;
  rows(): Statement;
};

export type PreparedEstimate = Pick<PlannedEstimate, "exactUpTo"> & { readonly statement: Statement };

/** The limit for each caller class: anonymous callers who send ever new shapes do not evict the plans of callers with a role. */
const MAX_PLAN_BYTES = 24 * 1024 * 1024;
const PLAN_OVERHEAD_BYTES = 4_000;
/** The measured size of a plan with its tree of columns; a thousand columns are 1 MB. */
const BYTES_PER_SQL_CHARACTER = 12;

/** The approximate memory of a plan, by the length of its statements. */
function retainedBytes({ template, stream, estimate }: PlannedRequest): number {
  const texts = [template, stream?.probe, stream?.rows, estimate?.template];
  const characters = texts.reduce((sum, statement) => sum + (statement?.text.length ?? 0), 0);
  return PLAN_OVERHEAD_BYTES + BYTES_PER_SQL_CHARACTER * characters;
}

type PlannerOptions = Omit<PlanOptions, "role"> & {
  /** Responses are returned whole, however long they are. */
  readonly neverStreams?: boolean;
  /** The role whose plans are cached separately. */
  readonly anonymousRole?: string | undefined;
};

/** `planKey` is the same object for intents of one role that differ in their values only: their shape is written once. */
export type PlanRequest = (
  intent: Intent,
  response: ResponseOptions,
  catalog: Catalog,
  role: string,
  planKey?: object,
) => PlannedRequest;

/** Plans each shape of intent once per catalogue and role. */
export function makeRequestPlanner(options: PlannerOptions, hits?: CacheHits): PlanRequest {
  const makeCache = () =>
    new RecentMap<string, PlannedRequest>(MAX_PLAN_BYTES, (_, planned) => retainedBytes(planned), hits);
  const [ofAnonymous, ofOthers] = [makeCache(), makeCache()];
  let cachedFor: Catalog | null = null;
  const shapeTextOf = memoizePerObject((_planKey: object, ...shape: Parameters<typeof shapeText>) =>
    shapeText(...shape),
  );
  // A request may be planned several times: for its key, its transaction and itself.
  const planNested = memoizePerObject((intent: NestedIntent, ...rest: [ResponseOptions, Catalog, string]) =>
    planNestedRequest(intent, rest[0], rest[1], { ...options, role: rest[2] }),
  );
  return (intent, response, catalog, role, planKey) => {
    if (isNested(intent)) return planNested(intent, response, catalog, role);
    if (catalog !== cachedFor) {
      ofAnonymous.clear();
      ofOthers.clear();
      cachedFor = catalog;
    }
    const cache = role === options.anonymousRole ? ofAnonymous : ofOthers;
    const shape = planKey ? shapeTextOf(planKey, intent, response, role) : shapeText(intent, response, role);
    let planned = cache.get(shape);
    if (!planned) {
      planned = buildTemplates(planIntent(intent, response, catalog, { ...options, role }), intent, options);
      cache.set(shape, planned);
    }
    return planned;
  };
}

function shapeText(intent: Intent, response: ResponseOptions, role: string): string {
  return `${role}\n${statementShapeKey(intent, response)}`;
}

function buildTemplates(plan: Plan, { count }: Intent, { neverStreams, maxRows }: PlannerOptions): PlannedRequest {
  const streamed = neverStreams ? null : toStreamedPlan(plan);
  const hasEstimate = plan.kind === "read" && plan.needsEstimate && plan.format.kind !== "plan";
  return {
    plan,
    template: buildQuery(plan),
    stream: streamed && {
      plan: streamed,
      probe: buildQuery(toProbePlan(plan)),
      rows: buildRowsQuery(streamed),
      history: { wasTooLong: false },
    },
    estimate: hasEstimate
      ? { template: buildEstimateQuery(plan), exactUpTo: count === "estimated" ? maxRows : null }
      : null,
    nested: null,
  };
}

type NestedIntent = NestedInsertIntent | NestedUpdateIntent;

function isNested(intent: Intent): intent is NestedIntent {
  return (intent.kind === "insert" || intent.kind === "update") && intent.nested !== undefined;
}

function isNestedUpdate(intent: NestedIntent): intent is NestedUpdateIntent {
  return intent.nested.update !== undefined;
}

/** The statements depend on which rows contain which, so their plan is not cached. */
function planNestedRequest(
  intent: NestedIntent,
  response: ResponseOptions,
  catalog: Catalog,
  options: PlanOptions,
): PlannedRequest {
  // The key is not needed, but this refuses names that Postgres does not support.
  statementShapeKey(intent, response);
  const context = makePlanContext(intent, catalog, options);
  const { steps, response: written } = isNestedUpdate(intent)
    ? planNestedUpdate(intent, response, context, options)
    : planNestedInsert(intent, response, context, options);
  const plan = withoutHiddenEstimates(written, steps, catalog, options);
  const statements = steps.map(({ plan: step, payload }) => {
    const { text, parameters } = step.kind === "insert rows" ? buildNestedInsert(step) : buildNestedChange(step);
    return { text, values: bindValues(parameters, { ...intent, payload: { ...intent.payload, json: payload } }) };
  });
  return { plan, template: buildQuery(plan), stream: null, estimate: null, nested: { statements, steps } };
}

/** The query stage: combines the statement's text with values from the intent. Refuses a cursor that belongs to other values. */
export function bindRequest(
  planned: PlannedRequest,
  intent: Intent,
  values = bindValues(planned.template.parameters, intent),
): PreparedRequest {
  const { plan, template, stream, estimate, nested } = planned;
  return {
    plan: bindKeysetOrder(plan, intent),
    nested,
    intent,
    statement: { text: template.text, values },
    stream: stream && {
      plan: stream.plan,
      // The probe differs from the statement only in the limit.
      probe: { text: stream.probe.text, values },
      rows: () => bindTemplate(stream.rows, intent),
      history: stream.history,
    },
    estimate: estimate && { statement: bindTemplate(estimate.template, intent), exactUpTo: estimate.exactUpTo },
  };
}

/** Binds the same in steps, for a body with many values. */
export function* bindRequestInSteps(planned: PlannedRequest, intent: Intent): Stepwise<PreparedRequest> {
  return bindRequest(planned, intent, yield* bindValuesInSteps(planned.template.parameters, intent));
}

function bindTemplate({ text, parameters }: StatementTemplate, intent: Intent): Statement {
  return { text, values: bindValues(parameters, intent) };
}

/**
 * The key of an intent's shape: equal for intents that differ in values only, which share one plan and statement.
 * Throws for names with characters that Postgres does not support.
 */
export function statementShapeKey(
  intent: Intent,
  { formats, includesBody: body, maxAffected, keepsBodyIn }: ResponseOptions,
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
    keepsBodyIn,
  ]);
  const key = selectKey(intent.selection.select) + others;
  // An odd number of backslashes before `u0000`: the NUL character, not the literal text.
  if (key.includes("u0000") && /(?<!\\)(\\\\)*\\u0000/.test(key)) {
    throw new ApiError("invalid", "22021", 'invalid byte sequence for encoding "UTF8": 0x00');
  }
  return key;
}

function outlineKind(intent: Intent): unknown[] {
  switch (intent.kind) {
    case "read":
      return [outlinePage(intent.page)];
    case "insert": {
      const { payload, missingAsDefault, upsert, single, returned } = intent;
      const { resolution, onConflict, keepsKey } = upsert ?? {};
      return [returned, ...outlinePayload(payload), missingAsDefault, resolution, onConflict, keepsKey, single];
    }
    case "update": {
      const { payload, returned, missingAsDefault, returnsUnchangedRows, key, operators } = intent;
      const changes = [key, operators?.map((used) => [used.column, used.operators, used.isUniform])];
      return [returned, ...outlinePayload(payload), missingAsDefault, returnsUnchangedRows, ...changes];
    }
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

/** The predicate for a position differs between null and a value. */
function outlinePage(page: CursorPage | null): unknown {
  if (page?.kind !== "after") return page?.kind;
  return [orderOfShape(page.position), page.position.values.map((value) => value === null)];
}

function outlinePayload({ columns, isArray, valueSpans, incompleteColumns }: RowPayload): unknown[] {
  return [columns, isArray, valueSpans !== undefined, incompleteColumns];
}

function outlineArgument(argument: CallArgument): unknown[] {
  switch (argument.kind) {
    case "query":
      return ["query", argument.values.map(([name]) => name)];
    case "json":
      return ["json", argument.names, isObjectText(argument.body), argument.isCsv === true];
    case "raw":
      return ["raw", argument.type];
  }
}

function outlineSelection({ conditions, having, distinct, orders, ranges }: RowSelection): unknown[] {
  return [
    conditions.map(({ path, value }) => [path, outlineCondition(value)]),
    having?.map(({ path, value }) => [path, outlineCondition(value)]),
    distinct?.map(({ path, value }) => [path, value.map(outlineField)]),
    orders.map(({ path, value }) => [path, value.map(outlineOrderTerm)]),
    ranges.map(({ path, value }) => [path, value.offset, value.limit]),
  ];
}

function outlineSelectItem(item: SelectItem): unknown[] {
  if (item.kind === "column") {
    const { field, alias, cast, aggregate } = item;
    return [
      field && outlineField(field),
      alias,
      cast,
      aggregate && [aggregate.name, aggregate.cast, aggregate.distinct],
    ];
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

function outlineField({ name, path, measure }: FieldReference): unknown[] {
  return [name, ...path.map(({ arrow, key }) => [arrow, key]), ...(measure ? outlineMeasure(measure) : [])];
}

function outlineMeasure({ name, operation }: Measure): unknown[] {
  return ["measure", name, operation?.kind === "search" ? outlineOperation(operation) : operation?.kind];
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
        condition.every,
        outlineCondition(condition.condition),
      ];
    case "row":
      return [kind, negated, ...outlineRowOperation(condition.operation)];
    case "search": {
      const fields = condition.fields.map(({ relations, field }) => [
        relations.map(({ name, found }) => [name, outlineRelationship(found)]),
        outlineField(field),
      ]);
      return [kind, negated, fields, outlineOperation(condition.operation)];
    }
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

function outlineOrderTerm({ field, relation, by, direction, nulls }: OrderTerm): unknown[] {
  return [outlineField(field), relation, by, direction, nulls];
}

function outlineFormat(format: ResponseFormat): unknown[] {
  if (format.kind === "plan") return [format.type, format.as, format.options, outlineFormat(format.of)];
  return [format.kind, format.type, format.kind === "media" ? null : format.nulls];
}

/** Refuses names that do not exist or are ambiguous: PGRST1xx and 2xx. A plan holds no value of the intent. */
export function planIntent(intent: Intent, response: ResponseOptions, catalog: Catalog, options: PlanOptions): Plan {
  const legacyTargets = new Map<string, LegacyTarget>();
  const context = makePlanContext(intent, catalog, options, legacyTargets);
  const plan = withoutHiddenEstimates(planByKind(intent, response, context, options), [], catalog, options);
  return legacyTargets.size === 0 ? plan : { ...plan, legacyTargets: [...legacyTargets.values()] };
}

function makePlanContext(
  intent: Intent,
  catalog: Catalog,
  { role, aggregates, maxRows, legacyTargetNames }: PlanOptions,
  legacyTargets = new Map<string, LegacyTarget>(),
): PlanContext {
  const parameterIndexes = new Map(listOperations(intent).map((operation, index) => [operation, index]));
  return {
    catalog,
    role,
    aggregates,
    schema: intent.target.schema,
    maxRows: intent.kind === "read" || intent.kind === "call" ? maxRows : null,
    legacyTargetNames,
    onLegacyName: (target) => legacyTargets.set(target.name, target),
    parameterFor: (operation: OperandOperation) => ({
      kind: "operand",
      index: parameterIndexes.get(operation)!,
    }),
  };
}

function planByKind(intent: Intent, response: ResponseOptions, context: PlanContext, options: PlanOptions): Plan {
  switch (intent.kind) {
    case "read":
      return planRead(intent, response, context, options);
    case "call":
      return planCall(intent, response, context, options);
    default:
      return planWrite(intent, response, context, options);
  }
}

import { baseTypeOf, type Catalog, type Routine, type RoutineArgument } from "#catalog";
import { ApiError } from "#runtime";
import type { BindParameter, CallArgument, CallIntent, ResponseOptions } from "../intent/intent.ts";
import {
  acceptsWholeBody,
  argumentNames,
  findRoutine,
  findRowRoutine,
  isObjectText,
  withoutRowArgument,
} from "./find-target.ts";
import { cursorNotPossible, planCallPage } from "./keyset-page.ts";
import {
  type BodyPlan,
  type CallPlan,
  negotiateFormat,
  type PlanOptions,
  type RowCountGuard,
  type TotalPlan,
} from "./plan.ts";
import { planTotal } from "./plan-read.ts";
import { effectiveRange, planConditions, planResultRows, planSelection } from "./plan-selection.ts";
import { placeCountConditions } from "./related-count.ts";
import { rowScope, type SelectScope, tableRowScope } from "./scope.ts";
import { buildSelectTree, makeSelectNode, type SelectNode, selectsAllColumns } from "./select-tree.ts";
import type { RoutineArguments, RoutineCall, RoutineParameter, WherePredicate } from "./selection.ts";
import type { PlanContext } from "./selection-context.ts";

export function planCall(
  requested: CallIntent,
  response: ResponseOptions,
  context: PlanContext,
  options: PlanOptions,
): CallPlan {
  const { catalog, role } = context;
  const intent = resolveCursorArgument(requested, catalog);
  const { selection, count, readOnly } = intent;
  const routine = intent.row ? findRowRoutine(intent, intent.row.of, catalog) : findRoutine(intent, catalog, role);
  if (response.maxAffected !== null && !routine.returns.set) throw routineNotSetReturning();
  const scope = callScope(routine, catalog);
  const tree = buildSelectTree(placeCountConditions(selection, scope.table, context), context);
  // The function runs anyway, so an estimate would save nothing.
  const total = planTotal(count === "estimated" ? "exact" : count, effectiveRange(tree, context.maxRows), options);
  const { call, where } = planRoutineCall(routine, intent, scope.alias, context);
  if (intent.page && (call.isScalar || !routine.returns.set))
    throw cursorNotPossible("The function gives no set of rows.");
  const { rows, result, page } = intent.page
    ? planCallPage(intent.page, { routine, scope, node: tree }, context)
    : { ...planCallRows(call, { node: tree, scope, total, where }, context), page: null };
  const target = { schema: routine.schema, name: scope.name };
  const selectsAll = selectsAllColumns(selection.select);
  const { format, body } = negotiateFormat({
    ...response,
    target,
    selectsAll,
    catalog,
    explain: options.explainEnabled,
  });
  const isReadOnly = readOnly || routine.volatility !== "volatile";
  return {
    kind: "call",
    routine,
    call,
    rows,
    result,
    keyset: page,
    format,
    body: response.includesBody ? planCallBody(body, routine) : { kind: "none" },
    total,
    readOnly: isReadOnly,
    guards: [...planCallGuards(response, format.kind === "object" && !isReadOnly), ...planRowGuards(intent, routine)],
  };
}

/** `cursor` is the function's argument if it has one of that name, as in PostgREST; otherwise it requests a page. */
function resolveCursorArgument(intent: CallIntent, catalog: Catalog): CallIntent {
  const { target, argument } = intent;
  if (intent.page === null || argument.kind !== "query") return intent;
  const overloads = catalog.schemas.get(target.schema)?.routines.get(target.name) ?? [];
  const isArgument = overloads.some((routine) => routine.arguments.some(({ name }) => name === "cursor"));
  if (isArgument) return { ...intent, page: null };
  return { ...intent, argument: { kind: "query", values: argument.values.filter(([name]) => name !== "cursor") } };
}

type CallRows = {
  readonly node: SelectNode;
  readonly scope: SelectScope;
  readonly total: TotalPlan;
  /** The condition for the passed row. */
  readonly where: readonly WherePredicate[];
};

function planCallRows(call: RoutineCall, { node: tree, scope, total, where }: CallRows, context: PlanContext) {
  // Rows that are counted are read twice, but the function must be called once.
  if (total.kind === "counted") return planResultRows(tree, scope, scope.table, context);
  return { rows: planSelection(tree, { scope, source: { kind: "call", call }, join: where }, context), result: null };
}

function callScope({ name, returns }: Routine, catalog: Catalog): SelectScope {
  const outer = { depth: 0, takenAliases: new Set<string>() };
  const type = baseTypeOf(returns.type);
  const alias = returns.shape === "composite" ? type.name : name;
  if (type.kind !== "composite" || returns.columns.size > 0) return rowScope(alias, returns.columns, outer);
  const table = type.table ? catalog.findTable(type.table) : undefined;
  return table ? tableRowScope(table, { alias: table.name, ...outer }) : rowScope(alias, type.attributes, outer);
}

function planRoutineCall(routine: Routine, { row, argument }: CallIntent, alias: string, context: PlanContext) {
  const { schema, name, returns } = routine;
  const isScalar = returns.shape !== "composite";
  const common = { routine: { schema, name }, alias, isScalar };
  if (!row) {
    const call: RoutineCall = { ...common, arguments: planArguments(routine, argument, alias), row: null };
    return { call, where: [] };
  }
  const table = context.catalog.findTable(row.of)!;
  const scope = tableRowScope(table, {
    alias: alias === "row" ? "given_row" : "row",
    depth: 0,
    takenAliases: new Set([alias]),
  });
  const call: RoutineCall = {
    ...common,
    arguments: planArguments(withoutRowArgument(routine), argument, alias),
    row: { table: { schema: table.schema, name: table.name }, alias: scope.alias },
  };
  const node = { ...makeSelectNode([]), conditions: [...row.conditions] };
  return { call, where: planConditions(node, scope, context) };
}

function planArguments(routine: Routine, argument: CallArgument, alias: string): RoutineArguments {
  if (acceptsWholeBody(routine, argument)) return { kind: "body", sqlType: routine.arguments[0]!.type.sqlName };
  const names = argumentNames(argument);
  const parameters = routine.arguments
    .filter(({ name }) => name !== null && names.includes(name))
    .map(toRoutineParameter);
  if (parameters.length === 0) return { kind: "none" };
  const positional = isPositional(routine, parameters);
  if (argument.kind === "query") {
    const parameterOf = ({ name, variadic }: RoutineParameter): BindParameter => ({
      kind: "argument",
      name,
      all: variadic,
    });
    return {
      kind: "each",
      positional,
      parameters: parameters.map((parameter) => ({ ...parameter, parameter: parameterOf(parameter) })),
    };
  }
  const isArray = argument.kind === "json" && !isObjectText(argument.body);
  return { kind: "record", alias: alias === "arguments" ? "given" : "arguments", isArray, positional, parameters };
}

/** Postgres resolves a variadic function by named notation only if all arguments are passed. */
function isPositional({ arguments: all }: Routine, parameters: readonly RoutineParameter[]): boolean {
  const isPart = parameters.length < all.length && parameters.every(({ name }, at) => all[at]!.name === name);
  return isPart && all.some(({ mode }) => mode === "variadic");
}

/** `bit` and `character` without a length have length 1 in a column definition, but any length as a parameter. */
const TYPES_WITHOUT_LENGTH: Readonly<Record<string, string>> = {
  bit: "bit varying",
  "bit[]": "bit varying[]",
  character: "character varying",
  "character[]": "character varying[]",
};

function toRoutineParameter({ name, type, mode }: RoutineArgument): RoutineParameter {
  return { name: name!, sqlType: TYPES_WITHOUT_LENGTH[type.sqlName] ?? type.sqlName, variadic: mode === "variadic" };
}

function planCallBody(body: BodyPlan, { returns: { shape: selection, set } }: Routine): BodyPlan {
  const isScalar = selection !== "composite";
  if (body.kind === "aggregate" && isScalar && !set) return { ...body, of: "value" };
  if (body.kind !== "json") return body;
  const isOne = !set || body.of === "row";
  if (isScalar) return { kind: "scalar", of: isOne ? "value" : "values", nulls: body.nulls };
  return { ...body, of: isOne ? "row" : "rows" };
}

/** The guards are only needed for writes, which they roll back: the format of a single row checks the number itself. */
function planCallGuards({ maxAffected }: ResponseOptions, isSingular: boolean): RowCountGuard[] {
  const guards: RowCountGuard[] = [];
  if (isSingular) guards.push({ code: "PGRST116", rows: "exactly", count: 1 });
  if (maxAffected !== null) guards.push({ code: "PGRST124", rows: "at most", count: maxAffected });
  return guards;
}

/** The key of a table may find several rows, if other tables inherit from it. The rows of a set say nothing about the passed rows. */
function planRowGuards({ row }: CallIntent, { returns }: Routine): RowCountGuard[] {
  return row && !returns.set ? [{ code: "PGRST124", rows: "at most", count: 1 }] : [];
}

function routineNotSetReturning(): ApiError {
  return new ApiError(
    "invalid",
    "PGRST128",
    "Function must return SETOF or TABLE when max-affected preference is used with handling=strict",
  );
}

import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { QualifiedName } from "../../../engine/catalog/qualified-name.ts";
import type { Argument, Routine } from "../../../engine/catalog/routines.ts";
import { baseTypeOf } from "../../../engine/catalog/types.ts";
import { ApiError } from "../../../engine/errors.ts";
import type { CallArgument, CallIntent, Manner } from "../intent.ts";
import { type Body, negotiate } from "./format.ts";
import { beginsAsObject } from "./json-object.ts";
import { planCallPage } from "./page.ts";
import { noPage } from "./page-refusals.ts";
import { namesOf, takesBody } from "./parameters.ts";
import type { CallPlan, Guard, PlanOptions, Total } from "./plan.ts";
import { isEverything, totalOf } from "./read.ts";
import { planResult } from "./result.ts";
import { findRoutine, findRowRoutine, withoutRow } from "./routine.ts";
import { rowScope, type Scope, tableScope } from "./scope.ts";
import { type Planning, planConditions, planRows, windowOf } from "./select.ts";
import type { Where } from "./selection.ts";
import type { Slot } from "./slots.ts";
import { type Node, plant } from "./tree.ts";

export type Call = {
  readonly routine: QualifiedName;
  /** What the rows that it gives are called. */
  readonly alias: string;
  /** A value, or values, that are no rows. */
  readonly isScalar: boolean;
  readonly arguments: CallArguments;
  /** A row of the table goes before them; null: no row does. */
  readonly row: { readonly table: QualifiedName; readonly alias: string } | null;
};

export type CallArguments =
  | { readonly kind: "none" }
  | { readonly kind: "body"; readonly sqlType: string }
  | {
      readonly kind: "each";
      readonly byPlace: boolean;
      readonly parameters: readonly (Parameter & { readonly slot: Slot })[];
    }
  /** Read from a JSON object, or from the first one of an array. */
  | {
      readonly kind: "record";
      readonly alias: string;
      readonly isArray: boolean;
      readonly byPlace: boolean;
      readonly parameters: readonly Parameter[];
    };

export type Parameter = { readonly name: string; readonly sqlType: string; readonly variadic: boolean };

export function planCall(asked: CallIntent, manner: Manner, planning: Planning, options: PlanOptions): CallPlan {
  const { catalog, role } = planning;
  const intent = settleCursor(asked, catalog);
  const { shape, count, readOnly } = intent;
  const routine = intent.row ? findRowRoutine(intent, intent.row.of, catalog) : findRoutine(intent, catalog, role);
  if (manner.maxAffected !== null && !routine.returns.set) throw notASet();
  const scope = scopeOf(routine, catalog);
  const node = plant(shape, planning);
  // The function has run anyway: an estimate of its rows saves nothing.
  const total = totalOf(count === "estimated" ? "exact" : count, windowOf(node, planning.maxRows), options);
  const { call, where } = toCall(routine, intent, scope.alias, planning);
  if (intent.page && (call.isScalar || !routine.returns.set)) throw noPage("The function gives no set of rows.");
  const { rows, result, page } = intent.page
    ? planCallPage(intent.page, { routine, scope, node }, planning)
    : { ...planGiven(call, { node, scope, total, where }, planning), page: null };
  const target = { schema: routine.schema, name: scope.name };
  const selectsAll = isEverything(shape.select);
  const { format, body } = negotiate({ ...manner, target, selectsAll, catalog, explain: options.explain });
  const isReadOnly = readOnly || routine.volatility !== "volatile";
  return {
    kind: "call",
    routine,
    call,
    rows,
    result,
    page,
    format,
    body: manner.body ? bodyOf(body, routine) : { kind: "none" },
    total,
    readOnly: isReadOnly,
    guards: guardsOf(manner, format.kind === "object" && !isReadOnly),
  };
}

/** Where a function has an argument called cursor, it is that, as for PostgREST; elsewhere it asks for a page. */
function settleCursor(intent: CallIntent, catalog: Catalog): CallIntent {
  const { target, argument } = intent;
  if (intent.page === null || argument.kind !== "query") return intent;
  const overloads = catalog.schemas.get(target.schema)?.routines.get(target.name) ?? [];
  const isArgument = overloads.some((routine) => routine.arguments.some(({ name }) => name === "cursor"));
  if (isArgument) return { ...intent, page: null };
  return { ...intent, argument: { kind: "query", values: argument.values.filter(([name]) => name !== "cursor") } };
}

type Given = {
  readonly node: Node;
  readonly scope: Scope;
  readonly total: Total;
  /** Which row it is given. */
  readonly where: readonly Where[];
};

function planGiven(call: Call, { node, scope, total, where }: Given, planning: Planning) {
  // Rows that are counted besides are read twice, and the function is to be called once.
  if (total.kind === "counted") return planResult(node, scope, scope.table, planning);
  return { rows: planRows(node, { scope, source: { kind: "call", call }, join: where }, planning), result: null };
}

function scopeOf({ name, returns }: Routine, catalog: Catalog): Scope {
  const around = { depth: 0, taken: new Set<string>() };
  const type = baseTypeOf(returns.type);
  const alias = returns.shape === "composite" ? type.name : name;
  if (type.kind !== "composite" || returns.columns.size > 0) return rowScope(alias, returns.columns, around);
  const table = type.table ? catalog.findTable(type.table) : undefined;
  return table ? tableScope(table, { alias: table.name, ...around }) : rowScope(alias, type.attributes, around);
}

function toCall(routine: Routine, { row, argument }: CallIntent, alias: string, planning: Planning) {
  const { schema, name, returns } = routine;
  const isScalar = returns.shape !== "composite";
  const called = { routine: { schema, name }, alias, isScalar };
  if (!row) {
    const call: Call = { ...called, arguments: toArguments(routine, argument, alias), row: null };
    return { call, where: [] };
  }
  const table = planning.catalog.findTable(row.of)!;
  const scope = tableScope(table, { alias: alias === "row" ? "given_row" : "row", depth: 0, taken: new Set([alias]) });
  const call: Call = {
    ...called,
    arguments: toArguments(withoutRow(routine), argument, alias),
    row: { table: { schema: table.schema, name: table.name }, alias: scope.alias },
  };
  const conditions = { columns: [], children: [], conditions: [...row.conditions], order: [], window: null };
  return { call, where: planConditions(conditions, scope, planning) };
}

function toArguments(routine: Routine, argument: CallArgument, alias: string): CallArguments {
  if (takesBody(routine, argument)) return { kind: "body", sqlType: routine.arguments[0]!.type.sqlName };
  const given = namesOf(argument);
  const parameters = routine.arguments.filter(({ name }) => name !== null && given.includes(name)).map(toParameter);
  if (parameters.length === 0) return { kind: "none" };
  const byPlace = isByPlace(routine, parameters);
  if (argument.kind === "query") {
    const slotOf = ({ name, variadic }: Parameter): Slot => ({ kind: "argument", name, all: variadic });
    return {
      kind: "each",
      byPlace,
      parameters: parameters.map((parameter) => ({ ...parameter, slot: slotOf(parameter) })),
    };
  }
  const isArray = argument.kind === "json" && !beginsAsObject(argument.body);
  return { kind: "record", alias: alias === "arguments" ? "given" : "arguments", isArray, byPlace, parameters };
}

/** By name Postgres finds a variadic function only when all its arguments are given. */
function isByPlace({ arguments: all }: Routine, parameters: readonly Parameter[]): boolean {
  const isPart = parameters.length < all.length && parameters.every(({ name }, at) => all[at]!.name === name);
  return isPart && all.some(({ mode }) => mode === "variadic");
}

/** `bit` and `character` without a length are of length 1 as a column, and of any length as a parameter. */
const WITHOUT_LENGTH: Readonly<Record<string, string>> = {
  bit: "bit varying",
  "bit[]": "bit varying[]",
  character: "character varying",
  "character[]": "character varying[]",
};

function toParameter({ name, type, mode }: Argument): Parameter {
  return { name: name!, sqlType: WITHOUT_LENGTH[type.sqlName] ?? type.sqlName, variadic: mode === "variadic" };
}

function bodyOf(body: Body, { returns: { shape, set } }: Routine): Body {
  const isScalar = shape !== "composite";
  if (body.kind === "aggregate" && isScalar && !set) return { ...body, of: "value" };
  if (body.kind !== "json") return body;
  const isOne = !set || body.of === "row";
  if (isScalar) return { kind: "scalar", of: isOne ? "value" : "values", nulls: body.nulls };
  return { ...body, of: isOne ? "row" : "rows" };
}

/** Where nothing was written, nothing has to be undone: whoever sends one row can count it. */
function guardsOf({ maxAffected }: Manner, isSingular: boolean): Guard[] {
  const guards: Guard[] = [];
  if (isSingular) guards.push({ code: "PGRST116", rows: "exactly", count: 1 });
  if (maxAffected !== null) guards.push({ code: "PGRST124", rows: "at most", count: maxAffected });
  return guards;
}

function notASet(): ApiError {
  return new ApiError(
    400,
    "PGRST128",
    "Function must return SETOF or TABLE when max-affected preference is used with handling=strict",
  );
}

import type { DirectRelationship, QualifiedName } from "#catalog";
import type {
  CallArgument,
  FieldReference,
  FilterOperation,
  Intent,
  Measure,
  OrderTerm,
  RowCondition,
  RowOperation,
  RowPayload,
  RowSelection,
  SearchOperation,
  SelectItem,
} from "./intent.ts";
import { isObjectText } from "./plan/find-target.ts";

/**
 * An intent without values: only what names objects of the database and operators is copied, so that a member that is added to an
 * intent is not kept by mistake. It can be written as JSON.
 */
export type IntentOutline = Record<string, unknown> & { readonly kind: Intent["kind"] };

/** Aliases are texts of the client: a generated one may contain an id. */
type Rename = (name: string) => string;

/** `isKnown` tells names of columns and arguments from other keys of the body. */
export function outlineIntent(intent: Intent, isKnown: (name: string) => boolean): IntentOutline {
  const rename = makeRename(intent.selection.select);
  const common = {
    kind: intent.kind,
    target: nameOf(intent.target),
    selection: outlineSelection(intent.selection, rename),
    count: intent.count,
  };
  switch (intent.kind) {
    case "read":
      return { ...common, page: intent.page && { kind: "first" } };
    case "insert":
    case "update":
      return {
        ...common,
        returned: intent.returned,
        payload: outlinePayload(intent.payload, isKnown),
        missingAsDefault: intent.missingAsDefault,
        ...(intent.kind === "insert"
          ? { upsert: intent.upsert, single: intent.single }
          : { key: intent.key, operators: intent.operators, returnsUnchangedRows: intent.returnsUnchangedRows }),
      };
    case "delete":
      return { ...common, returned: intent.returned };
    case "call":
      return {
        ...common,
        argument: outlineArgument(intent.argument, isKnown),
        page: intent.page && { kind: "first" },
        readOnly: intent.readOnly,
        row: intent.row && {
          of: nameOf(intent.row.of),
          conditions: intent.row.conditions.map((condition) => outlineCondition(condition, rename)),
        },
      };
  }
}

/** An intent with empty values, of the same shape. */
export function restoreIntent(outline: IntentOutline): Intent {
  const { payload, argument, ...others } = outline as never as {
    readonly payload?: Omit<RowPayload, "json">;
    readonly argument?: CallArgument & { readonly isObject: boolean };
  };
  return {
    ...others,
    ...(payload && { payload: { ...payload, json: Buffer.from(payload.isArray ? "[]" : "{}") } }),
    ...(argument && {
      argument:
        argument.kind === "query" ? argument : { ...argument, body: Buffer.from(argument.isObject ? "{}" : "") },
    }),
  } as Intent;
}

function nameOf({ schema, name }: QualifiedName): QualifiedName {
  return { schema, name };
}

function makeRename(select: readonly SelectItem[]): Rename {
  const names = new Map<string, string>();
  const collect = (items: readonly SelectItem[]) => {
    for (const item of items) {
      if (item.alias !== null && !names.has(item.alias)) names.set(item.alias, `alias${names.size + 1}`);
      if (item.kind === "relation") collect(item.select);
    }
  };
  collect(select);
  return (name) => names.get(name) ?? name;
}

function outlineSelection(selection: RowSelection, rename: Rename) {
  const { select, conditions, having, distinct, orders, ranges } = selection;
  const at = (path: readonly string[]) => path.map(rename);
  return {
    select: select.map((item) => outlineItem(item, rename)),
    conditions: conditions.map(({ path, value }) => ({ path: at(path), value: outlineCondition(value, rename) })),
    having: having?.map(({ path, value }) => ({ path: at(path), value: outlineCondition(value, rename, rename) })),
    distinct: distinct?.map(({ path, value }) => ({
      path: at(path),
      value: value.map((field) => outlineField(field)),
    })),
    orders: orders.map(({ path, value }) => ({
      path: at(path),
      value: value.map((term) => outlineOrder(term, rename)),
    })),
    ranges: ranges.map(({ path, value: { limit } }) => ({
      path: at(path),
      value: { offset: 0, limit: limit === null ? null : 1 },
    })),
  };
}

function outlineItem(item: SelectItem, rename: Rename): unknown {
  const alias = item.alias === null ? null : rename(item.alias);
  if (item.kind === "column") {
    const { kind, field, cast, aggregate } = item;
    return { kind, field: field && outlineField(field), alias, cast, aggregate };
  }
  const { kind, name, hint, relationship, join, spread, select } = item;
  return {
    ...{ kind, name, alias, hint, join, spread },
    ...(relationship && { relationship: outlineRelationship(relationship) }),
    select: select.map((inner) => outlineItem(inner, rename)),
  };
}

function outlineRelationship({ kind, constraint, keyAt, columns, source, target }: DirectRelationship) {
  return { kind, constraint, keyAt, columns, source: nameOf(source), target: nameOf(target) };
}

/** Keys of JSON values are data. */
function outlineField({ name, path, measure }: FieldReference, rename: Rename = (same) => same): unknown {
  return {
    name: rename(name),
    path: path.map(({ arrow, key }) => ({ arrow, key: typeof key === "number" ? 0 : "key" })),
    ...(measure && { measure: outlineMeasure(measure) }),
  };
}

function outlineMeasure({ name, operation, at }: Measure): unknown {
  if (operation?.kind === "distance") return { name, at, operation: { ...operation, value: "" } };
  return { name, at, operation: operation && outlineSearch(operation) };
}

function outlineOrder({ field, by, relation, direction, nulls }: OrderTerm, rename: Rename): unknown {
  return { field: outlineField(field), by, relation: relation && rename(relation), direction, nulls };
}

function outlineCondition(condition: RowCondition, rename: Rename, renameField?: Rename): unknown {
  const { kind, negated } = condition;
  switch (condition.kind) {
    case "filter":
      return {
        kind,
        negated,
        field: outlineField(condition.field, renameField),
        operation: outlineOperation(condition.operation),
      };
    case "related":
      return {
        ...{ kind, negated, relation: rename(condition.relation), every: condition.every },
        ...(condition.found && { found: outlineRelationship(condition.found) }),
        condition: outlineCondition(condition.condition, rename),
      };
    case "row":
      return { kind, negated, operation: outlineRowOperation(condition.operation) };
    case "search":
      return {
        ...{ kind, negated, operation: outlineSearch(condition.operation) },
        fields: condition.fields.map(({ relations, field }) => ({
          relations: relations.map(({ name, found }) => ({
            name: rename(name),
            ...(found && { found: outlineRelationship(found) }),
          })),
          field: outlineField(field),
        })),
      };
    default:
      return {
        kind,
        negated,
        conditions: condition.conditions.map((each) => outlineCondition(each, rename, renameField)),
      };
  }
}

function outlineOperation(operation: FilterOperation): FilterOperation {
  switch (operation.kind) {
    case "compare":
      return { kind: "compare", operator: operation.operator, quantifier: operation.quantifier, value: "" };
    case "in":
      return { kind: "in", values: [""] };
    case "is":
      return { kind: "is", value: operation.value };
    case "isdistinct":
      return { kind: "isdistinct", value: "" };
    case "search":
      return outlineSearch(operation);
  }
}

function outlineSearch({ kind, operator }: SearchOperation): SearchOperation {
  return { kind, operator, language: null, value: "" };
}

function outlineRowOperation(operation: RowOperation): RowOperation {
  switch (operation.kind) {
    case "digest":
      return { kind: "digest", values: [""] };
    case "found":
      return { kind: "found", by: nameOf(operation.by), value: "" };
    case "permitted":
      return { kind: "permitted", command: operation.command };
  }
}

/** Keys of rows that are no columns, such as the relations of a nested insert, are left out. */
function outlinePayload({ columns, isArray, incompleteColumns }: RowPayload, exists: (name: string) => boolean) {
  return { columns: columns.filter(exists), isArray, incompleteColumns: incompleteColumns?.filter(exists) };
}

function outlineArgument(argument: CallArgument, exists: (name: string) => boolean): unknown {
  switch (argument.kind) {
    case "query":
      return { kind: "query", values: argument.values.filter(([name]) => exists(name)).map(([name]) => [name, ""]) };
    case "json":
      return {
        ...{ kind: "json", names: argument.names?.filter(exists) ?? null, isCsv: argument.isCsv },
        isObject: isObjectText(argument.body),
      };
    case "raw":
      return { kind: "raw", type: argument.type, isObject: false };
  }
}

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
  WithEmbedPath,
} from "./intent/intent.ts";
import { isObjectText } from "./plan/find-target.ts";

/**
 * An intent without values: only names of database objects and operators are copied, so that a member that is added to an
 * intent is not kept by mistake. It can be written as JSON.
 */
export type IntentOutline = Record<string, unknown> & { readonly kind: Intent["kind"] };

/** `isKnown` tells names of columns and arguments from other keys of the body. */
export function outlineIntent(intent: Intent, isKnown: (name: string) => boolean): IntentOutline {
  const scope = makeAliasScope(intent.selection.select);
  const common = {
    kind: intent.kind,
    target: nameOf(intent.target),
    selection: outlineSelection(intent.selection, scope),
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
          conditions: intent.row.conditions.map((condition) => outlineCondition(condition, scope)),
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

/** The aliases of the columns and relations selected at one path. The client chooses these texts: a generated one may contain an id. */
type AliasScope = {
  /** The columns by alias. */
  readonly columns: ReadonlyMap<string, SelectedAlias>;
  /** The relations by alias and by name, as paths and conditions refer to them. */
  readonly relations: ReadonlyMap<string, { readonly name: string; readonly scope: AliasScope }>;
};
type SelectedAlias = { readonly name: string; readonly isComputed: boolean };

const NO_ALIASES: AliasScope = { columns: new Map(), relations: new Map() };

function makeAliasScope(select: readonly SelectItem[], given = { count: 0 }): AliasScope {
  const columns = new Map<string, SelectedAlias>();
  const relations = new Map<string, { readonly name: string; readonly scope: AliasScope }>();
  const selectedRelations = select.filter((item) => item.kind === "relation");
  for (const item of select) {
    if (item.kind !== "column" || item.alias === null || columns.has(item.alias)) continue;
    const isComputed = item.aggregate !== null || item.field?.measure !== undefined;
    columns.set(item.alias, { name: `alias${++given.count}`, isComputed });
  }
  for (const [key, items] of Map.groupBy(selectedRelations, ({ alias, name }) => alias ?? name)) {
    const name = items[0]!.alias === null ? key : `alias${++given.count}`;
    relations.set(key, {
      name,
      scope: makeAliasScope(
        items.flatMap((item) => item.select),
        given,
      ),
    });
  }
  for (const { alias, name, spread } of selectedRelations) {
    const { scope } = relations.get(alias ?? name)!;
    // An alias is found before a name.
    if (!relations.has(name)) relations.set(name, { name, scope });
    // Columns of a spread relation are columns of the row.
    if (spread) for (const [each, column] of scope.columns) if (!columns.has(each)) columns.set(each, column);
  }
  return { columns, relations };
}

function relationName(scope: AliasScope, name: string): string {
  return scope.relations.get(name)?.name ?? name;
}

function renamePath(
  path: readonly string[],
  scope: AliasScope,
): { readonly path: readonly string[]; readonly inner: AliasScope } {
  let inner = scope;
  const renamed = path.map((name) => {
    const relation = inner.relations.get(name);
    inner = relation?.scope ?? NO_ALIASES;
    return relation?.name ?? name;
  });
  return { path: renamed, inner };
}

function outlineSelection(selection: RowSelection, scope: AliasScope) {
  const { select, conditions, having, distinct, orders, ranges } = selection;
  const at = <T>(placed: WithEmbedPath<T>, outline: (value: T, inner: AliasScope) => unknown) => {
    const { path, inner } = renamePath(placed.path, scope);
    return { path, value: outline(placed.value, inner) };
  };
  return {
    select: outlineSelect(select, scope),
    conditions: conditions.map((placed) => at(placed, outlineCondition)),
    having: having?.map((placed) => at(placed, outlineGroupCondition)),
    distinct: distinct?.map((placed) => at(placed, (fields) => fields.map((field) => outlineField(field)))),
    orders: orders.map((placed) => at(placed, (terms, inner) => terms.map((term) => outlineOrder(term, inner)))),
    ranges: ranges.map((placed) => at(placed, ({ limit }) => ({ offset: 0, limit: limit === null ? null : 1 }))),
  };
}

function outlineSelect(select: readonly SelectItem[], scope: AliasScope): unknown[] {
  return select.map((item) => {
    if (item.kind === "column") {
      const { kind, field, cast, aggregate } = item;
      const alias = item.alias === null ? null : scope.columns.get(item.alias)!.name;
      return { kind, field: field && outlineField(field), alias, cast, aggregate };
    }
    const { kind, name, hint, relationship, join, spread } = item;
    const { name: ownName, scope: inner } = scope.relations.get(item.alias ?? name)!;
    return {
      ...{ kind, name, alias: item.alias === null ? null : ownName, hint, join, spread },
      ...(relationship && { relationship: outlineRelationship(relationship) }),
      select: outlineSelect(item.select, inner),
    };
  });
}

function outlineRelationship({ kind, constraint, keyAt, columns, source, target }: DirectRelationship) {
  return { kind, constraint, keyAt, columns, source: nameOf(source), target: nameOf(target) };
}

/** Outlines a field without its JSON path, since keys of JSON values are data. */
function outlineField({ name, path, measure }: FieldReference, ownName = name): unknown {
  return {
    name: ownName,
    path: path.map(({ arrow, key }) => ({ arrow, key: typeof key === "number" ? 0 : "key" })),
    ...(measure && { measure: outlineMeasure(measure) }),
  };
}

function outlineMeasure({ name, operation, at }: Measure): unknown {
  if (operation?.kind === "distance") return { name, at, operation: { ...operation, value: "" } };
  return { name, at, operation: operation && outlineSearch(operation) };
}

/** Finds names as the planner does: in the order by a related row, an alias precedes a column; in that of the row itself, it follows. */
function outlineOrder({ field, by, relation, direction, nulls }: OrderTerm, scope: AliasScope): unknown {
  const related = relation === null ? null : (scope.relations.get(relation)?.scope ?? NO_ALIASES);
  const column = (related ?? scope).columns.get(field.name);
  const isAlias = column !== undefined && (related !== null || column.isComputed);
  const name = by === "count" ? relationName(scope, field.name) : isAlias ? column.name : field.name;
  return {
    ...{ field: outlineField(field, name), by, direction, nulls },
    relation: relation && relationName(scope, relation),
  };
}

/** Outlines a condition on groups, whose fields are names of selected columns. */
function outlineGroupCondition(condition: RowCondition, scope: AliasScope): unknown {
  return outlineCondition(condition, scope, (name) => scope.columns.get(name)?.name ?? name);
}

function outlineCondition(
  condition: RowCondition,
  scope: AliasScope,
  renameField = (name: string): string => name,
): unknown {
  const { kind, negated } = condition;
  switch (condition.kind) {
    case "filter":
      return {
        kind,
        negated,
        field: outlineField(condition.field, renameField(condition.field.name)),
        operation: outlineOperation(condition.operation),
      };
    case "related": {
      const { relation, every, found } = condition;
      return {
        ...{ kind, negated, relation: relationName(scope, relation), every },
        ...(found && { found: outlineRelationship(found) }),
        condition: outlineCondition(condition.condition, scope.relations.get(relation)?.scope ?? NO_ALIASES),
      };
    }
    case "row":
      return { kind, negated, operation: outlineRowOperation(condition.operation) };
    case "search":
      return {
        ...{ kind, negated, operation: outlineSearch(condition.operation) },
        fields: condition.fields.map(({ relations, field }) => {
          const { path } = renamePath(
            relations.map(({ name }) => name),
            scope,
          );
          return {
            relations: relations.map(({ found }, index) => ({
              name: path[index],
              ...(found && { found: outlineRelationship(found) }),
            })),
            field: outlineField(field),
          };
        }),
      };
    default:
      return {
        kind,
        negated,
        conditions: condition.conditions.map((each) => outlineCondition(each, scope, renameField)),
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

/** Outlines a payload without the keys that are no columns, such as the relations of a nested insert. */
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

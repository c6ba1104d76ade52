import type { DirectRelationship } from "../../../engine/catalog/relationships.ts";
import { ApiError } from "../../../engine/errors.ts";
import { oncePer } from "../../../engine/once-per.ts";
import type {
  CallArgument,
  Condition,
  Field,
  Format,
  Intent,
  Manner,
  Operation,
  OrderTerm,
  Page,
  Payload,
  RowOperation,
  SelectItem,
  Shape,
} from "../intent.ts";
import { beginsAsObject } from "./json-object.ts";

/**
 * Equal for intents that differ in their values only: they have one plan, and so one statement. Refuses names that
 * Postgres cannot have.
 */
export function shapeKey(intent: Intent, { formats, body, maxAffected }: Manner): string {
  const others = JSON.stringify([
    intent.kind,
    intent.target.schema,
    intent.target.name,
    outline(intent.shape),
    intent.count,
    particulars(intent),
    formats.map(outlineOfFormat),
    body,
    maxAffected,
  ]);
  const key = selectKey(intent.shape.select) + others;
  // An odd number of backslashes: the character itself, and not the six characters that spell it.
  if (key.includes("u0000") && /(?<!\\)(\\\\)*\\u0000/.test(key)) {
    throw new ApiError(400, "22021", 'invalid byte sequence for encoding "UTF8": 0x00');
  }
  return key;
}

function particulars(intent: Intent): unknown[] {
  switch (intent.kind) {
    case "read":
      return [outlineOfPage(intent.page)];
    case "insert": {
      const { payload, missingAsDefault, upsert, single, returned } = intent;
      return [returned, ...outlineOfPayload(payload), missingAsDefault, upsert?.resolution, upsert?.onConflict, single];
    }
    case "update":
      return [intent.returned, ...outlineOfPayload(intent.payload), intent.missingAsDefault, intent.findsUnchanged];
    case "delete":
      return [intent.returned];
    case "call":
      return [
        ...outlineOfArgument(intent.argument),
        intent.readOnly,
        outlineOfPage(intent.page),
        intent.row && [intent.row.of.schema, intent.row.of.name, intent.row.conditions.map(outlineOfCondition)],
      ];
  }
}

/** Rows before and behind a null are found in another way than those of a value. */
function outlineOfPage(page: Page | null): unknown {
  if (page?.kind !== "after") return page?.kind;
  return [page.position.order, page.position.values.map((value) => value === null)];
}

function outlineOfPayload({ columns, isArray, grid }: Payload): unknown[] {
  return [columns, isArray, grid !== undefined];
}

function outlineOfArgument(argument: CallArgument): unknown[] {
  switch (argument.kind) {
    case "query":
      return ["query", argument.values.map(([name]) => name)];
    case "json":
      return ["json", argument.names, beginsAsObject(argument.body), argument.isCsv === true];
    case "raw":
      return ["raw", argument.type];
  }
}

/** Most that is selected is selected again. */
const selectKey = oncePer((select: readonly SelectItem[]): string => JSON.stringify(select.map(outlineOfItem)));

function outline({ conditions, orders, windows }: Shape): unknown[] {
  return [
    conditions.map(({ path, value }) => [path, outlineOfCondition(value)]),
    orders.map(({ path, value }) => [path, value.map(outlineOfTerm)]),
    windows.map(({ path, value }) => [path, value.offset, value.limit]),
  ];
}

function outlineOfItem(item: SelectItem): unknown[] {
  if (item.kind === "column") {
    const { field, alias, cast, aggregate } = item;
    return [field && outlineOfField(field), alias, cast, aggregate && [aggregate.name, aggregate.cast]];
  }
  const { name, alias, hint, found, join, spread, select } = item;
  return [name, alias, hint, outlineOfRelationship(found), join, spread, select.map(outlineOfItem)];
}

function outlineOfRelationship(found: DirectRelationship | undefined): unknown {
  return found && [found.constraint, found.keyAt, found.target.schema, found.target.name, found.columns];
}

function outlineOfField({ name, path }: Field): unknown[] {
  return [name, ...path.map(({ arrow, key }) => [arrow, key])];
}

function outlineOfCondition(condition: Condition): unknown[] {
  const { kind, negated } = condition;
  switch (condition.kind) {
    case "filter":
      return [kind, negated, outlineOfField(condition.field), outlineOfOperation(condition.operation)];
    case "related":
      return [
        kind,
        negated,
        condition.relation,
        outlineOfRelationship(condition.found),
        outlineOfCondition(condition.condition),
      ];
    case "row":
      return [kind, negated, ...outlineOfRowOperation(condition.operation)];
    default:
      return [kind, negated, condition.conditions.map(outlineOfCondition)];
  }
}

function outlineOfOperation(operation: Operation): unknown[] {
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

function outlineOfRowOperation(operation: RowOperation): unknown[] {
  switch (operation.kind) {
    case "found":
      return [operation.kind, operation.by.schema, operation.by.name];
    case "permitted":
      return [operation.kind, operation.command];
    default:
      return [operation.kind];
  }
}

function outlineOfTerm({ field, relation, direction, nulls }: OrderTerm): unknown[] {
  return [outlineOfField(field), relation, direction, nulls];
}

function outlineOfFormat(format: Format): unknown[] {
  if (format.kind === "plan") return [format.type, format.as, format.options, outlineOfFormat(format.of)];
  return [format.kind, format.type, format.kind === "media" ? null : format.nulls];
}

import type { Value } from "../../../engine/database/statement.ts";
import { runAtOnce, type Stepwise } from "../../../engine/stepwise.ts";
import type {
  CallIntent,
  Condition,
  InsertIntent,
  Intent,
  Operation,
  Payload,
  Position,
  RowOperation,
  UpdateIntent,
} from "../intent.ts";
import { columnArray } from "./column-array.ts";

/**
 * Where in the intent the value of a parameter is found. Plans and queries hold slots and never a value: so no value
 * can become part of a statement's text, and one plan serves all requests of its shape.
 */
export type Slot =
  | { readonly kind: "operand"; readonly index: number }
  /** Of the position that a page begins at. */
  | { readonly kind: "position"; readonly index: number }
  | { readonly kind: "payload" }
  /** What all rows of the payload have in one column, as an array. */
  | { readonly kind: "column"; readonly name: string; readonly isJson: boolean }
  /** Of the values given under the name the last one, or all as an array. */
  | { readonly kind: "argument"; readonly name: string; readonly all: boolean };

/** The operations of all conditions that compare with a value, in the order in which slots count them. */
export function operationsOf(intent: Intent): readonly (Operation | RowOperation)[] {
  const operations: (Operation | RowOperation)[] = [];
  for (const { value } of intent.shape.conditions) collectOperations(value, operations);
  if (intent.kind === "call")
    for (const condition of intent.row?.conditions ?? []) collectOperations(condition, operations);
  return operations;
}

function collectOperations(condition: Condition, operations: (Operation | RowOperation)[]): void {
  switch (condition.kind) {
    case "filter":
      if (condition.operation.kind !== "is") operations.push(condition.operation);
      break;
    case "related":
      collectOperations(condition.condition, operations);
      break;
    case "row":
      operations.push(condition.operation);
      break;
    default:
      for (const each of condition.conditions) collectOperations(each, operations);
  }
}

/** What the slots of a query for this intent stand for. */
export function valuesAt(slots: readonly Slot[], intent: Intent): Value[] {
  const operations = operationsOf(intent);
  return slots.map((slot) => valueAt(slot, intent, operations));
}

/** The same where it may take long: of many rows, or of many bytes. */
export function* valuesInSteps(slots: readonly Slot[], intent: Intent): Stepwise<Value[]> {
  const operations = operationsOf(intent);
  const values: Value[] = [];
  for (const slot of slots) {
    if (slot.kind === "column") values.push(yield* columnArray(payloadIn(intent), slot));
    else if (slot.kind === "payload" && isBinary(intent)) values.push(yield* hexadecimal(intent.argument.body));
    else values.push(valueAt(slot, intent, operations));
  }
  return values;
}

function valueAt(slot: Slot, intent: Intent, operations: readonly (Operation | RowOperation)[]): Value {
  switch (slot.kind) {
    case "operand":
      return operandOf(operations[slot.index]!);
    case "position":
      return positionOf(intent)[slot.index] ?? null;
    case "payload":
      return payloadOf(intent);
    case "column":
      return runAtOnce(columnArray(payloadIn(intent), slot));
    case "argument":
      return argumentOf(intent as CallIntent, slot);
  }
}

function operandOf(operation: Operation | RowOperation): string | null {
  if (operation.kind === "permitted") return null;
  return operation.kind === "in" || operation.kind === "digest" ? toArrayLiteral(operation.values) : operation.value;
}

function positionOf(intent: Intent): Position["values"] {
  const page = intent.kind === "read" || intent.kind === "call" ? intent.page : null;
  return page?.kind === "after" ? page.position.values : [];
}

function payloadOf(intent: Intent): Value {
  if (intent.kind === "insert" || intent.kind === "update") return intent.payload.json;
  if (intent.kind !== "call" || intent.argument.kind === "query") return null;
  return isBinary(intent) ? runAtOnce(hexadecimal(intent.argument.body)) : intent.argument.body;
}

function payloadIn(intent: Intent): Payload {
  return (intent as InsertIntent | UpdateIntent).payload;
}

type BinaryCall = CallIntent & { readonly argument: { readonly kind: "raw"; readonly type: "bytea" } };

function isBinary(intent: Intent): intent is BinaryCall {
  return intent.kind === "call" && intent.argument.kind === "raw" && intent.argument.type === "bytea";
}

const BYTES_PER_STEP = 64 * 1024;

/** `\x00ff` */
function* hexadecimal(bytes: Buffer): Stepwise<Buffer> {
  const text = Buffer.allocUnsafe(2 + 2 * bytes.length);
  let end = text.write("\\x");
  for (let at = 0; at < bytes.length; at += BYTES_PER_STEP) {
    end += text.write(bytes.toString("hex", at, at + BYTES_PER_STEP), end, "latin1");
    yield;
  }
  return text;
}

function argumentOf({ argument }: CallIntent, { name, all }: Slot & { kind: "argument" }): string | null {
  if (argument.kind !== "query") return null;
  const given = argument.values.filter((pair) => pair[0] === name).map((pair) => pair[1]);
  return all ? toArrayLiteral(given) : (given.at(-1) ?? null);
}

/** `{"a","b \"c\""}` */
function toArrayLiteral(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/[\\"]/g, "\\$&")}"`).join(",")}}`;
}

import type { ParameterValue } from "#postgres/statement";
import { runToCompletion, type Stepwise } from "#runtime/concurrency";
import type {
  BindParameter,
  CallIntent,
  CursorPosition,
  FieldReference,
  InsertIntent,
  Intent,
  JsonValueSpans,
  OperandOperation,
  RowCondition,
  RowPayload,
  SelectItem,
  UpdateIntent,
} from "../intent/intent.ts";

const [QUOTE, BACKSLASH, COMMA, LETTER_N] = [0x22, 0x5c, 0x2c, 0x6e];
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET] = [0x7b, 0x7d, 0x5b];

const ARRAY_BYTES_PER_STEP = 16 * 1024;

/** JSON strings without escapes are quoted the same way in array literals. */
const writeScalar: WriteElement = (json, start, end, array, at) => {
  const byte = json[start];
  if (byte === OPEN_BRACE || byte === OPEN_BRACKET) return writeQuoted(json, start, end, array, at);
  let to = at;
  for (let from = start; from < end; from += 1) {
    if (json[from] === BACKSLASH) return writeText(JSON.parse(json.toString("utf8", start, end)), array, at);
    array[to++] = json[from]!;
  }
  return to;
};

/** A JSON null becomes SQL null. A string value is parsed and serialized anew, as Postgres does. */
const writeJson: WriteElement = (json, start, end, array, at) => {
  if (json[start] === LETTER_N) return writeScalar(json, start, end, array, at);
  const isText = json[start] === QUOTE;
  if (!isText || json.subarray(start, end).indexOf(BACKSLASH) < 0) return writeQuoted(json, start, end, array, at);
  return writeText(JSON.stringify(JSON.parse(json.toString("utf8", start, end))), array, at);
};

const writeQuoted: WriteElement = (json, start, end, array, at) => {
  let to = at;
  array[to++] = QUOTE;
  for (let from = start; from < end; from += 1) {
    const byte = json[from]!;
    if (byte === QUOTE || byte === BACKSLASH) array[to++] = BACKSLASH;
    array[to++] = byte;
  }
  array[to++] = QUOTE;
  return to;
};

/** The operations with a value, in the order of parameter indexes. */
export function listOperations(intent: Intent): readonly OperandOperation[] {
  const operations: OperandOperation[] = [];
  const { select, conditions, having = [], orders } = intent.selection;
  for (const { value } of [...conditions, ...having]) collectOperations(value, operations);
  for (const { value } of orders) for (const { field } of value) collectMeasure(field, operations);
  collectSelected(select, operations);
  if (intent.kind === "call")
    for (const condition of intent.row?.conditions ?? []) collectOperations(condition, operations);
  return operations;
}

function collectSelected(select: readonly SelectItem[], operations: OperandOperation[]): void {
  for (const item of select) {
    if (item.kind === "relation") collectSelected(item.select, operations);
    else collectMeasure(item.field, operations);
  }
}

function collectMeasure(field: FieldReference | null, operations: OperandOperation[]): void {
  const operation = field?.measure?.operation;
  if (operation) operations.push(operation);
}

function collectOperations(condition: RowCondition, operations: OperandOperation[]): void {
  switch (condition.kind) {
    case "filter":
      collectMeasure(condition.field, operations);
      if (condition.operation.kind !== "is") operations.push(condition.operation);
      break;
    case "related":
      collectOperations(condition.condition, operations);
      break;
    case "row":
    case "search":
      operations.push(condition.operation);
      break;
    default:
      for (const each of condition.conditions) collectOperations(each, operations);
  }
}

/** The parameter values of a query for this intent. */
export function bindValues(parameters: readonly BindParameter[], intent: Intent): ParameterValue[] {
  const operations = listOperations(intent);
  return parameters.map((parameter) => bindValue(parameter, intent, operations));
}

/** Binds the same in steps, for many rows or many bytes. */
export function* bindValuesInSteps(parameters: readonly BindParameter[], intent: Intent): Stepwise<ParameterValue[]> {
  const operations = listOperations(intent);
  const values: ParameterValue[] = [];
  for (const parameter of parameters) {
    if (parameter.kind === "column") values.push(yield* buildColumnArray(rowPayload(intent), parameter));
    else if (parameter.kind === "payload" && isBinaryCall(intent)) values.push(yield* toByteaHex(intent.argument.body));
    else values.push(bindValue(parameter, intent, operations));
  }
  return values;
}

function bindValue(parameter: BindParameter, intent: Intent, operations: readonly OperandOperation[]): ParameterValue {
  switch (parameter.kind) {
    case "operand":
      return operandValue(operations[parameter.index]!);
    case "position":
      return positionValues(intent)[parameter.index] ?? null;
    case "payload":
      return payloadValue(intent);
    case "column":
      return runToCompletion(buildColumnArray(rowPayload(intent), parameter));
    case "argument":
      return argumentValue(intent as CallIntent, parameter);
  }
}

function operandValue(operation: OperandOperation): string | null {
  if (operation.kind === "permitted") return null;
  return operation.kind === "in" || operation.kind === "digest" ? toArrayLiteral(operation.values) : operation.value;
}

function positionValues(intent: Intent): CursorPosition["values"] {
  const page = intent.kind === "read" || intent.kind === "call" ? intent.page : null;
  return page?.kind === "after" ? page.position.values : [];
}

function payloadValue(intent: Intent): ParameterValue {
  if (intent.kind === "insert" || intent.kind === "update") return intent.payload.json;
  if (intent.kind !== "call" || intent.argument.kind === "query") return null;
  return isBinaryCall(intent) ? runToCompletion(toByteaHex(intent.argument.body)) : intent.argument.body;
}

function rowPayload(intent: Intent): RowPayload {
  return (intent as InsertIntent | UpdateIntent).payload;
}

type BinaryCall = CallIntent & { readonly argument: { readonly kind: "raw"; readonly type: "bytea" } };

function isBinaryCall(intent: Intent): intent is BinaryCall {
  return intent.kind === "call" && intent.argument.kind === "raw" && intent.argument.type === "bytea";
}

const BYTES_PER_STEP = 64 * 1024;

/** `\x00ff` */
function* toByteaHex(bytes: Buffer): Stepwise<Buffer> {
  const text = Buffer.allocUnsafe(2 + 2 * bytes.length);
  let end = text.write("\\x");
  for (let at = 0; at < bytes.length; at += BYTES_PER_STEP) {
    end += text.write(bytes.toString("hex", at, at + BYTES_PER_STEP), end, "latin1");
    yield;
  }
  return text;
}

function argumentValue({ argument }: CallIntent, { name, all }: BindParameter & { kind: "argument" }): string | null {
  if (argument.kind !== "query") return null;
  const values = argument.values.filter((pair) => pair[0] === name).map((pair) => pair[1]);
  return all ? toArrayLiteral(values) : (values.at(-1) ?? null);
}

/** `{"a","b \"c\""}` */
function toArrayLiteral(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/[\\"]/g, "\\$&")}"`).join(",")}}`;
}

type ArrayColumn = { readonly name: string; readonly isJson: boolean };

/**
 * `{"a",5,null}`: an array literal with one column's value of each row, as Postgres reads it. Values are copied
 * unchanged, since parsing a JSON number could change it.
 */
export function* buildColumnArray({ json, valueSpans }: RowPayload, { name, isJson }: ArrayColumn): Stepwise<Buffer> {
  const { keys, spans } = valueSpans!;
  const first = 2 * keys.indexOf(name);
  const step = 2 * keys.length;
  const array = Buffer.allocUnsafe(maxArrayBytes(valueSpans!, first, step));
  const write = isJson ? writeJson : writeScalar;
  let end = 0;
  let pauseAt = ARRAY_BYTES_PER_STEP;
  for (let index = first; index < spans.length; index += step) {
    if (end > pauseAt) {
      yield;
      pauseAt = end + ARRAY_BYTES_PER_STEP;
    }
    array[end++] = index === first ? OPEN_BRACE : COMMA;
    end = write(json, spans[index]!, spans[index + 1]!, array, end);
  }
  array[end++] = CLOSE_BRACE;
  return array.subarray(0, end);
}

/** The size if each byte is escaped, with quotes, commas and braces. */
function maxArrayBytes({ spans }: JsonValueSpans, first: number, step: number): number {
  let bytes = 2;
  for (let index = first; index < spans.length; index += step) {
    bytes += 2 * (spans[index + 1]! - spans[index]!) + 3;
  }
  return bytes;
}

type WriteElement = (json: Buffer, start: number, end: number, array: Buffer, at: number) => number;

function writeText(text: string, array: Buffer, at: number): number {
  const bytes = Buffer.from(text);
  return writeQuoted(bytes, 0, bytes.length, array, at);
}

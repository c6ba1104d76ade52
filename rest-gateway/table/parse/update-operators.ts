import { HttpError } from "#http";
import {
  type ColumnOperators,
  operandName,
  operatorName,
  type RowPayload,
  UPDATE_OPERATORS,
  type UpdateIntent,
  type UpdateOperator,
} from "#planner/intent";
import { isExactJsonObject, isJsonObject, type JsonObject } from "#runtime/json";
import { invalidBody, parseWholeJson } from "./whole-json.ts";

/** The operator that sets the column to the operand itself, which may be an object with a key that begins with a dollar sign. */
const SET = "$set";
/** Operators whose operand is a list; any other value becomes a list of one item. */
const WITH_LISTS: readonly UpdateOperator[] = ["$append", "$prepend", "$unset"];

type Change = { readonly operator: UpdateOperator | typeof SET; readonly operand: unknown };

/** Parses `{"stock": {"$inc": -1}}`: the payload with operands under names of their own, and the operators of each column. */
export function parseOperators(payload: RowPayload): Pick<UpdateIntent, "payload" | "operators"> {
  const rows = readRows(payload);
  const changes = rows.map((row, index) => readChanges(row, payload, payload.isArray ? `${index}/` : ""));
  const operators = payload.columns.flatMap((column) => summarize(column, changes) ?? []);
  if (changes.every((all) => all.size === 0)) return { payload };
  const names = new Map(operators.map((used) => [used.column, used]));
  const records = rows.map((row, index) => toRecord(row, payload.columns, changes[index]!, names));
  const json = Buffer.from(JSON.stringify(payload.isArray ? records : records[0]));
  const { columns, isArray } = payload;
  return { payload: { json, columns, isArray }, operators };
}

function readRows({ json, isArray }: RowPayload): readonly JsonObject[] {
  const value = parseWholeJson(json, "A body with operators");
  const rows: unknown = isArray ? value : [value];
  if (Array.isArray(rows) && rows.every(isJsonObject)) return rows;
  throw invalidBody("All elements of the list must be objects");
}

function readChanges(row: JsonObject, { columns }: RowPayload, path: string): ReadonlyMap<string, Change> {
  const changes = new Map<string, Change>();
  for (const column of columns) {
    const value = Object.hasOwn(row, column) ? row[column] : null;
    if (!isJsonObject(value)) continue;
    const [name, ...more] = Object.keys(value);
    if (![name, ...more].some((key) => key?.startsWith("$"))) continue;
    changes.set(column, readChange(name!, more, value, path + column));
  }
  return changes;
}

function readChange(name: string, more: readonly string[], value: JsonObject, path: string): Change {
  const operator = [SET, ...UPDATE_OPERATORS].find((known) => known === name) as Change["operator"] | undefined;
  if (more.length > 0) throw invalidOperator("The value has an operator and other keys", path);
  if (operator === undefined) throw invalidOperator(`Unknown operator '${name}'`, path);
  const operand = value[name];
  if (operator === SET) return { operator, operand };
  if (operand === null) throw invalidOperator(`The operator '${name}' has no value`, path);
  if (operator === "$merge" && !isExactJsonObject(operand)) throw invalidOperator("'$merge' requires an object", path);
  const isItem = WITH_LISTS.includes(operator) && !Array.isArray(operand);
  return { operator, operand: isItem ? [operand] : operand };
}

function invalidOperator(message: string, path: string): HttpError {
  return new HttpError(400, "PGRST102", message, {
    details: { path },
    hint: `Operators are ${[...UPDATE_OPERATORS, SET].join(", ")}. Write {"${SET}": …} for an object with such a key.`,
  });
}

/** Returns the operators; null if there are only new values. */
function summarize(column: string, changes: readonly ReadonlyMap<string, Change>[]): ColumnOperators | null {
  const ofRows = changes.map((all) => all.get(column)?.operator ?? SET);
  const operators = UPDATE_OPERATORS.filter((operator) => ofRows.includes(operator));
  if (operators.length === 0) return null;
  return { column, operators, isUniform: operators.length === 1 && !ofRows.includes(SET) };
}

function toRecord(
  row: JsonObject,
  columns: readonly string[],
  changes: ReadonlyMap<string, Change>,
  operators: ReadonlyMap<string, ColumnOperators>,
): JsonObject {
  const members = columns.flatMap((column): (readonly [string, unknown])[] => {
    const change = changes.get(column);
    if (!change) return Object.hasOwn(row, column) ? [[column, row[column]]] : [];
    const { operator, operand } = change;
    if (operator === SET) return [[column, operand]];
    const operands = [[operandName(column, operator), operand]] as const;
    return operators.get(column)!.isUniform ? [...operands] : [...operands, [operatorName(column), operator]];
  });
  return Object.fromEntries(members);
}

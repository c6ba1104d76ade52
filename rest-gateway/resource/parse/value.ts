import type { Column } from "../../../engine/catalog/columns.ts";
import { baseTypeOf, type DataType } from "../../../engine/catalog/types.ts";
import { isExactNumber, parseExactly, textOfValue } from "../../../engine/exact-json.ts";

const INTEGERS: ReadonlyMap<string, bigint> = new Map([
  ["int2", 2n ** 15n],
  ["int4", 2n ** 31n],
  ["int8", 2n ** 63n],
]);
const NUMBERS: ReadonlySet<string> = new Set(["numeric", "float4", "float8"]);
const BOOLEANS: ReadonlySet<string> = new Set(["true", "false"]);
const UUID = /^\{?[\da-f]{8}-?([\da-f]{4}-?){3}[\da-f]{12}\}?$/i;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^(NaN|[+-]?Infinity)$/i;

/** Postgres has no place for it, whatever the type. */
export function faultOfCharacters(text: string): string | null {
  if (text.includes("\0")) return "may not have the character zero";
  return text.isWellFormed() ? null : "may not have half a character (a lone surrogate)";
}

/** What is wrong with a text as a value of the type, in words for people; null where only Postgres can tell. */
export function faultOfText(given: DataType, text: string): string | null {
  const type = baseTypeOf(given);
  const unfit = faultOfCharacters(text);
  if (unfit) return unfit;
  if (type.kind === "enum") return type.values.includes(text) ? null : `must be one of ${type.values.join(", ")}`;
  if (type.schema !== "pg_catalog") return null;
  if (INTEGERS.has(type.name)) return /^[+-]?\d+$/.test(text) ? null : "must be a whole number";
  if (NUMBERS.has(type.name)) return NUMBER.test(text) ? null : "must be a number";
  if (type.name === "bool") return BOOLEANS.has(text.toLowerCase()) ? null : "must be true or false";
  if (type.name === "uuid") return UUID.test(text) ? null : "must be a UUID";
  return null;
}

export const TEXTS: ReadonlySet<string> = new Set(["text", "varchar", "bpchar", "citext"]);

/** Whether something may be wrong with a value of the type that Postgres alone can tell. */
export function isForPostgres(given: DataType): boolean {
  const type = baseTypeOf(given);
  if (type.kind === "array") return isForPostgres(type.element);
  if (type.kind === "enum" || TEXTS.has(type.name)) return false;
  const isTold = INTEGERS.has(type.name) || type.name === "bool" || type.name === "uuid";
  return type.schema !== "pg_catalog" || !isTold;
}

/** What has more characters than the column holds; Postgres lets blanks at the end pass, and cuts them off. */
export function faultOfLength({ maxLength, baseType }: Column, value: unknown): string | null {
  if (maxLength === null || typeof value !== "string" || value.length <= maxLength) return null;
  let end = value.length;
  while (value[end - 1] === " ") end--;
  // A character has two halves at the most.
  const isTooLong = TEXTS.has(baseType.name) && (end > 2 * maxLength || [...value.slice(0, end)].length > maxLength);
  return isTooLong ? `may not have more than ${maxLength} characters` : null;
}

/** A whole number that no row can have. */
export function isBeyond(given: DataType, text: string): boolean {
  const type = baseTypeOf(given);
  const limit = type.schema === "pg_catalog" ? INTEGERS.get(type.name) : undefined;
  if (limit === undefined || !/^[+-]?\d+$/.test(text)) return false;
  // As a number up to where those are exact, since that is quicker.
  const value = text.length < 16 ? Number(text) : BigInt(text.replace("+", ""));
  return value >= limit || value < -limit;
}

/** The same of a value of a JSON body, null aside. */
export function faultOfJson(given: DataType, value: unknown): string | null {
  const type = baseTypeOf(given);
  if (type.kind === "array") return faultOfArray(type.element, value);
  if (type.kind === "composite") return isObject(value) ? null : "must be an object";
  if (type.kind !== "enum" && type.schema !== "pg_catalog") return null;
  if (type.name === "json" || type.name === "jsonb") return null;
  if (type.name === "bool") return typeof value === "boolean" ? null : "must be true or false";
  if (INTEGERS.has(type.name) || NUMBERS.has(type.name)) return faultOfNumber(type, value);
  return typeof value === "string" ? faultOfText(type, value) : "must be a text";
}

/** A number that JavaScript cannot hold may come as a text. */
function faultOfNumber(type: DataType, value: unknown): string | null {
  const isNumber = typeof value === "number" || typeof value === "string" || isExactNumber(value);
  if (!isNumber) return INTEGERS.has(type.name) ? "must be a whole number" : "must be a number";
  const text = textOfValue(value);
  if (isBeyond(type, text)) return "is out of range";
  return faultOfText(type, text);
}

function faultOfArray(element: DataType, value: unknown): string | null {
  if (!Array.isArray(value)) return "must be a list";
  for (const item of value) {
    const fault = item === null || Array.isArray(item) ? null : faultOfJson(element, item);
    if (fault) return `has an item that ${fault}`;
  }
  return null;
}

const NUMBER_OF_JSON = /^(?<sign>-?)(?<whole>\d+)(?:\.(?<fraction>\d+))?(?:e(?<exponent>[+-]?\d+))?$/i;
/** More digits than any integer of Postgres has. */
const MOST_ZEROS = 30;

/** `30.0`, `3e1` and `1e18` are whole numbers to JSON, and none to Postgres. Any other value stays as it is. */
export function asWhole(given: DataType, value: unknown): unknown {
  const type = baseTypeOf(given);
  const isInteger = type.schema === "pg_catalog" && INTEGERS.has(type.name);
  return isInteger && isExactNumber(value) ? (wholeNumber(value.rawJSON) ?? value) : value;
}

function wholeNumber(text: string): unknown {
  const { sign, whole = "", fraction = "", exponent = "0" } = NUMBER_OF_JSON.exec(text)?.groups ?? {};
  const digits = (whole + fraction).replace(/0+$/, "");
  const zeros = whole.length + Number(exponent) - digits.length;
  if (digits === "") return whole === "" ? null : 0;
  return zeros < 0 || zeros > MOST_ZEROS
    ? null
    : parseExactly(`${sign}${digits.replace(/^0+(?=\d)/, "")}${"0".repeat(zeros)}`);
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isExactNumber(value);
}

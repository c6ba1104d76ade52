import { baseTypeOf, type CatalogColumn, type DataType } from "#catalog";
import { isExactJsonObject, isExactNumber, type JsonMember, parseJsonExactly, toAddressText } from "#runtime/json";

const JSON_TYPES: ReadonlySet<string> = new Set(["json", "jsonb"]);
/** The limit of values in one array or composite value, which are checked one by one. */
const MAX_VALUES = 20_000;

const INTEGER_TYPES: ReadonlyMap<string, bigint> = new Map([
  ["int2", 2n ** 15n],
  ["int4", 2n ** 31n],
  ["int8", 2n ** 63n],
]);
const NUMBER_TYPES: ReadonlySet<string> = new Set(["numeric", "float4", "float8"]);
const BOOLEAN_TEXTS: ReadonlySet<string> = new Set(["true", "false"]);
const UUID_TEXT = /^\{?[\da-f]{8}-?([\da-f]{4}-?){3}[\da-f]{12}\}?$/i;
const NUMBER_TEXT = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$|^(NaN|[+-]?Infinity)$/i;

/** Returns the error for characters that Postgres cannot store in any type. */
export function characterFault(text: string): string | null {
  if (text.includes("\0")) return "must not contain the character U+0000";
  return text.isWellFormed() ? null : "must not contain a lone surrogate";
}

/** Returns the reason why a text is not a value of the type; null if it is valid or only Postgres can tell. */
export function textFault(declaredType: DataType, text: string): string | null {
  const type = baseTypeOf(declaredType);
  const badCharacters = characterFault(text);
  if (badCharacters) return badCharacters;
  if (type.kind === "enum") return type.values.includes(text) ? null : `must be one of ${type.values.join(", ")}`;
  if (type.schema !== "pg_catalog") return null;
  if (INTEGER_TYPES.has(type.name)) return /^[+-]?\d+$/.test(text) ? null : "must be a whole number";
  if (NUMBER_TYPES.has(type.name)) return NUMBER_TEXT.test(text) ? null : "must be a number";
  if (type.name === "bool") return BOOLEAN_TEXTS.has(text.toLowerCase()) ? null : "must be true or false";
  if (type.name === "uuid") return UUID_TEXT.test(text) ? null : "must be a UUID";
  return null;
}

export const TEXT_TYPES: ReadonlySet<string> = new Set(["text", "varchar", "bpchar", "citext"]);

/** Returns true if only Postgres can check values of the type completely. */
export function isCheckedByPostgres(declaredType: DataType): boolean {
  const type = baseTypeOf(declaredType);
  if (type.kind === "array") return isCheckedByPostgres(type.element);
  if (type.kind === "enum" || TEXT_TYPES.has(type.name)) return false;
  const isCheckedHere = INTEGER_TYPES.has(type.name) || type.name === "bool" || type.name === "uuid";
  return type.schema !== "pg_catalog" || !isCheckedHere;
}

/** Returns the reason why a text is too long for the column; Postgres truncates trailing spaces silently. */
export function valueLengthFault({ maxLength, baseType }: CatalogColumn, value: unknown): string | null {
  if (maxLength === null || typeof value !== "string" || value.length <= maxLength) return null;
  let end = value.length;
  while (value[end - 1] === " ") end--;
  // A character has at most two UTF-16 code units.
  const isTooLong =
    TEXT_TYPES.has(baseType.name) && (end > 2 * maxLength || [...value.slice(0, end)].length > maxLength);
  return isTooLong ? `may not have more than ${maxLength} characters` : null;
}

/** Returns true if an integer is outside the range of its type. */
export function isOutOfRange(declaredType: DataType, text: string): boolean {
  const type = baseTypeOf(declaredType);
  const limit = type.schema === "pg_catalog" ? INTEGER_TYPES.get(type.name) : undefined;
  if (limit === undefined || !/^[+-]?\d+$/.test(text)) return false;
  // Numbers are faster than bigints while they are exact.
  const value = text.length < 16 ? Number(text) : BigInt(text.replace("+", ""));
  return value >= limit || value < -limit;
}

/** Returns the reason why a JSON value, except null, is not a value of the type. */
function jsonFault(declaredType: DataType, value: unknown): string | null {
  const type = baseTypeOf(declaredType);
  if (type.kind === "array") return arrayFault(type.element, value);
  if (type.kind === "composite") return isExactJsonObject(value) ? null : "must be an object";
  if (type.kind !== "enum" && type.schema !== "pg_catalog") return null;
  if (type.name === "json" || type.name === "jsonb") return null;
  if (type.name === "bool") return typeof value === "boolean" ? null : "must be true or false";
  if (INTEGER_TYPES.has(type.name) || NUMBER_TYPES.has(type.name)) return numberFault(type, value);
  return typeof value === "string" ? textFault(type, value) : "must be a text";
}

/** Returns the reason why a number is invalid. One beyond JavaScript's precision may be sent as a string. */
function numberFault(type: DataType, value: unknown): string | null {
  const isNumber = typeof value === "number" || typeof value === "string" || isExactNumber(value);
  if (!isNumber) return INTEGER_TYPES.has(type.name) ? "must be a whole number" : "must be a number";
  const text = toAddressText(value);
  if (isOutOfRange(type, text)) return "is out of range";
  return textFault(type, text);
}

function arrayFault(element: DataType, value: unknown): string | null {
  if (!Array.isArray(value)) return "must be a list";
  for (const item of value) {
    const fault = item === null || Array.isArray(item) ? null : jsonFault(element, item);
    if (fault) return `has an item that ${fault}`;
  }
  return null;
}

const JSON_NUMBER = /^(?<sign>-?)(?<whole>\d+)(?:\.(?<fraction>\d+))?(?:e(?<exponent>[+-]?\d+))?$/i;
/** Zeros at the end of a number. The lookbehind tries each run once, not from each of its zeros. */
const TRAILING_ZEROS = /(?<!0)0+$/;
/** A number of zeros above the digits of any Postgres integer. */
const MAX_ZEROS = 30;

/** Rewrites `30.0`, `3e1` and `1e18`, which are integers in JSON but not in Postgres. */
function toWholeNumber(declaredType: DataType, value: unknown): unknown {
  const type = baseTypeOf(declaredType);
  const isInteger = type.schema === "pg_catalog" && INTEGER_TYPES.has(type.name);
  return isInteger && isExactNumber(value) ? (parseWholeNumber(value.rawJSON) ?? value) : value;
}

function parseWholeNumber(text: string): unknown {
  const { sign, whole = "", fraction = "", exponent = "0" } = JSON_NUMBER.exec(text)?.groups ?? {};
  const digits = (whole + fraction).replace(TRAILING_ZEROS, "");
  const zeros = whole.length + Number(exponent) - digits.length;
  if (digits === "") return whole === "" ? null : 0;
  return zeros < 0 || zeros > MAX_ZEROS
    ? null
    : parseJsonExactly(`${sign}${digits.replace(/^0+(?=\d)/, "")}${"0".repeat(zeros)}`);
}

export type SentMember = {
  /** The JSON text for Postgres. */
  readonly text: string;
  /** The parsed value; absent if only Postgres checks it. */
  readonly value?: unknown;
  /** The reason why it is invalid, for the error message. */
  readonly fault: string | null;
};

/** Returns a value that only Postgres can check. */
export function passThrough({ text }: JsonMember): SentMember {
  return { text, fault: null };
}

/** Reads a member. Values of JSON columns are passed on unchanged. */
export function readMember(type: DataType, member: JsonMember): SentMember {
  const { text } = member;
  const { schema, name } = baseTypeOf(type);
  if (schema === "pg_catalog" && JSON_TYPES.has(name)) return passThrough(member);
  if (member.size > MAX_VALUES) return { text, fault: `may not have more than ${MAX_VALUES} values` };
  const sent = parseJsonExactly(text);
  const value = toWholeNumber(type, sent);
  const fault = value === null ? null : jsonFault(type, value);
  return { text: value === sent ? text : toAddressText(value), value, fault };
}

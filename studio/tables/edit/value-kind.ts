import { parseArrayLiteral } from "./array-literal.ts";

/** The kind of control for a value. All values are Postgres's text, so that nothing is rounded. */
export type ValueKind =
  | "text"
  | "integer"
  | "numeric"
  | "float"
  | "boolean"
  | "enum"
  | "date"
  | "time"
  | "timestamp"
  | "timestamptz"
  | "interval"
  | "uuid"
  | "json"
  | "array"
  | "bytea"
  | "other";

type ValueType = {
  /** The type as Postgres prints it: `character varying(10)`. */
  readonly type: string;
  /** The type without domains and modifiers. */
  readonly base_type: string;
  /** The labels of an enum or of an array of enums. */
  readonly labels: readonly string[] | null;
};

/** The reason why a text is no value of the type; the key of its message. */
export type ValueProblem =
  | { readonly problem: "integer" | "number" | "boolean" | "uuid" | "json" | "array" | "bytea" | "date" | "enum" }
  /** The table interface stores JSON's null as NULL. */
  | { readonly problem: "jsonNull" }
  | { readonly problem: "range"; readonly least: string; readonly greatest: string }
  | { readonly problem: "decimals"; readonly limit: number }
  | { readonly problem: "length"; readonly limit: number };

const KINDS: Readonly<Record<string, ValueKind>> = {
  text: "text",
  "character varying": "text",
  character: "text",
  bpchar: "text",
  citext: "text",
  name: "text",
  smallint: "integer",
  integer: "integer",
  bigint: "integer",
  numeric: "numeric",
  real: "float",
  "double precision": "float",
  boolean: "boolean",
  date: "date",
  "time without time zone": "time",
  "time with time zone": "time",
  "timestamp without time zone": "timestamp",
  "timestamp with time zone": "timestamptz",
  interval: "interval",
  uuid: "uuid",
  json: "json",
  jsonb: "json",
  bytea: "bytea",
};

/** Types that have no `=`, so that a filter cannot compare them. */
const WITHOUT_EQUALITY = /^(json|xml|point|line|polygon|pg_.*|aclitem|txid_snapshot|refcursor)$/;

export function valueKind({ base_type: type, labels }: ValueType): ValueKind {
  if (type.endsWith("[]")) return "array";
  return labels ? "enum" : (KINDS[type] ?? "other");
}

export function hasEquality({ base_type: type }: ValueType): boolean {
  return !WITHOUT_EQUALITY.test(type.replaceAll("[]", ""));
}

/** True if equal values have the same text. `=` of citext ignores case, and that of intervals counts a month as 30 days. */
export function isEqualityExact({ base_type: type }: ValueType): boolean {
  return !/^(citext|interval)$/.test(type.replaceAll("[]", ""));
}

const INTEGER_BITS: Readonly<Record<string, bigint>> = { smallint: 15n, integer: 31n, bigint: 63n };
const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
const NO_NUMBER = /^(nan|[-+]?inf(inity)?)$/i;
const BOOLEAN = /^(t|tr|tru|true|f|fa|fal|fals|false|y|ye|yes|n|no|on|off|of|1|0)$/i;
const UUID = /^\{?[0-9a-f]{4}(-?[0-9a-f]{4}){7}\}?$/i;
const BYTES = /^\\x([0-9a-f]{2}\s*)*$/i;
const SPECIAL_DATE = /^(now|today|tomorrow|yesterday|epoch|allballs|[-+]?infinity)$/i;
const ISO_DATE = /^\d{4,}-(\d\d)-(\d\d)(?!\d)/;

/** Finds values that Postgres would surely refuse, or silently round beyond the scale. Postgres has the last word. */
export function findValueProblem(text: string, valueType: ValueType): ValueProblem | null {
  const trimmed = text.trim();
  switch (valueKind(valueType)) {
    case "integer":
      return findIntegerProblem(trimmed, valueType.base_type);
    case "numeric":
      return findNumericProblem(trimmed, valueType.type);
    case "float":
      return NUMBER.test(trimmed) || NO_NUMBER.test(trimmed) ? null : { problem: "number" };
    case "boolean":
      return BOOLEAN.test(trimmed) ? null : { problem: "boolean" };
    case "enum":
      return valueType.labels!.includes(text) ? null : { problem: "enum" };
    case "uuid":
      return UUID.test(trimmed) ? null : { problem: "uuid" };
    case "json":
      if (trimmed === "null") return { problem: "jsonNull" };
      return isJson(text) ? null : { problem: "json" };
    case "array":
      return /^\[[-\d:\][]*\]=\{.*\}$/s.test(trimmed) || parseArrayLiteral(trimmed) ? null : { problem: "array" };
    case "bytea":
      return trimmed.startsWith("\\x") && !BYTES.test(trimmed) ? { problem: "bytea" } : null;
    case "date":
    case "timestamp":
    case "timestamptz":
      return isPossibleDate(trimmed) ? null : { problem: "date" };
    case "text":
      return findTextProblem(text, valueType.type);
    default:
      return null;
  }
}

function findIntegerProblem(text: string, type: string): ValueProblem | null {
  if (!/^[-+]?\d+$/.test(text)) return { problem: "integer" };
  const limit = 2n ** INTEGER_BITS[type]!;
  const value = BigInt(text.replace("+", ""));
  if (value >= -limit && value < limit) return null;
  return { problem: "range", least: String(-limit), greatest: String(limit - 1n) };
}

function findNumericProblem(text: string, type: string): ValueProblem | null {
  if (NO_NUMBER.test(text)) return null;
  if (!NUMBER.test(text)) return { problem: "number" };
  const scale = /\(\d+,(-?\d+)\)/.exec(type)?.[1] ?? (/\(\d+\)/.test(type) ? "0" : null);
  const decimals = /\.(\d*?)0*$/.exec(text)?.[1]?.length ?? 0;
  return scale !== null && decimals > Math.max(0, Number(scale)) ? { problem: "decimals", limit: Number(scale) } : null;
}

function findTextProblem(text: string, type: string): ValueProblem | null {
  const limit = /^character(?: varying)?\((\d+)\)$/.exec(type)?.[1];
  if (limit === undefined || [...text.trimEnd()].length <= Number(limit)) return null;
  return { problem: "length", limit: Number(limit) };
}

/** Checks dates of ISO 8601; Postgres reads many other formats too. */
function isPossibleDate(text: string): boolean {
  if (SPECIAL_DATE.test(text)) return true;
  const iso = ISO_DATE.exec(text);
  if (!iso) return /\d/.test(text);
  const [month, day] = [Number(iso[1]), Number(iso[2])];
  return month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(2024, month, 0)).getUTCDate();
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

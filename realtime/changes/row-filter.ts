import type { CatalogColumn, DataType } from "#catalog";
import type { ColumnBounds } from "#live/matching";
import { quotedName } from "#postgres/client";

const SQL_OPERATORS = {
  eq: "=",
  lt: "<",
  lte: "<=",
  gt: ">",
  gte: ">=",
  like: "~~",
  ilike: "~~*",
  match: "~",
  imatch: "~*",
} as const;
const PATTERN_OPERATORS: readonly string[] = ["like", "ilike", "match", "imatch"];

const COMPARATORS: Readonly<Record<string, CompareNumbers>> = {
  int2: compareDecimals,
  int4: compareDecimals,
  int8: compareDecimals,
  numeric: compareDecimals,
  float4: compareFloats,
  float8: compareFloats,
};

const MAX_EXACT_LENGTH = 15;
const DECIMAL = /^(?<sign>-?)(?<whole>\d*)(?:\.(?<fraction>\d*))?$/;
const LEADING_ZEROS = /^0+/;
/** Zeros at the end of a number. The lookbehind tries each run once: numbers of Postgres have up to 16,383 of them. */
const TRAILING_ZEROS = /(?<!0)0+$/;

/** A number without redundant zeros. */
type Decimal = { readonly isNegative: boolean; readonly whole: string; readonly fraction: string };

/** Rows of a result, with values as Postgres prints them. */
export type TextRows = readonly (readonly (string | null)[])[];
/** A value of the row as Postgres prints it; undefined if it is not in the log. */
export type CellText = string | null | undefined;
/** The result of a comparison in Postgres; null is unknown, as in a comparison with null. */
export type ComparisonResult = boolean | null;
export type ComparisonResults = (comparison: PostgresComparison) => ComparisonResult;

/** A condition of a filter, prepared for evaluation on rows. */
export type BindingFilter = {
  readonly column: string;
  /** The column's type when the condition was prepared. */
  readonly type: DataType;
  /** The comparisons that Postgres must evaluate for each row; empty if the condition is evaluated here. */
  readonly comparisons: readonly PostgresComparison[];
  /** The values that a cell must have to match; null if they are not known. */
  readonly bounds: ColumnBounds | null;
  matches(cell: CellText, results: ComparisonResults): boolean;
};

/** Types in which equal values have equal texts, so that they are compared here. */
const CANONICAL_TYPES = new Set(["bool", "date", "int2", "int4", "int8", "text", "uuid", "varchar"]);

/**
 * Makes a filter. `canonical` are the condition's values as Postgres prints them in the column's type; null if an equal value may be
 * printed differently.
 */
export function makeRowFilter(
  condition: FilterCondition,
  canonical: readonly (string | null)[],
  type: DataType,
): BindingFilter {
  const { column } = condition;
  const comparisons = comparisonsFor(condition, isEvaluatedLocally(condition, type) && !canonical.includes(null));
  const compare = condition.operator in ORDER_OPERATORS || !isCanonical(type) ? numberComparator(type) : null;
  const isTrue = makeConditionTest(condition, { canonical, comparisons, compare });
  const wanted = condition.negated === (condition.operator === "neq" || condition.operator === "isdistinct");
  return {
    column,
    type,
    comparisons,
    bounds: comparisons.length === 0 ? boundsOf(condition, canonical, type) : null,
    matches: (cell, results) => cell !== undefined && isTrue(cell, results) === wanted,
  };
}

function boundsOf(
  { column, negated, operator }: FilterCondition,
  canonical: readonly (string | null)[],
  { name }: DataType,
): ColumnBounds | null {
  const values = canonical.filter((value) => value !== null);
  const [bound] = values;
  if (negated || bound === undefined) return null;
  const isExact = name === "text" || name === "varchar";
  if (operator === "eq" || operator === "in") return { column, values, isExact };
  if (operator === "gt" || operator === "gte") return { column, least: bound, greatest: null };
  return operator === "lt" || operator === "lte" ? { column, least: null, greatest: bound } : null;
}

/** True if conditions on this type are evaluated here instead of in Postgres. */
export function isEvaluatedLocally({ operator }: FilterCondition, type: DataType): boolean {
  switch (operator) {
    case "is":
      return true;
    case "eq":
    case "neq":
    case "in":
    case "isdistinct":
      return isCanonical(type) || numberComparator(type) !== null;
    default:
      return operator in ORDER_OPERATORS && numberComparator(type) !== null;
  }
}

function comparisonsFor(
  { column, operator, values }: FilterCondition,
  isLocal: boolean,
): readonly PostgresComparison[] {
  if (isLocal || operator === "is") return [];
  const comparisonOperator = operator === "neq" || operator === "in" || operator === "isdistinct" ? "eq" : operator;
  return values.map((value) => ({ column, operator: comparisonOperator, value }));
}

/** The results of the comparison that each operator accepts. */
const ORDER_OPERATORS: Readonly<Record<string, (order: number) => boolean>> = {
  lt: (order) => order < 0,
  lte: (order) => order <= 0,
  gt: (order) => order > 0,
  gte: (order) => order >= 0,
};
const isEqual = (order: number) => order === 0;

type ConditionInput = {
  readonly canonical: readonly (string | null)[];
  readonly comparisons: readonly PostgresComparison[];
  readonly compare: CompareNumbers | null;
};

/** Makes a test of the condition without its negation: `neq` counts as `eq` here, and `isdistinct` as its opposite. */
function makeConditionTest({ operator, values }: FilterCondition, { canonical, comparisons, compare }: ConditionInput) {
  const canonicalSet = new Set(canonical);
  const passes = ORDER_OPERATORS[operator] ?? isEqual;
  const matchesLocally = (cell: string): boolean =>
    compare ? canonical.some((value) => passes(compare(cell, value!))) : canonicalSet.has(cell);
  const isAnyOf = (cell: string, results: ComparisonResults): ComparisonResult =>
    comparisons.length === 0 ? matchesLocally(cell) : comparisons.some((comparison) => results(comparison) === true);
  switch (operator) {
    case "is":
      return (cell: string | null): ComparisonResult => cell === IS_TEXT[values[0]!];
    case "isdistinct":
      return (cell: string | null, results: ComparisonResults): ComparisonResult =>
        cell !== null && isAnyOf(cell, results);
    default:
      return (cell: string | null, results: ComparisonResults): ComparisonResult =>
        cell === null ? null : isAnyOf(cell, results);
  }
}

/** The operands of `is`, as Postgres prints a boolean. */
const IS_TEXT: Readonly<Record<string, string | null>> = { null: null, unknown: null, true: "t", false: "f" };

function isCanonical(type: DataType): boolean {
  return type.kind === "enum" || (type.schema === "pg_catalog" && CANONICAL_TYPES.has(type.name));
}

/** A comparison that only Postgres can evaluate: it depends on the column's type. */
export type PostgresComparison = {
  readonly column: string;
  readonly operator: ComparisonOperator;
  readonly value: string;
};

export type ComparisonOperator = keyof typeof SQL_OPERATORS;

/** True if the value is a pattern, which can take long to match. */
export function isPattern(operator: string): boolean {
  return PATTERN_OPERATORS.includes(operator);
}

/** Builds `"price" < $1::"pg_catalog"."numeric"`; both sides are SQL. */
export function comparisonSql(
  left: string,
  operator: ComparisonOperator,
  right: string,
  column: Pick<CatalogColumn, "baseType">,
): string {
  // A pattern is a text whatever the column's type is.
  return `${left} ${SQL_OPERATORS[operator]} ${right}::${isPattern(operator) ? "text" : castType(column)}`;
}

/** Returns the type's qualified name, which has no modifier that would truncate a value. */
export function castType({ baseType }: Pick<CatalogColumn, "baseType">): string {
  return quotedName(baseType.schema, baseType.name);
}

/** Returns a negative, positive or zero number if the first number is less than, greater than or equal to the second, as Postgres prints them. */
type CompareNumbers = (one: string, other: string) => number;

/** Returns the comparison of a numeric type; null if only Postgres knows the order of the type. */
export function numberComparator({ schema, name }: DataType): CompareNumbers | null {
  return schema === "pg_catalog" ? (COMPARATORS[name] ?? null) : null;
}

/** Compares floats as Postgres does: NaN equals itself, and is greater than everything else. */
function compareFloats(one: string, other: string): number {
  const [left, right] = [Number(one), Number(other)];
  if (Number.isNaN(left) || Number.isNaN(right)) return Number(Number.isNaN(left)) - Number(Number.isNaN(right));
  return left === right ? 0 : left < right ? -1 : 1;
}

function compareDecimals(one: string, other: string): number {
  // JavaScript represents such numbers exactly, as well as the infinities and NaN.
  if (one.length <= MAX_EXACT_LENGTH && other.length <= MAX_EXACT_LENGTH) return compareFloats(one, other);
  const [left, right] = [parseDecimal(one), parseDecimal(other)];
  if (!left || !right) return compareFloats(one, other);
  const [leftSign, rightSign] = [signOf(left), signOf(right)];
  return leftSign === rightSign ? leftSign * compareMagnitudes(left, right) : leftSign - rightSign;
}

function parseDecimal(text: string): Decimal | null {
  const parts = DECIMAL.exec(text)?.groups;
  if (!parts) return null;
  const { sign, whole = "", fraction = "" } = parts;
  return {
    isNegative: sign === "-",
    whole: whole.replace(LEADING_ZEROS, ""),
    fraction: fraction.replace(TRAILING_ZEROS, ""),
  };
}

function signOf({ isNegative, whole, fraction }: Decimal): number {
  if (whole === "" && fraction === "") return 0;
  return isNegative ? -1 : 1;
}

function compareMagnitudes(one: Decimal, other: Decimal): number {
  if (one.whole.length !== other.whole.length) return one.whole.length - other.whole.length;
  const [left, right] = [one.whole + one.fraction, other.whole + other.fraction];
  return left === right ? 0 : left < right ? -1 : 1;
}

/** One condition of a filter, as the client wrote it. */
export type FilterCondition = {
  readonly column: string;
  readonly negated: boolean;
  readonly operator: FilterOperator;
  /** The operands: one value, except for `in`. */
  readonly values: readonly string[];
};

type FilterOperator = (typeof FILTER_OPERATORS)[number];

const FILTER_OPERATORS = [
  "eq",
  "neq",
  "lt",
  "lte",
  "gt",
  "gte",
  "in",
  "like",
  "ilike",
  "match",
  "imatch",
  "is",
  "isdistinct",
] as const;
const CONDITION = /^(?<column>[^=]+)=(?<not>not\.)?(?<operator>[a-z]+)\.(?<value>.*)$/s;
const MAX_LIST_VALUES = 100;
/** The end of a pattern that ends with an escape, which fails in Postgres only on some rows. */
const TRAILING_ESCAPE = /(?<!\\)(?:\\\\)*\\$/;
const QUOTED = /^"(?:[^"\\]|\\.)*"$/s;
/** The values of `is`. */
const IS_VALUES = ["null", "true", "false", "unknown"];

/**
 * Parses `id=eq.1,status=in.(draft,"sent, late"),body=not.is.null`; null for invalid syntax. An empty filter has no conditions. White
 * space
 * around a column is ignored; in a value it counts.
 */
export function parseFilter(text: string): readonly FilterCondition[] | null {
  if (text.trim() === "") return [];
  const conditions = splitAtCommas(text).map(parseCondition);
  return conditions.every((condition) => condition !== null) ? conditions : null;
}

function parseCondition(text: string): FilterCondition | null {
  const { column, not, operator, value } = CONDITION.exec(text)?.groups ?? {};
  if (column === undefined || value === undefined || !isFilterOperator(operator)) return null;
  const negated = not !== undefined;
  const name = column.trim();
  // Null is not a value of the column's type.
  if (operator === "isdistinct" && value.trim().toLowerCase() === "null") {
    return { column: name, negated: !negated, operator: "is", values: ["null"] };
  }
  const values = parseValues(operator, value);
  return values && name !== "" ? { column: name, negated, operator, values } : null;
}

function isFilterOperator(name: string | undefined): name is FilterOperator {
  return FILTER_OPERATORS.some((operator) => operator === name);
}

function parseValues(operator: FilterOperator, text: string): readonly string[] | null {
  if (operator === "in") return parseList(text);
  if (operator === "like" || operator === "ilike") {
    const pattern = parseValue(text);
    return TRAILING_ESCAPE.test(pattern) ? null : [pattern];
  }
  if (operator !== "is") return [parseValue(text)];
  const word = text.trim().toLowerCase();
  return IS_VALUES.includes(word) ? [word] : null;
}

/** Parses `(a,b,"c,d")`; as in PostgREST, white space after the parenthesis is not part of the first value. */
function parseList(input: string): readonly string[] | null {
  const text = input.trim();
  if (!text.startsWith("(") || !text.endsWith(")")) return null;
  const values = splitAtCommas(text.slice(1, -1).trimStart()).map(parseValue);
  return values.length <= MAX_LIST_VALUES ? values : null;
}

/** Parses `"say \"yes\""`, in which white space around the quotes is ignored, or returns the value unchanged. */
function parseValue(input: string): string {
  const text = input.trim();
  return QUOTED.test(text) ? text.slice(1, -1).replace(/\\(.)/gs, "$1") : input;
}

/** Splits at commas outside of parentheses and of double quotes that a value starts with. */
function splitAtCommas(text: string): string[] {
  const parts: string[] = [];
  let start = 0;
  let depth = 0;
  let isQuoted = false;
  let mayBegin = true;
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (isQuoted) {
      if (character === "\\") at++;
      else isQuoted = character !== '"';
      continue;
    }
    if (character === '"') isQuoted = mayBegin;
    else if (character === "(") depth++;
    else if (character === ")") depth = Math.max(depth - 1, 0);
    else if (character === "," && depth === 0) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
    mayBegin = ".(,".includes(character) || (mayBegin && character === " ");
  }
  return [...parts, text.slice(start)];
}

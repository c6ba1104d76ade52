import type { CatalogColumn } from "../../engine/catalog/tables.ts";
import type { DataType } from "../../engine/catalog/types.ts";
import { quotedName } from "../../engine/pg-client/quoted-name.ts";
import type { FilterCondition } from "./parse-filter.ts";

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
const DECIMAL = /^(-?)0*(\d*)(?:\.(\d*?)0*)?$/;

/** A value of the row as Postgres writes it. Undefined: it is not in the log. */
export type CellText = string | null | undefined;
/** What Postgres said; null: unknown, as a comparison with null is. */
export type ComparisonResult = boolean | null;
export type ComparisonResults = (question: PostgresComparison) => ComparisonResult;

/** A condition of a filter, made ready to be held against rows. */
export type RowFilter = {
  readonly column: string;
  /** The column's, when the condition was read. */
  readonly type: DataType;
  /** What Postgres has to be asked about each row; the rest is known by looking at it. */
  readonly comparisons: readonly PostgresComparison[];
  matches(cell: CellText, answers: ComparisonResults): boolean;
};

/** Of these types equal values are written equally, so that they can be compared without asking. */
const CANONICAL_TYPES = new Set(["bool", "date", "int2", "int4", "int8", "text", "uuid", "varchar"]);

/**
 * `canonical` are the condition's values as Postgres writes them in the column's type; null where an equal one may be
 * written otherwise.
 */
export function makeRowFilter(
  condition: FilterCondition,
  canonical: readonly (string | null)[],
  type: DataType,
): RowFilter {
  const { column } = condition;
  const comparisons = comparisonsFor(condition, isEvaluatedLocally(condition, type) && !canonical.includes(null));
  const compare = condition.operator in ORDER_OPERATORS || !isCanonical(type) ? numberComparator(type) : null;
  const isTrue = makeConditionTest(condition, { canonical, comparisons, compare });
  const wanted = condition.negated === (condition.operator === "neq" || condition.operator === "isdistinct");
  return {
    column,
    type,
    comparisons,
    matches: (cell, answers) => cell !== undefined && isTrue(cell, answers) === wanted,
  };
}

/** Whether what Postgres says of values of the type is said here as well, and sooner. */
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
  isKnown: boolean,
): readonly PostgresComparison[] {
  if (isKnown || operator === "is") return [];
  const comparisonOperator = operator === "neq" || operator === "in" || operator === "isdistinct" ? "eq" : operator;
  return values.map((value) => ({ column, operator: comparisonOperator, value }));
}

/** Which orders of the cell and the value they let pass. */
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

/** Whether the condition without its negation holds: `neq` is told as `eq` here, and `isdistinct` as its opposite. */
function makeConditionTest({ operator, values }: FilterCondition, { canonical, comparisons, compare }: ConditionInput) {
  const canonicalSet = new Set(canonical);
  const passes = ORDER_OPERATORS[operator] ?? isEqual;
  const matchesLocally = (cell: string): boolean =>
    compare ? canonical.some((value) => passes(compare(cell, value!))) : canonicalSet.has(cell);
  const isAnyOf = (cell: string, results: ComparisonResults): ComparisonResult =>
    comparisons.length === 0 ? matchesLocally(cell) : comparisons.some((question) => results(question) === true);
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

/** What `is` means, as Postgres writes a boolean. */
const IS_TEXT: Readonly<Record<string, string | null>> = { null: null, unknown: null, true: "t", false: "f" };

function isCanonical(type: DataType): boolean {
  return type.kind === "enum" || (type.schema === "pg_catalog" && CANONICAL_TYPES.has(type.name));
}

/** Something about a row that only Postgres knows: what a value means depends on the column's type. */
export type PostgresComparison = {
  readonly column: string;
  readonly operator: ComparisonOperator;
  readonly value: string;
};

export type ComparisonOperator = keyof typeof SQL_OPERATORS;

/** Whether the value is a pattern, which can take any time to be held against a text. */
export function isPattern(operator: string): boolean {
  return PATTERN_OPERATORS.includes(operator);
}

/** `"price" < $1::"pg_catalog"."numeric"`; both sides are SQL already. */
export function comparisonSql(
  left: string,
  operator: ComparisonOperator,
  right: string,
  column: Pick<CatalogColumn, "baseType">,
): string {
  // A pattern is a text whatever it is held against.
  return `${left} ${SQL_OPERATORS[operator]} ${right}::${isPattern(operator) ? "text" : castType(column)}`;
}

/** By its full name it has no modifier that would cut a value. */
export function castType({ baseType }: Pick<CatalogColumn, "baseType">): string {
  return quotedName(baseType.schema, baseType.name);
}

/** Below, at or above zero, as the one is less than, equal to or greater than the other. Both as Postgres writes them. */
type CompareNumbers = (one: string, other: string) => number;

/** How values of a type are ordered; null where only Postgres knows. */
export function numberComparator({ schema, name }: DataType): CompareNumbers | null {
  return schema === "pg_catalog" ? (COMPARATORS[name] ?? null) : null;
}

/** Postgres takes NaN for equal to itself, and for greater than everything else. */
function compareFloats(one: string, other: string): number {
  const [left, right] = [Number(one), Number(other)];
  if (Number.isNaN(left) || Number.isNaN(right)) return Number(Number.isNaN(left)) - Number(Number.isNaN(right));
  return left === right ? 0 : left < right ? -1 : 1;
}

function compareDecimals(one: string, other: string): number {
  // Such numbers JavaScript holds; so does it the two infinities and NaN.
  if (one.length <= MAX_EXACT_LENGTH && other.length <= MAX_EXACT_LENGTH) return compareFloats(one, other);
  const [left, right] = [DECIMAL.exec(one), DECIMAL.exec(other)];
  if (!left || !right) return compareFloats(one, other);
  const [leftSign, rightSign] = [signOf(left), signOf(right)];
  return leftSign === rightSign ? leftSign * compareMagnitudes(left, right) : leftSign - rightSign;
}

function signOf([, minus, whole, fraction = ""]: RegExpExecArray): number {
  if (whole === "" && fraction === "") return 0;
  return minus === "" ? 1 : -1;
}

function compareMagnitudes(
  [, , one = "", oneFraction = ""]: RegExpExecArray,
  [, , other = "", otherFraction = ""]: RegExpExecArray,
) {
  if (one.length !== other.length) return one.length - other.length;
  const [left, right] = [one + oneFraction, other + otherFraction];
  return left === right ? 0 : left < right ? -1 : 1;
}

/** One condition of a filter, as the client wrote it. */
export type FilterCondition = {
  readonly column: string;
  readonly negated: boolean;
  readonly operator: FilterOperator;
  /** One value, except for `in`. */
  readonly values: readonly string[];
};

export type FilterOperator = (typeof FILTER_OPERATORS)[number];

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
/** A pattern that ends with an escape fails in Postgres only on some rows. */
const TRAILING_ESCAPE = /(?<!\\)(?:\\\\)*\\$/;
const QUOTED = /^"(?:[^"\\]|\\.)*"$/s;
/** The values of `is`. */
const IS_VALUES = ["null", "true", "false", "unknown"];

/**
 * `id=eq.1,status=in.(draft,"sent, late"),body=not.is.null`; null for invalid syntax. An empty filter has no conditions. White space around a column
 * is ignored; in a value it counts.
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

/** `(a,b,"c,d")`; as in PostgREST, white space after the parenthesis is not part of the first value. */
function parseList(input: string): readonly string[] | null {
  const text = input.trim();
  if (!text.startsWith("(") || !text.endsWith(")")) return null;
  const values = splitAtCommas(text.slice(1, -1).trimStart()).map(parseValue);
  return values.length <= MAX_LIST_VALUES ? values : null;
}

/** `"say \"yes\""`, where white space around the quotes is ignored, or the value as it is. */
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

/** One condition of a filter, as the client wrote it. */
export type Condition = {
  readonly column: string;
  readonly negated: boolean;
  readonly operator: Operator;
  /** One, but for `in`. */
  readonly values: readonly string[];
};

export type Operator = (typeof OPERATORS)[number];

const OPERATORS = [
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
const MOST_VALUES = 100;
/** A pattern that ends with an escape: Postgres finds that out only with some rows, and fails. */
const UNFINISHED = /(?<!\\)(?:\\\\)*\\$/;
const QUOTED = /^"(?:[^"\\]|\\.)*"$/s;
/** What may follow `is`. */
const TRUTHS = ["null", "true", "false", "unknown"];

/** `id=eq.1,status=in.(draft,"sent, late"),body=not.is.null`; null for what cannot be read. Nothing at all is no condition. */
export function parseFilter(text: string): readonly Condition[] | null {
  if (text.trim() === "") return [];
  const conditions = splitAtCommas(text).map(parseCondition);
  return conditions.every((condition) => condition !== null) ? conditions : null;
}

function parseCondition(text: string): Condition | null {
  const { column, not, operator, value } = CONDITION.exec(text.trim())?.groups ?? {};
  if (column === undefined || value === undefined || !isOperator(operator)) return null;
  const negated = not !== undefined;
  // Null is no value that the column's type could read.
  if (operator === "isdistinct" && value.toLowerCase() === "null") {
    return { column: column.trim(), negated: !negated, operator: "is", values: ["null"] };
  }
  const values = parseValues(operator, value);
  return values && { column: column.trim(), negated, operator, values };
}

function isOperator(name: string | undefined): name is Operator {
  return OPERATORS.some((operator) => operator === name);
}

function parseValues(operator: Operator, text: string): readonly string[] | null {
  if (operator === "in") return parseList(text);
  if (operator === "like" || operator === "ilike") {
    const pattern = parseValue(text);
    return UNFINISHED.test(pattern) ? null : [pattern];
  }
  if (operator !== "is") return [parseValue(text)];
  const word = text.toLowerCase();
  return TRUTHS.includes(word) ? [word] : null;
}

/** `(a,b,"c,d")` */
function parseList(text: string): readonly string[] | null {
  if (!text.startsWith("(") || !text.endsWith(")")) return null;
  const values = splitAtCommas(text.slice(1, -1)).map((value) => parseValue(value.trim()));
  return values.length <= MOST_VALUES ? values : null;
}

/** `"say \"yes\""`, or as it stands. */
function parseValue(text: string): string {
  return QUOTED.test(text) ? text.slice(1, -1).replace(/\\(.)/gs, "$1") : text;
}

/** Those outside of parentheses, and of double quotes that a value begins with. */
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

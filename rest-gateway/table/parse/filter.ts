import type {
  ComparisonName,
  FieldReference,
  FilterOperation,
  OperatorQuantifier,
  RowCondition,
  SearchOperator,
} from "#planner/intent";
import { takeMeasure, takeMeasureCall } from "./measure.ts";
import { maskApiKey } from "./query-string.ts";
import { Scanner, takeField, takeName, unescaped } from "./scanner.ts";

const LOGIC_OPERATOR = /and|or/y;
const LOGIC_GROUP = /(?:not\.)?(?:and|or)[ \t]*\(/y;
const QUANTIFIED = /(not\.)?(any|none|every)[ \t]*\([ \t]*/y;
const ARRAY_LITERAL = /\{[^{}]*\}/y;

const OPERATOR_PATTERNS = {
  plain: "in|is|isdistinct",
  search: "(?:pl|ph|w)?fts",
  comparison: "neq|cs|cd|ov|sl|sr|nxr|nxl|adj",
  quantifiable: "eq|gte?|lte?|i?like|i?match",
  language: "[\\p{L}\\d_ $]+",
};
const OPERATION = new RegExp(
  `(not\\.)?(?:(${OPERATOR_PATTERNS.plain})|(${OPERATOR_PATTERNS.search})(?:\\((${OPERATOR_PATTERNS.language})\\))?|(${OPERATOR_PATTERNS.comparison})|(${OPERATOR_PATTERNS.quantifiable})(?:\\((any|all)\\))?)\\.`,
  "uy",
);
/** The longest valid start of an operation, for the position in the error message. */
const START_OF_OPERATION = new RegExp(
  `(?:isdistinct|is|in|${OPERATOR_PATTERNS.comparison}|${OPERATOR_PATTERNS.search}(?:\\((?:${OPERATOR_PATTERNS.language}\\)?)?)?|(?:${OPERATOR_PATTERNS.quantifiable})(?:\\((?:(?:any|all)\\)?)?)?)?`,
  "uy",
);

const IS_OPERANDS = ["null", "not_null", "true", "false", "unknown"] as const;
const QUOTED_ELEMENT = /"([^"\\]*(?:\\.[^"\\]*)*)"(?=[,)]|$)/sy;
const PLAIN_ELEMENT = /[^,)]*/y;

type RelatedRows = Extract<RowCondition, { kind: "related" }>;
type FilterPart = Pick<Extract<RowCondition, { kind: "filter" }>, "negated" | "operation">;

/** Parses the value of a parameter named after a relation, `any(stars.gt.3)`; null for another value. */
export function parseQuantified({ name, path }: FieldReference, text: string): RowCondition | null {
  const scanner = new Scanner("filter", text, maskApiKey(name, text));
  const condition = path.length === 0 ? takeQuantified(scanner, name) : null;
  if (condition !== null && !scanner.looksDone()) scanner.fail();
  return condition;
}

/** Parses the value of a parameter named after a field. With `orArgument`, null if the value has no operator. */
export function parseFilter(
  field: FieldReference,
  text: string,
  { orArgument }: { orArgument: boolean },
): RowCondition | null {
  const scanner = new Scanner("filter", text, maskApiKey(field.name, text));
  const measure = orArgument ? null : takeMeasureCall(scanner);
  if (measure !== null && !scanner.take(".")) scanner.fail();
  const filter = takeOperation(scanner, (rest) => rest.takeRest());
  if (filter !== null) return { kind: "filter", field: measure ? { ...field, measure } : field, ...filter };
  if (orArgument && !scanner.peek("not.")) return null;
  return scanner.fail();
}

/**
 * Parses `not.eq.5`, `eq(any).{1,2}`, `in.(1,2)`, `is.null`, `fts(english).cat`; null if there is no operator. `readValue` reads a
 * plain value, whose end depends on the context.
 */
function takeOperation(scanner: Scanner, readValue: (scanner: Scanner) => string): FilterPart | null {
  const match = scanner.takeMatch(OPERATION);
  if (match === null) {
    expectOperation(scanner);
    return null;
  }
  const [, not, plain, search, language, comparison, quantifiable, quantifier] = match;
  return { negated: not !== undefined, operation: readOperation() };

  function readOperation(): FilterOperation {
    if (plain === "in") return { kind: "in", values: readList(scanner) };
    if (plain === "is") return { kind: "is", value: readIsOperand(scanner) };
    if (plain === "isdistinct") return { kind: "isdistinct", value: readValue(scanner) };
    if (search !== undefined) {
      return {
        kind: "search",
        operator: search as SearchOperator,
        language: language?.trim() ?? null,
        value: readValue(scanner),
      };
    }
    const operator = (comparison ?? quantifiable) as ComparisonName;
    const value = readValue(scanner);
    return {
      kind: "compare",
      operator,
      quantifier: (quantifier as OperatorQuantifier | undefined) ?? null,
      // A percent sign would have to be escaped in a URL.
      value: operator === "like" || operator === "ilike" ? value.replaceAll("*", "%") : value,
    };
  }
}

function expectOperation(scanner: Scanner): void {
  const isNegated = scanner.peek("not.");
  const start = scanner.position + (isNegated ? "not.".length : 0);
  if (!isNegated) scanner.expectLiteral("not");
  if (!isNegated && scanner.peek("not")) scanner.expect("delimiter (.)", start + "not".length);
  START_OF_OPERATION.lastIndex = start;
  scanner.expect("operator (eq, gt, ...)", start + START_OF_OPERATION.exec(scanner.text)![0].length);
}

/** Reads `(1,"two, too",3)`; `()` has no element, and neither has `("")`, as in PostgREST. */
function readList(scanner: Scanner): string[] {
  if (!scanner.take("(")) scanner.fail();
  scanner.skipSpace();
  const values: string[] = [];
  do values.push(readElement(scanner));
  while (scanner.take(","));
  if (!scanner.take(")")) scanner.fail();
  scanner.skipSpace();
  return values.length === 1 && values[0] === "" ? [] : values;
}

/** Reads to the next comma or closing parenthesis; elements that contain these are quoted. */
function readElement(scanner: Scanner): string {
  return takeQuotedElement(scanner) ?? readPlainElement(scanner);
}

function takeQuotedElement(scanner: Scanner): string | null {
  scanner.expectLiteral('"');
  const match = scanner.takeMatch(QUOTED_ELEMENT);
  return match === null ? null : unescaped(match[1]!);
}

function readPlainElement(scanner: Scanner): string {
  return scanner.takeMatch(PLAIN_ELEMENT)![0];
}

function readIsOperand(scanner: Scanner): (typeof IS_OPERANDS)[number] {
  const rest = scanner.text.slice(scanner.position).toLowerCase();
  const truth = IS_OPERANDS.find((candidate) => rest.startsWith(candidate));
  if (truth === undefined) {
    const reach = Math.max(...IS_OPERANDS.map((candidate) => commonPrefixLength(candidate, rest)));
    scanner.expect(`isVal: (${IS_OPERANDS.join(", ")})`, scanner.position + reach);
    return scanner.fail();
  }
  scanner.moveTo(scanner.position + truth.length);
  return truth;
}

function commonPrefixLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length += 1;
  return length;
}

/** Parses `(id.eq.1,not.and(a.gt.2,b.is.null))` after `and`, `or`, `not.and` or `not.or`. */
export function parseLogic(operator: string, text: string): RowCondition {
  return readGroup(new Scanner("logic tree", operator + text, text));
}

function readCondition(scanner: Scanner): RowCondition {
  const start = scanner.position;
  const condition = takeCondition(scanner);
  if (condition !== null) return condition;
  scanner.moveTo(start);
  takeFilter(scanner);
  scanner.expect("negation operator (not)", start);
  scanner.expect("logic operator (and, or)", start);
  if (!/^(?:not\.|and|or)/.test(scanner.text.slice(start))) scanner.fail();
  scanner.moveTo(start);
  return readGroup(scanner);
}

function takeCondition(scanner: Scanner): RowCondition | null {
  const start = scanner.position;
  const filter = takeFilter(scanner);
  if (filter !== null) return filter;
  scanner.moveTo(start);
  return scanner.nested(scanner.matches(LOGIC_GROUP) ? readGroup : takeRelated);
}

/**
 * Parses `author.name.eq.Ada`, `not.books.or(year.gt.1900,title.is.null)`: a condition on some row of a relation, which is our extension
 * of PostgREST's syntax.
 */
function takeRelated(scanner: Scanner): RowCondition | null {
  const negated = scanner.take("not.");
  const relation = takeName(scanner);
  if (relation === null || !scanner.take(".")) return null;
  const rows = takeQuantified(scanner, relation);
  if (rows !== null) return { ...rows, negated: rows.negated !== negated };
  const condition = takeCondition(scanner);
  return condition && { kind: "related", relation, negated, condition };
}

/** Parses `any(stars.gt.3,text.neq.)`, `none(…)`, `every(…)`, `not.every(…)`: the number of rows of the relation that meet all conditions. */
function takeQuantified(scanner: Scanner, relation: string): RelatedRows | null {
  const match = scanner.takeMatch(QUANTIFIED);
  if (match === null) return null;
  const [, not, quantifier] = match;
  const conditions = readConditions(scanner);
  const condition: RowCondition = { kind: "and", negated: false, conditions };
  const negated = (not !== undefined) !== (quantifier === "none");
  return { kind: "related", relation, ...(quantifier === "every" && { every: true }), negated, condition };
}

function takeFilter(scanner: Scanner): RowCondition | null {
  const named = takeField(scanner);
  if (named === null) return null;
  const measure = takeMeasure(scanner);
  const field = measure ? { ...named, measure } : named;
  if (!scanner.peek(".")) {
    scanner.expect("delimiter (.)");
    return null;
  }
  scanner.take(".");
  const filter = takeOperation(scanner, readLogicValue);
  return filter && { kind: "filter", field, ...filter };
}

function readGroup(scanner: Scanner): RowCondition {
  const negated = scanner.take("not.");
  const kind = readOperator(scanner);
  readMark(scanner, "(");
  return { kind, negated, conditions: readConditions(scanner) };
}

/** Reads conditions, and the closing parenthesis. */
function readConditions(scanner: Scanner): readonly RowCondition[] {
  const conditions = [readCondition(scanner)];
  while (takeMark(scanner, ",")) conditions.push(readCondition(scanner));
  readMark(scanner, ")");
  return conditions;
}

function readOperator(scanner: Scanner): "and" | "or" {
  const match = scanner.takeMatch(LOGIC_OPERATOR);
  if (match !== null) return match[0] as "and" | "or";
  scanner.expect("logic operator (and, or)");
  return scanner.fail();
}

function readMark(scanner: Scanner, mark: string): void {
  if (!takeMark(scanner, mark)) scanner.fail();
}

function takeMark(scanner: Scanner, mark: string): boolean {
  scanner.skipSpace();
  if (!scanner.take(mark)) return false;
  scanner.skipSpace();
  return true;
}

/** Reads a value. An array literal may contain commas; other values with commas are quoted. */
function readLogicValue(scanner: Scanner): string {
  return takeQuotedElement(scanner) ?? takeArrayLiteral(scanner) ?? readPlainElement(scanner);
}

function takeArrayLiteral(scanner: Scanner): string | null {
  scanner.expectLiteral("{");
  return scanner.takeMatch(ARRAY_LITERAL)?.[0] ?? null;
}

import type { Comparison, Condition, Field, Operation, Quantifier, Search } from "../../statement/intent.ts";
import { shownValue } from "../api-key.ts";
import { unescaped } from "./field.ts";
import { Scanner } from "./scanner.ts";

const NAMES = {
  plain: "in|is|isdistinct",
  search: "(?:pl|ph|w)?fts",
  comparison: "neq|cs|cd|ov|sl|sr|nxr|nxl|adj",
  quantifiable: "eq|gte?|lte?|i?like|i?match",
  language: "[\\p{L}\\d_ $]+",
};
const OPERATION = new RegExp(
  `(not\\.)?(?:(${NAMES.plain})|(${NAMES.search})(?:\\((${NAMES.language})\\))?|(${NAMES.comparison})|(${NAMES.quantifiable})(?:\\((any|all)\\))?)\\.`,
  "uy",
);
/** How far a text that is no operation reads like one. */
const START_OF_OPERATION = new RegExp(
  `(?:isdistinct|is|in|${NAMES.comparison}|${NAMES.search}(?:\\((?:${NAMES.language}\\)?)?)?|(?:${NAMES.quantifiable})(?:\\((?:(?:any|all)\\)?)?)?)?`,
  "uy",
);

const TRUTHS = ["null", "not_null", "true", "false", "unknown"] as const;
const QUOTED_ELEMENT = /"([^"\\]*(?:\\.[^"\\]*)*)"(?=[,)]|$)/sy;
const PLAIN_ELEMENT = /[^,)]*/y;

type Filter = Pick<Extract<Condition, { kind: "filter" }>, "negated" | "operation">;

/** The value of a parameter that is named after a field. With `orArgument` null stands for one that names no operator. */
export function parseFilter(field: Field, text: string, { orArgument }: { orArgument: boolean }): Condition | null {
  const scanner = new Scanner("filter", text, shownValue(field.name, text));
  const filter = takeOperation(scanner, (rest) => rest.takeRest());
  if (filter !== null) return { kind: "filter", field, ...filter };
  if (orArgument && !scanner.peek("not.")) return null;
  return scanner.fail();
}

/**
 * `not.eq.5`, `eq(any).{1,2}`, `in.(1,2)`, `is.null`, `fts(english).cat`; null where no operator begins. How far a plain value
 * reaches depends on what is around it.
 */
export function takeOperation(scanner: Scanner, readValue: (scanner: Scanner) => string): Filter | null {
  const match = scanner.takeMatch(OPERATION);
  if (match === null) {
    wishForOperation(scanner);
    return null;
  }
  const [, not, plain, search, language, comparison, quantifiable, quantifier] = match;
  return { negated: not !== undefined, operation: readOperation() };

  function readOperation(): Operation {
    if (plain === "in") return { kind: "in", values: readList(scanner) };
    if (plain === "is") return { kind: "is", value: readTruth(scanner) };
    if (plain === "isdistinct") return { kind: "isdistinct", value: readValue(scanner) };
    if (search !== undefined) {
      return {
        kind: "search",
        operator: search as Search,
        language: language?.trim() ?? null,
        value: readValue(scanner),
      };
    }
    const operator = (comparison ?? quantifiable) as Comparison;
    const value = readValue(scanner);
    return {
      kind: "compare",
      operator,
      quantifier: (quantifier as Quantifier | undefined) ?? null,
      // A percent sign would have to be escaped in a URL.
      value: operator === "like" || operator === "ilike" ? value.replaceAll("*", "%") : value,
    };
  }
}

function wishForOperation(scanner: Scanner): void {
  const isNegated = scanner.peek("not.");
  const start = scanner.position + (isNegated ? "not.".length : 0);
  if (!isNegated) scanner.wishFor("not");
  if (!isNegated && scanner.peek("not")) scanner.wish("delimiter (.)", start + "not".length);
  START_OF_OPERATION.lastIndex = start;
  scanner.wish("operator (eq, gt, ...)", start + START_OF_OPERATION.exec(scanner.text)![0].length);
}

/** `(1,"two, too",3)`; `()` has no element, and neither has `("")`, as in PostgREST. */
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

/** Up to the next comma or closing parenthesis; one that holds such a thing is quoted. */
function readElement(scanner: Scanner): string {
  return takeQuotedElement(scanner) ?? readPlainElement(scanner);
}

export function takeQuotedElement(scanner: Scanner): string | null {
  scanner.wishFor('"');
  const match = scanner.takeMatch(QUOTED_ELEMENT);
  return match === null ? null : unescaped(match[1]!);
}

export function readPlainElement(scanner: Scanner): string {
  return scanner.takeMatch(PLAIN_ELEMENT)![0];
}

function readTruth(scanner: Scanner): (typeof TRUTHS)[number] {
  const rest = scanner.text.slice(scanner.position).toLowerCase();
  const truth = TRUTHS.find((candidate) => rest.startsWith(candidate));
  if (truth === undefined) {
    const reach = Math.max(...TRUTHS.map((candidate) => sharedLength(candidate, rest)));
    scanner.wish(`isVal: (${TRUTHS.join(", ")})`, scanner.position + reach);
    return scanner.fail();
  }
  scanner.moveTo(scanner.position + truth.length);
  return truth;
}

function sharedLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length += 1;
  return length;
}

import type { Condition } from "../../statement/intent.ts";
import { takeField, takeName } from "./field.ts";
import { readPlainElement, takeOperation, takeQuotedElement } from "./filter.ts";
import { Scanner } from "./scanner.ts";

const OPERATOR = /and|or/y;
const GROUP = /(?:not\.)?(?:and|or)[ \t]*\(/y;
const ARRAY = /\{[^{}]*\}/y;

/** `(id.eq.1,not.and(a.gt.2,b.is.null))` after `and`, `or`, `not.and` or `not.or` */
export function parseLogic(operator: string, text: string): Condition {
  return readGroup(new Scanner("logic tree", operator + text, text));
}

function readCondition(scanner: Scanner): Condition {
  const start = scanner.position;
  const condition = takeCondition(scanner);
  if (condition !== null) return condition;
  scanner.moveTo(start);
  takeFilter(scanner);
  scanner.wish("negation operator (not)", start);
  scanner.wish("logic operator (and, or)", start);
  if (!/^(?:not\.|and|or)/.test(scanner.text.slice(start))) scanner.fail();
  scanner.moveTo(start);
  return readGroup(scanner);
}

function takeCondition(scanner: Scanner): Condition | null {
  const start = scanner.position;
  const filter = takeFilter(scanner);
  if (filter !== null) return filter;
  scanner.moveTo(start);
  return scanner.nested(scanner.matches(GROUP) ? readGroup : takeRelated);
}

/** `author.name.eq.Ada`, `not.books.or(year.gt.1900,title.is.null)`: some row of a relation, which PostgREST has no words for. */
function takeRelated(scanner: Scanner): Condition | null {
  const negated = scanner.take("not.");
  const relation = takeName(scanner);
  if (relation === null || !scanner.take(".")) return null;
  const condition = takeCondition(scanner);
  return condition && { kind: "related", relation, negated, condition };
}

function takeFilter(scanner: Scanner): Condition | null {
  const field = takeField(scanner);
  if (field === null) return null;
  if (!scanner.peek(".")) {
    scanner.wish("delimiter (.)");
    return null;
  }
  scanner.take(".");
  const filter = takeOperation(scanner, readValue);
  return filter && { kind: "filter", field, ...filter };
}

function readGroup(scanner: Scanner): Condition {
  const negated = scanner.take("not.");
  const kind = readOperator(scanner);
  readPunctuation(scanner, "(");
  const conditions = [readCondition(scanner)];
  while (takePunctuation(scanner, ",")) conditions.push(readCondition(scanner));
  readPunctuation(scanner, ")");
  return { kind, negated, conditions };
}

function readOperator(scanner: Scanner): "and" | "or" {
  const match = scanner.takeMatch(OPERATOR);
  if (match !== null) return match[0] as "and" | "or";
  scanner.wish("logic operator (and, or)");
  return scanner.fail();
}

function readPunctuation(scanner: Scanner, mark: string): void {
  if (!takePunctuation(scanner, mark)) scanner.fail();
}

function takePunctuation(scanner: Scanner, mark: string): boolean {
  scanner.skipSpace();
  if (!scanner.take(mark)) return false;
  scanner.skipSpace();
  return true;
}

/** An array literal may hold commas; anything else that does is quoted. */
function readValue(scanner: Scanner): string {
  return takeQuotedElement(scanner) ?? takeArray(scanner) ?? readPlainElement(scanner);
}

function takeArray(scanner: Scanner): string | null {
  scanner.wishFor("{");
  return scanner.takeMatch(ARRAY)?.[0] ?? null;
}

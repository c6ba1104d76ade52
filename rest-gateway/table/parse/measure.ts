import {
  MEASURE_NAMES,
  type Measure,
  type RowCondition,
  SEARCH_OPERATORS,
  type SearchedField,
  type SearchOperation,
} from "#planner/intent";
import { Scanner, takeField, takeName, unescaped } from "./scanner.ts";

const MEASURE = new RegExp(`\\.(${MEASURE_NAMES.join("|")})\\(`, "y");
const MEASURE_CALL = new RegExp(`(${MEASURE_NAMES.join("|")})\\(`, "y");
const WORDS = new RegExp(`(${SEARCH_OPERATORS.join("|")})(?:\\(([\\p{L}\\d_ $]+)\\))?\\.`, "uy");
const QUOTED_ARGUMENT = /"([^"\\]*(?:\\.[^"\\]*)*)"(?=\))/sy;
const BRACKETS: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };
const CLOSING = new Set(Object.values(BRACKETS));

type MeasureName = Measure["name"];

/** Parses `.distance((0,0))` after a field, `.rank(wfts.cats)`, `.rank()`; null if there is none. */
export function takeMeasure(scanner: Scanner): Measure | null {
  const at = scanner.position + 2;
  const name = scanner.takeMatch(MEASURE)?.[1];
  return name === undefined ? null : readMeasure(scanner, name as MeasureName, at);
}

/** Parses a measure at the start of the value of a parameter; null if there is none. */
export function takeMeasureCall(scanner: Scanner): Measure | null {
  const at = scanner.position + 1;
  const name = scanner.takeMatch(MEASURE_CALL)?.[1];
  return name === undefined ? null : readMeasure(scanner, name as MeasureName, at);
}

function readMeasure(scanner: Scanner, name: MeasureName, at: number): Measure {
  const isSearch = name === "rank" || name === "highlight";
  const isEmpty = isSearch && scanner.peek(")");
  const operation = isEmpty ? null : isSearch ? readWords(scanner, readArgument) : readDistance(scanner, name);
  if (!scanner.take(")")) scanner.fail();
  return { name, operation, at };
}

function readDistance(scanner: Scanner, name: Exclude<MeasureName, "rank" | "highlight">): Measure["operation"] {
  return { kind: "distance", name, value: readArgument(scanner) };
}

/** Reads `wfts(english).cats and dogs`. */
function readWords(scanner: Scanner, readText: (scanner: Scanner) => string): SearchOperation {
  const match = scanner.takeMatch(WORDS);
  if (match === null) {
    scanner.expect(`search operator (${SEARCH_OPERATORS.join(", ")})`);
    return scanner.fail();
  }
  const [, operator, language] = match;
  const value = readText(scanner);
  return {
    kind: "search",
    operator: operator as SearchOperation["operator"],
    language: language?.trim() ?? null,
    value,
  };
}

/** Reads a text in quotes, or all up to the closing parenthesis: brackets in it are pairs. */
function readArgument(scanner: Scanner): string {
  const quoted = scanner.takeMatch(QUOTED_ARGUMENT);
  if (quoted !== null) return unescaped(quoted[1]!);
  const open: string[] = [];
  for (let end = scanner.position; end < scanner.text.length; end++) {
    const character = scanner.text[end]!;
    const closing = BRACKETS[character];
    if (closing) open.push(closing);
    else if (CLOSING.has(character) && open.pop() !== character) {
      if (character !== ")" || open.length > 0) break;
      const argument = scanner.text.slice(scanner.position, end);
      scanner.moveTo(end);
      return argument;
    }
  }
  scanner.expectLiteral(")", scanner.text.length);
  return scanner.fail();
}

/** Returns true for a search. Other filters begin with an operator, so a column may be called search. */
export function isSearch(text: string): boolean {
  return text.startsWith("(");
}

/** Parses `(title,body,author.name).wfts(english).cats and dogs`. */
export function parseSearch(text: string): RowCondition {
  const scanner = new Scanner("search", text);
  scanner.take("(");
  const fields = [readSearchedField(scanner)];
  while (scanner.take(",")) fields.push(readSearchedField(scanner));
  if (!scanner.take(")") || !scanner.take(".")) scanner.fail();
  const operation = readWords(scanner, (rest) => rest.takeRest());
  return { kind: "search", negated: false, fields, operation };
}

/** Reads `author.name`. */
function readSearchedField(scanner: Scanner): SearchedField {
  const relations: { readonly name: string }[] = [];
  for (;;) {
    const start = scanner.position;
    const name = takeName(scanner) ?? scanner.fail();
    if (!scanner.take(".")) {
      scanner.moveTo(start);
      return { relations, field: takeField(scanner) ?? scanner.fail() };
    }
    relations.push({ name });
  }
}

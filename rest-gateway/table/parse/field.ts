import type { FieldReference, JsonPathStep } from "#planner";
import { END, Scanner } from "./scanner.ts";

const LETTERS = /\p{L}+/uy;
const KEY = /[^(\-:.,>)]+/y;
const QUOTED = /"([^"\\]*(?:\\.[^"\\]*)*)"/sy;
const INDEX = /-?\d+(?=->|::|[.,)]|$)/y;
const START_OF_INDEX = /-?(\d*)/y;

/** Whether a name without quotes may contain the ASCII character with that code. */
const IS_PLAIN = Array.from({ length: 128 }, (_, code) => /[\w $]/.test(String.fromCharCode(code)));

const NO_PATH: readonly JsonPathStep[] = [];

/** `data->items->0->>"a key"` */
export function takeField(scanner: Scanner): FieldReference | null {
  scanner.skipSpace();
  const name = takeName(scanner);
  return name === null ? null : readField(scanner, name);
}

/** Reads the JSON path after the name of a column or computed column. */
export function readField(scanner: Scanner, name: string): FieldReference {
  const path = readPath(scanner);
  scanner.skipSpace();
  return { name, path };
}

/** `views`, `"a.b"`, `first-name`, `Just A Name`; null if there is no name at the position. */
export function takeName(scanner: Scanner): string | null {
  if (scanner.peek('"')) return readQuoted(scanner) || scanner.fail();
  const first = takeIdentifier(scanner);
  if (first !== null) return readDashed(scanner, first, readIdentifier);
  scanner.expect("field name (* or [a..z0..9_$])");
  return null;
}

export function readName(scanner: Scanner): string {
  return takeName(scanner) ?? scanner.fail();
}

export function readIdentifier(scanner: Scanner): string {
  const identifier = takeIdentifier(scanner);
  if (identifier !== null) return identifier;
  expectIdentifier(scanner);
  return scanner.fail();
}

/** Letters of any script, digits, `_`, `$` and spaces; surrounding spaces are ignored. Null if it is empty. */
function takeIdentifier(scanner: Scanner): string | null {
  const { text, position } = scanner;
  const end = endOfIdentifier(text, position);
  const identifier = text.slice(position, end).trim();
  if (identifier === "") return null;
  scanner.moveTo(end);
  expectIdentifier(scanner);
  return identifier;
}

function expectIdentifier(scanner: Scanner): void {
  scanner.expect("letter");
  scanner.expect("digit");
}

/** A loop is faster than a regular expression here: it reads most characters of a request, and nearly all are ASCII. */
function endOfIdentifier(text: string, start: number): number {
  let at = start;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code < 128) {
      if (!IS_PLAIN[code]) return at;
      at += 1;
    } else {
      LETTERS.lastIndex = at;
      if (!LETTERS.test(text)) return at;
      at = LETTERS.lastIndex;
    }
  }
}

function readDashed(scanner: Scanner, first: string, readPart: (scanner: Scanner) => string): string {
  let name = first;
  while (scanner.peek("-") && !scanner.peek("->")) {
    scanner.take("-");
    scanner.expectLiteral(">");
    name += `-${readPart(scanner)}`;
  }
  scanner.expectLiteral("-");
  return name;
}

function readQuoted(scanner: Scanner): string {
  const match = scanner.takeMatch(QUOTED);
  if (match !== null) return unescaped(match[1]!);
  scanner.expectLiteral("\\", scanner.text.length);
  scanner.expectLiteral('"', scanner.text.length);
  return scanner.fail();
}

/** `a\"b` */
export function unescaped(text: string): string {
  return text.includes("\\") ? text.replace(/\\(.)/gs, "$1") : text;
}

/** `->items->0->>"a key"`, or nothing */
function readPath(scanner: Scanner): readonly JsonPathStep[] {
  if (!scanner.peek("->")) {
    scanner.expectLiteral("->>");
    scanner.expectLiteral("->");
    return NO_PATH;
  }
  const steps: JsonPathStep[] = [];
  for (;;) {
    const arrow = scanner.take("->>") ? "->>" : scanner.take("->") ? "->" : null;
    if (arrow === null) return steps;
    steps.push({ arrow, key: takeIndex(scanner) ?? readKey(scanner) });
  }
}

/**
 * An index is a number that is followed by a delimiter; otherwise it is a key. Unlike in PostgREST, a closing parenthesis is a
 * delimiter, so that the last column of an embed, `rel(data->0)`, is parsed like the others.
 */
function takeIndex(scanner: Scanner): number | null {
  const match = scanner.takeMatch(INDEX);
  if (match !== null) return Number(match[0]);
  START_OF_INDEX.lastIndex = scanner.position;
  const [start = "", digits] = START_OF_INDEX.exec(scanner.text) ?? [];
  const end = scanner.position + start.length;
  if (start === "") scanner.expectLiteral("-");
  scanner.expect("digit", end);
  if (digits) {
    for (const follower of ["->", "::", ".", ","]) scanner.expectLiteral(follower, end);
    scanner.expect(END, end);
  }
  return null;
}

function readKey(scanner: Scanner): string {
  if (scanner.peek('"')) return readQuoted(scanner);
  return readDashed(scanner, readKeyPart(scanner), readKeyPart);
}

function readKeyPart(scanner: Scanner): string {
  const key = scanner.takeMatch(KEY)?.[0].trim();
  if (key) return key;
  scanner.expect("any non reserved character different from: .,>()");
  return scanner.fail();
}

type EmbeddedField = { readonly path: readonly string[]; readonly field: FieldReference };

/** A parameter's name: `author.books.data->>title` is a field of a relation embedded in a relation. */
export function parsePath(text: string): EmbeddedField {
  const scanner = new Scanner("tree path", text);
  const names = readPathNames(scanner);
  const path = readPath(scanner);
  return { field: { name: names.pop()!, path }, path: names };
}

/** `author.not.or`: the embed path of a logic tree, and its operator. */
export function parseLogicPath(text: string): { readonly path: readonly string[]; readonly operator: string } {
  const names = readPathNames(new Scanner("logic path", text));
  const operator = names.pop()!;
  const path = names.filter((name) => name !== "not");
  return { path, operator: path.length < names.length ? `not.${operator}` : operator };
}

function readPathNames(scanner: Scanner): string[] {
  const names = [readName(scanner)];
  while (scanner.take(".")) names.push(readName(scanner));
  return names;
}

/** `id,"a,b",name`, the value of the parameters columns and on_conflict */
export function parseColumns(parameter: "columns" | "on_conflict", text: string): readonly string[] {
  const scanner = new Scanner(`${parameter} parameter`, text);
  const names = [readName(scanner)];
  for (;;) {
    const end = scanner.position;
    scanner.skipSpace();
    if (!scanner.take(",")) return scanner.position === end ? names : scanner.fail();
    scanner.skipSpace();
    names.push(readName(scanner));
  }
}

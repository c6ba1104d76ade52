import { HttpError } from "#http";
import type { FieldReference, JsonPathStep } from "#planner/intent";

export const END = "end of input";
const SPACE = "space";

/** The limit of nesting, far above any real request and far below a full stack. */
const MAX_DEPTH = 200;

/**
 * Reads a text from left to right and records what was expected at the furthest position, so that errors equal those of
 * PostgREST's parser. A function `take…` returns null if its subject does not match; a function `read…` throws.
 */
export class Scanner {
  readonly text: string;
  position = 0;
  readonly #subject: string;
  readonly #shown: string;
  #depth = 0;
  #expectedAt = 0;
  /** The number of valid expectations; the others are from an earlier position: overwriting is cheaper than truncating. */
  #expectationCount = 0;
  readonly #expectations: string[] = [];
  /** For each index, true if the expectation is literal text. */
  readonly #isLiteral: boolean[] = [];

  /** Makes a scanner; `shown` is the client's text, for error messages, if the scanned text was derived from it. */
  constructor(subject: string, text: string, shown = text) {
    this.#subject = subject;
    this.text = text;
    this.#shown = shown;
  }

  peek(literal: string): boolean {
    return this.text.startsWith(literal, this.position);
  }

  /** Returns true if the sticky pattern matches at the position. */
  matches(pattern: RegExp): boolean {
    pattern.lastIndex = this.position;
    return pattern.test(this.text);
  }

  take(literal: string): boolean {
    if (!this.looksAt(literal)) return false;
    this.moveTo(this.position + literal.length);
    return true;
  }

  /** Takes the match of the sticky pattern at the position. */
  takeMatch(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.position;
    const match = pattern.exec(this.text);
    if (match !== null && match[0].length > 0) this.moveTo(pattern.lastIndex);
    return match;
  }

  takeRest(): string {
    const rest = this.text.slice(this.position);
    this.moveTo(this.text.length);
    return rest;
  }

  skipSpace(): void {
    let end = this.position;
    while (this.text[end] === " " || this.text[end] === "\t") end += 1;
    if (end > this.position) this.moveTo(end);
    this.#note(SPACE, false, end);
  }

  /** Continues at the position, ahead or behind, and drops the expectations. */
  moveTo(position: number): void {
    this.position = position;
    this.#expectedAt = -1;
  }

  looksAt(literal: string): boolean {
    if (this.text.startsWith(literal, this.position)) return true;
    this.#note(literal, true, this.position);
    return false;
  }

  looksDone(): boolean {
    this.#note(END, false, this.position);
    return this.position === this.text.length;
  }

  /** Records an expectation by its description. */
  expect(label: string, at = this.position): void {
    this.#note(label, false, at);
  }

  expectLiteral(literal: string, at = this.position): void {
    this.#note(literal, true, at);
  }

  #note(expectation: string, isLiteral: boolean, at: number): void {
    if (at < this.#expectedAt) return;
    if (at > this.#expectedAt) {
      this.#expectedAt = at;
      this.#expectationCount = 0;
    }
    this.#expectations[this.#expectationCount] = expectation;
    this.#isLiteral[this.#expectationCount] = isLiteral;
    this.#expectationCount += 1;
  }

  nested<T>(read: (scanner: Scanner) => T): T {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) {
      throw new HttpError(
        400,
        "PGRST100",
        `"failed to parse ${this.#subject}" (nested deeper than ${MAX_DEPTH} levels)`,
      );
    }
    const result = read(this);
    this.#depth -= 1;
    return result;
  }

  fail(): never {
    const at = Math.max(this.#expectedAt, this.position);
    const { line, column } = lineAndColumn(this.text, at);
    throw new HttpError(
      400,
      "PGRST100",
      `"failed to parse ${this.#subject} (${this.#shown})" (line ${line}, column ${column})`,
      { details: this.#explain(at) },
    );
  }

  #explain(at: number): string {
    const isDone = at === this.text.length;
    const expectations = at === this.#expectedAt ? this.#expectations.slice(0, this.#expectationCount) : [];
    const expected = new Set(
      expectations.map((expectation, index) => (this.#isLiteral[index] ? quoteHaskell(expectation) : expectation)),
    );
    const expectsEnd = expected.has(END) && !isDone;
    if (isDone) expected.delete(END);
    // PostgREST does not list spaces.
    expected.delete(SPACE);
    const unexpectedAt = this.#isLiteral[0] && expectations[0] ? firstDifference(this.text, at, expectations[0]) : at;
    const unexpected = `unexpected ${expectsEnd ? quotedCharacter(this.text, at) : characterAt(this.text, unexpectedAt)}`;
    return expected.size === 0 ? unexpected : `${unexpected} expecting ${joinExpected([...expected])}`;
  }
}

function firstDifference(text: string, at: number, literal: string): number {
  let index = 0;
  while (index < literal.length && text[at + index] === literal[index]) index += 1;
  return at + index;
}

/** Returns line and column from 1; a tab leads to the next multiple of eight. */
function lineAndColumn(text: string, at: number): { line: number; column: number } {
  let line = 1;
  let column = 1;
  for (const character of text.slice(0, at)) {
    if (character === "\n") [line, column] = [line + 1, 1];
    else column += character === "\t" ? 8 - ((column - 1) % 8) : 1;
  }
  return { line, column };
}

function characterAt(text: string, at: number): string {
  return at < text.length ? quoteHaskell(String.fromCodePoint(text.codePointAt(at)!)) : END;
}

function quotedCharacter(text: string, at: number): string {
  return `'${characterAt(text, at).slice(1, -1).replace('\\"', '"').replace("'", "\\'")}'`;
}

/** Quotes a string as Haskell shows it. */
function quoteHaskell(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/gu, (character) => `\\${character.codePointAt(0)}`);
}

function joinExpected(expected: readonly string[]): string {
  return expected.length < 2 ? expected.join() : `${expected.slice(0, -1).join(", ")} or ${expected.at(-1)}`;
}

const LETTERS = /\p{L}+/uy;
const KEY = /[^(\-:.,>)]+/y;
const QUOTED = /"([^"\\]*(?:\\.[^"\\]*)*)"/sy;
const INDEX = /-?\d+(?=->|::|[.,)]|$)/y;
const START_OF_INDEX = /-?(\d*)/y;

/** For each ASCII code, true if a name without quotes may contain the character. */
const IS_PLAIN = Array.from({ length: 128 }, (_, code) => /[\w $]/.test(String.fromCharCode(code)));

const NO_PATH: readonly JsonPathStep[] = [];

/** Takes a field: `data->items->0->>"a key"`. */
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

/** Takes a name: `views`, `"a.b"`, `first-name`, `Just A Name`; null if there is none at the position. */
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

/** Takes letters of any script, digits, `_`, `$` and spaces; surrounding spaces are ignored. Null if there are none. */
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

/** Finds the end by a loop, which is faster than a regular expression here: it reads most characters of a request, and nearly all are ASCII. */
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

/** Removes the escapes: `a\"b` becomes `a"b`. */
export function unescaped(text: string): string {
  return text.includes("\\") ? text.replace(/\\(.)/gs, "$1") : text;
}

/** Reads a path, `->items->0->>"a key"`, or nothing. */
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
 * Takes an index, which is a number that is followed by a delimiter; otherwise it is a key. Unlike in PostgREST, a closing parenthesis
 * is a delimiter, so that the last column of an embed, `rel(data->0)`, is parsed like the others.
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

/** Parses a parameter's name: `author.books.data->>title` is a field of a relation embedded in a relation. */
export function parsePath(text: string): EmbeddedField {
  const scanner = new Scanner("tree path", text);
  const names = readPathNames(scanner);
  const path = readPath(scanner);
  return { field: { name: names.pop()!, path }, path: names };
}

/** Parses `author.not.or`: the embed path of a logic tree, and its operator. */
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

/** Parses `id,"a,b",name`, the value of the parameters columns and on_conflict. */
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

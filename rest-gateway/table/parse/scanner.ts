import { HttpError } from "#http";

export const END = "end of input";
const SPACE = "space";

/** Far more than anybody writes, far less than exhausts the stack. */
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
  /** Whether the expectation with the same index is literal text. */
  readonly #isLiteral: boolean[] = [];

  /** `shown` is the client's text, for error messages, if the scanned text was derived from it. */
  constructor(subject: string, text: string, shown = text) {
    this.#subject = subject;
    this.text = text;
    this.#shown = shown;
  }

  peek(literal: string): boolean {
    return this.text.startsWith(literal, this.position);
  }

  /** Whether the sticky pattern matches here. */
  matches(pattern: RegExp): boolean {
    pattern.lastIndex = this.position;
    return pattern.test(this.text);
  }

  take(literal: string): boolean {
    if (!this.looksAt(literal)) return false;
    this.moveTo(this.position + literal.length);
    return true;
  }

  /** What the sticky pattern matches here. */
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

  /** Records an expected literal. */
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
    // PostgREST does not list it.
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

/** Line and column from 1; a tab leads to the next multiple of eight. */
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

/** As Haskell shows a string. */
function quoteHaskell(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/gu, (character) => `\\${character.codePointAt(0)}`);
}

function joinExpected(expected: readonly string[]): string {
  return expected.length < 2 ? expected.join() : `${expected.slice(0, -1).join(", ")} or ${expected.at(-1)}`;
}

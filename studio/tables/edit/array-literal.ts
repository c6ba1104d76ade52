/** An element is a text, null, or the elements of an inner dimension. */
export type ArrayElement = string | null | readonly ArrayElement[];

const NEEDS_QUOTES = /[{}",\\\s]|^$|^null$/i;

/** Parses `{a,"b c",NULL}`, as Postgres prints it; null for anything else, such as `[2:3]={a,b}`. */
export function parseArrayLiteral(text: string): readonly ArrayElement[] | null {
  const scanner = new ArrayScanner(text.trim());
  const elements = scanner.readArray();
  return elements !== null && scanner.isAtEnd ? elements : null;
}

export function writeArrayLiteral(elements: readonly ArrayElement[]): string {
  return `{${elements.map(writeElement).join(",")}}`;
}

function writeElement(element: ArrayElement): string {
  if (element === null) return "NULL";
  if (typeof element !== "string") return writeArrayLiteral(element);
  return NEEDS_QUOTES.test(element) ? `"${element.replace(/["\\]/g, "\\$&")}"` : element;
}

class ArrayScanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#text.length;
  }

  readArray(): readonly ArrayElement[] | null {
    if (!this.#take("{")) return null;
    if (this.#take("}")) return [];
    const elements: ArrayElement[] = [];
    do {
      const element = this.#readElement();
      if (element === undefined) return null;
      elements.push(element);
    } while (this.#take(","));
    return this.#take("}") ? elements : null;
  }

  #take(character: string): boolean {
    this.#skipSpace();
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    this.#skipSpace();
    return true;
  }

  #skipSpace(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at++;
  }

  /** Returns undefined if there is no element. */
  #readElement(): ArrayElement | undefined {
    const character = this.#text[this.#at];
    if (character === "{") return this.readArray() ?? undefined;
    const pattern = character === '"' ? /"((?:[^"\\]|\\.)*)"/sy : /((?:[^{},"\\]|\\.)+)/sy;
    pattern.lastIndex = this.#at;
    const written = pattern.exec(this.#text)?.[1];
    if (written === undefined) return undefined;
    this.#at = pattern.lastIndex;
    if (character === '"') return withoutEscapes(written);
    const bare = written.trimEnd();
    if (bare === "") return undefined;
    return /^null$/i.test(bare) ? null : withoutEscapes(bare);
  }
}

function withoutEscapes(text: string): string {
  return text.replace(/\\(.)/gs, "$1");
}

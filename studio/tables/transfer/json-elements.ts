/** An element of a JSON array as unparsed text, so its numbers keep their digits. */
export type JsonElement = { readonly line: number; readonly text: string };

/** The reason why a text is no JSON array, with the line of the fault. */
export class JsonArrayError extends Error {
  readonly line: number;

  constructor(line: number) {
    super(`No JSON array in line ${line}`);
    this.name = "JsonArrayError";
    this.line = line;
  }
}

const WHITESPACE = /\s/;

/** Splits the text of a JSON array, which arrives in pieces of any length, into its elements. */
export class JsonElementReader {
  #place: "before" | "between" | "inside" | "after" = "before";
  #depth = 0;
  #isString = false;
  #isEscaped = false;
  #line = 1;
  #elementLine = 1;
  #text = "";
  #elements: JsonElement[] = [];

  /** Returns the elements that this piece completes. */
  read(piece: string): readonly JsonElement[] {
    let start = 0;
    for (let at = 0; at < piece.length; at++) {
      const character = piece[at]!;
      const wasInside = this.#place === "inside";
      if (this.#ends(character)) {
        this.#text += piece.slice(start, at);
        this.#endElement(character);
      } else if (!wasInside && this.#place === "inside") start = at;
      if (character === "\n") this.#line++;
    }
    if (this.#place === "inside") this.#text += piece.slice(start);
    return this.#take();
  }

  end(): void {
    if (this.#place !== "after") throw new JsonArrayError(this.#line);
  }

  #take(): readonly JsonElement[] {
    const elements = this.#elements;
    this.#elements = [];
    return elements;
  }

  /** True if the character ends the element before it. */
  #ends(character: string): boolean {
    if (this.#place === "inside") return this.#readInside(character);
    if (WHITESPACE.test(character) || (this.#place === "before" && character === "\uFEFF")) return false;
    if (this.#place === "before" && character === "[") this.#place = "between";
    else if (this.#place === "between" && character === "]") this.#place = "after";
    else if (this.#place === "between" && character !== ",") this.#startElement(character);
    else if (this.#place !== "between") throw new JsonArrayError(this.#line);
    return false;
  }

  #startElement(character: string): void {
    this.#place = "inside";
    this.#elementLine = this.#line;
    this.#readInside(character);
  }

  #readInside(character: string): boolean {
    if (this.#isString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (character === "\\") this.#isEscaped = true;
      else if (character === '"') this.#isString = false;
      return false;
    }
    if (this.#depth === 0 && (character === "," || character === "]")) return true;
    if (character === '"') this.#isString = true;
    else if (character === "{" || character === "[") this.#depth++;
    else if (character === "}" || character === "]") this.#depth--;
    return false;
  }

  #endElement(character: string): void {
    this.#elements.push({ line: this.#elementLine, text: this.#text.trimEnd() });
    this.#text = "";
    this.#place = character === "]" ? "after" : "between";
  }
}

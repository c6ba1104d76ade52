import type { Stepwise } from "../concurrency/stepwise.ts";
import { findStringEnd, findValueEnd, parseJsonExactly, skipWhitespace } from "./json-values.ts";

const PIECE_LENGTH = 64 * 1024;

/** JavaScript lists such keys first. */
const INTEGER_KEY = /^(?:0|[1-9]\d*)$/;

type LargeContainers = ReadonlyMap<number, number>;

/**
 * Computes `JSON.stringify(parseJsonExactly(text))` for valid JSON, in steps: numbers that JavaScript would round make
 * parsing a mebibyte take 100 ms and more. An object that is larger than a piece is written at once if JavaScript orders or
 * merges its keys.
 */
export function* normalizeJson(text: string, pieceLength = PIECE_LENGTH): Stepwise<string> {
  if (text.length <= pieceLength) return normalize(text);
  const writer = new PieceWriter(text, yield* findLargeContainers(text, pieceLength), pieceLength);
  return (yield* writer.write(skipWhitespace(text, 0))).join("");
}

function normalize(text: string): string {
  return JSON.stringify(parseJsonExactly(text));
}

/** Returns the ends of lists and objects that are longer than a piece, by their starts. */
function* findLargeContainers(text: string, pieceLength: number): Stepwise<LargeContainers> {
  const ends = new Map<number, number>();
  const open: number[] = [];
  let yieldAt = pieceLength;
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === '"') at = findStringEnd(text, at) - 1;
    else if (character === "{" || character === "[") open.push(at);
    else if (character === "}" || character === "]") {
      const start = open.pop()!;
      if (at - start > pieceLength) ends.set(start, at + 1);
    }
    if (at < yieldAt) continue;
    yield;
    yieldAt = at + pieceLength;
  }
  return ends;
}

class PieceWriter {
  readonly #text: string;
  readonly #large: LargeContainers;
  readonly #pieceLength: number;

  constructor(text: string, large: LargeContainers, pieceLength: number) {
    this.#text = text;
    this.#large = large;
    this.#pieceLength = pieceLength;
  }

  /** Writes the value that begins at `start`. */
  *write(start: number): Stepwise<string[]> {
    const end = this.#large.get(start);
    if (end === undefined) return [normalize(this.#text.slice(start))];
    const [opening, closing] = this.#text[start] === "{" ? (["{", "}"] as const) : (["[", "]"] as const);
    const keys = opening === "{" ? new Set<string>() : null;
    if (this.#text[skipWhitespace(this.#text, start + 1)] === closing) return [opening + closing];
    const written: string[] = [];
    let pieceStart = start + 1;
    const endPiece = (until: number) => {
      if (until <= pieceStart) return;
      const piece = normalize(opening + this.#text.slice(pieceStart, until) + closing);
      written.push(written.length === 0 ? opening : ",", piece.slice(1, -1));
    };
    for (let at = start + 1; at < end; at++) {
      const itemStart = at;
      let key: string | null = null;
      at = skipWhitespace(this.#text, at);
      if (keys) {
        const keyEnd = findStringEnd(this.#text, at);
        key = JSON.parse(this.#text.slice(at, keyEnd)) as string;
        if (keys.has(key) || INTEGER_KEY.test(key)) return [normalize(this.#text.slice(start, end))];
        keys.add(key);
        at = skipWhitespace(this.#text, this.#text.indexOf(":", keyEnd) + 1);
      }
      const isLarge = this.#large.has(at);
      if (isLarge) {
        endPiece(itemStart - 1);
        const value = yield* this.write(at);
        written.push(written.length === 0 ? opening : ",", key === null ? "" : `${JSON.stringify(key)}:`);
        for (const part of value) written.push(part);
        at = skipWhitespace(this.#text, this.#large.get(at)!);
        pieceStart = at + 1;
        continue;
      }
      at = findValueEnd(this.#text, at);
      if (at - pieceStart < this.#pieceLength && at < end - 1) continue;
      endPiece(at);
      pieceStart = at + 1;
      yield;
    }
    written.push(closing);
    return written;
  }
}

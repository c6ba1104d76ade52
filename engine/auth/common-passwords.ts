import { readFileSync } from "node:fs";
import { join } from "node:path";

/** More digits and signs around a word than this are a password by themselves; so are they around a shorter word. */
const MOST_AROUND = 10;
const SHORTEST_WORD = 4;
const LETTERS: Readonly<Record<string, string>> = {
  "0": "o",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
};

let words: ReadonlySet<string> | null = null;

/** Whether it is one of the passwords that are tried first: a common word however it is capitalised, written and numbered. */
export function isCommonPassword(password: string): boolean {
  // Words and patterns of the keyboard, collected by us: passwords are made of these, and seldom used bare.
  words ??= new Set(
    readFileSync(join(import.meta.dirname, "common-passwords.txt"), "utf8")
      .trim()
      .split(/\s+/),
  );
  const lower = password.normalize("NFKC").toLowerCase();
  const candidates = [lower, upTo(/^.*[\p{L}\d]/su, lower), ...stemsOf(lower)];
  return candidates.some((candidate) => words!.has(candidate) || words!.has(halfOf(candidate)));
}

/** `p@ssw0rd2024!` -> `password`; a 1 is an i or an l. */
function stemsOf(lower: string): string[] {
  const stem = upTo(/\p{L}(?:.*\p{L})?/su, lower);
  if (stem.length < SHORTEST_WORD || lower.length - stem.length > MOST_AROUND) return [];
  const plain = stem.replace(/[03457@$]/g, (sign) => LETTERS[sign]!);
  return [stem, plain.replace(/[1!]/g, "i"), plain.replace(/[1!]/g, "l")];
}

/** Sought from the end: what is sought from each sign on takes seconds of whoever sends thousands of signs. */
function upTo(pattern: RegExp, text: string): string {
  return pattern.exec(text)?.[0] ?? "";
}

/** `testtest` -> `test` */
function halfOf(word: string): string {
  const half = word.slice(0, word.length / 2);
  return half + half === word ? half : word;
}

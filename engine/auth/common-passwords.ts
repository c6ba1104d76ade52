import { readFileSync } from "node:fs";
import { join } from "node:path";

/** More digits and signs than this around a word make a password uncommon. */
const MAX_DECORATION = 10;
const MIN_WORD_LENGTH = 4;
const SUBSTITUTIONS: Readonly<Record<string, string>> = {
  "0": "o",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
};

let words: ReadonlySet<string> | null = null;

/** Whether it is a common word or pattern, with any capitalization, leetspeak and added digits or signs. */
export function isCommonPassword(password: string): boolean {
  // Words and keyboard patterns that common passwords are made of.
  words ??= new Set(
    readFileSync(join(import.meta.dirname, "common-passwords.txt"), "utf8")
      .trim()
      .split(/\s+/),
  );
  const lower = password.normalize("NFKC").toLowerCase();
  const candidates = [lower, matchOrEmpty(/^.*[\p{L}\d]/su, lower), ...stemsOf(lower)];
  return candidates.some((candidate) => words!.has(candidate) || words!.has(halfOf(candidate)));
}

/** `p@ssw0rd2024!` -> `password`; a 1 is read as i and as l. */
function stemsOf(lower: string): string[] {
  const stem = matchOrEmpty(/\p{L}(?:.*\p{L})?/su, lower);
  if (stem.length < MIN_WORD_LENGTH || lower.length - stem.length > MAX_DECORATION) return [];
  const plain = stem.replace(/[03457@$]/g, (sign) => SUBSTITUTIONS[sign]!);
  return [stem, plain.replace(/[1!]/g, "i"), plain.replace(/[1!]/g, "l")];
}

/** The patterns are greedy, so that they take linear time for input of thousands of characters. */
function matchOrEmpty(pattern: RegExp, text: string): string {
  return pattern.exec(text)?.[0] ?? "";
}

/** `testtest` -> `test` */
function halfOf(word: string): string {
  const half = word.slice(0, word.length / 2);
  return half + half === word ? half : word;
}

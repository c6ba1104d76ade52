import { MANY_ROWS } from "./many-rows.ts";

const COMPARISON = /(?<![-<>=@#&|!])[<>]=?(?![<>=@&|])|\bbetween\b/i;
const LITERAL_RANGE = /\bbetween\s+(\d+)\s+and\s+(\d+)\b/gi;

/** True if the index may lead a statement with these texts to many rows. `=` counts as a lookup of few rows. */
export function mayReadRange(texts: readonly string[], { isKey }: { readonly isKey: boolean }): boolean {
  return texts.some((text) => COMPARISON.test(isKey ? withoutShortRanges(text) : text));
}

/** Removes short literal ranges of keys, which are whole numbers: the batches of a safe form. */
function withoutShortRanges(text: string): string {
  return text.replaceAll(LITERAL_RANGE, (range, low, high) => (Number(high) - Number(low) < MANY_ROWS ? " " : range));
}

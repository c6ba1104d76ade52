import { quotedName } from "#postgres/client";

// How to read conditions as Postgres prints them.

/** Returns the characters outside quotes. */
export function* charactersOutside(text: string): Generator<{ index: number; character: string }> {
  let quote: string | null = null;
  for (let index = 0; index < text.length; index++) {
    const character = text[index]!;
    if (quote !== null) quote = character === quote ? null : quote;
    else if (character === "'" || character === '"') quote = character;
    else yield { index, character };
  }
}

/** Returns the index of the parenthesis that closes the one at this index. */
export function closingIndex(text: string, opening = 0): number {
  let depth = 0;
  for (const { index, character } of charactersOutside(text)) {
    if (index < opening) continue;
    depth += character === "(" ? 1 : character === ")" ? -1 : 0;
    if (depth === 0) return index;
  }
  return -1;
}

/** Returns the name as Postgres prints it, but for key words, which it also prints with quotes. */
export function printedName(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : quotedName(name);
}

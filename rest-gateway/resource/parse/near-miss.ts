import { near } from "../../../engine/config/near.ts";

/** ` Did you mean "status"?`, where the word is a slip of the hand away from one that is known. */
export function nearMiss(word: string, known: Iterable<string>): string {
  const meant = near(word, [...known]);
  return meant === null ? "" : ` Did you mean ${JSON.stringify(meant)}?`;
}

import { memoizeRecent } from "#runtime";

/** The characters of all texts whose results a parser remembers. A parsed text takes about a hundred times as many bytes. */
const MAX_REMEMBERED_CHARACTERS = 100_000;
const OVERHEAD_CHARACTERS = 50;

/** Returns the same parser with a cache of its most recent results, in which long texts take the place of many short ones. */
export function memoizeParser<Parsed extends NonNullable<unknown>>(
  parse: (text: string) => Parsed,
): (text: string) => Parsed {
  return memoizeRecent(MAX_REMEMBERED_CHARACTERS, parse, (text) => text.length + OVERHEAD_CHARACTERS);
}

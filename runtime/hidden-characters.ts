/** Joiners and variation selectors, which emoji and some scripts need. */
const JOINER = String.raw`\u200c|\u200d|\ufe0e|\ufe0f`;
const BEFORE_JOINER = String.raw`\p{Extended_Pictographic}|\p{Emoji_Modifier}|[#*0-9]|\p{M}|(?![\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}])\p{L}`;

/** Controls, line separators, bidirectional marks and invisible characters. */
const HIDDEN = String.raw`(?!${JOINER})[\p{Cc}\p{Zl}\p{Zp}\p{Cf}\p{DI}\u2800]|(?<!${BEFORE_JOINER})(?:${JOINER})`;

const ANY_HIDDEN = new RegExp(HIDDEN, "u");
const ALL_HIDDEN = new RegExp(HIDDEN, "gu");

/** True if a name has characters that reorder, hide or break the text of a page, so that it can look like another one. */
export function hasHiddenCharacters(text: string): boolean {
  return ANY_HIDDEN.test(text);
}

/** Replaces hidden characters in names that were stored before, or come from elsewhere. */
export function showHiddenCharacters(text: string): string {
  return text.replace(ALL_HIDDEN, "\ufffd");
}

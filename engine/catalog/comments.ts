/** `@behavior -insert`: told to GraphQL, and not to people. As there, only at the start. */
const SMART_TAGS = /^(?:@[a-z]\w*(?:[^\S\n][^\n]*)?(?:\n|$))+/i;

/** What a comment in SQL says to people; null when it says nothing to them. */
export function publicComment(comment: string | null): string | null {
  return comment?.replace(SMART_TAGS, "") || null;
}

/** Whether the lines for GraphQL at the comment's beginning have that one: `@notNull`. */
export function hasSmartTag(comment: string | null, tag: string): boolean {
  const lines = SMART_TAGS.exec(comment ?? "")?.[0] ?? "";
  return lines.split("\n").some((line) => line.split(/\s/, 1)[0] === `@${tag}`);
}

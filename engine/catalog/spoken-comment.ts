/** `@behavior -insert`: told to GraphQL, and not to people. As there, only at the start. */
const SMART_TAGS = /^(?:@[a-z]\w*(?:[^\S\n][^\n]*)?(?:\n|$))+/i;

/** What a comment in SQL says to people; null when it says nothing to them. */
export function spokenComment(comment: string | null): string | null {
  return comment?.replace(SMART_TAGS, "") || null;
}

export type Comment = {
  readonly text: string | undefined;
  /** Its first line, and what follows that. */
  readonly summary: string | undefined;
  readonly description: string | undefined;
};

/** `@behavior -insert`: told to GraphQL, and not to people. As there, only at the start. */
const SMART_TAGS = /^(?:@[a-z]\w*(?:[^\S\n][^\n]*)?(?:\n|$))+/i;

export function readComment(comment: string | null): Comment {
  const text = comment?.replace(SMART_TAGS, "") ?? "";
  const end = text.indexOf("\n");
  return {
    text: text || undefined,
    summary: (end < 0 ? text : text.slice(0, end)) || undefined,
    description: (end < 0 ? "" : text.slice(end).replace(/^\n+/, "")) || undefined,
  };
}

/** Smart tags of PostGraphile, such as `@behavior -insert`, at the start of a comment. */
const SMART_TAGS = /^(?:@[a-z]\w*(?:[^\S\n][^\n]*)?(?:\n|$))+/i;

/** The comment without smart tags; null if nothing remains. */
export function publicComment(comment: string | null): string | null {
  return comment?.replace(SMART_TAGS, "") || null;
}

/** Whether the comment has the smart tag, such as `@notNull`. */
export function hasSmartTag(comment: string | null, tag: string): boolean {
  const lines = SMART_TAGS.exec(comment ?? "")?.[0] ?? "";
  return lines.split("\n").some((line) => line.split(/\s/, 1)[0] === `@${tag}`);
}

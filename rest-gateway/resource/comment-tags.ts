import { memoized } from "../../engine/memoized.ts";

/** What the lines at the beginning of a comment that begin with `@` say, by their first word. */
type CommentTags = ReadonlyMap<string, readonly string[]>;

const LINE = /^@(?<name>[a-z]\w*)(?:[^\S\n]+(?<value>[^\n]*))?$/i;

const readTags = memoized((comment: string): CommentTags => {
  const tags = new Map<string, string[]>();
  for (const line of comment.split("\n")) {
    const { name, value = "" } = LINE.exec(line)?.groups ?? {};
    if (name === undefined) break;
    tags.set(name, [...(tags.get(name) ?? []), value.trim()]);
  }
  return tags;
});

/** `@root user` on its first line gives `root` -> `["user"]`. */
export function commentTags(comment: string | null): CommentTags {
  return readTags(comment?.startsWith("@") ? comment : "");
}

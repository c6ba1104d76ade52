import { memoize } from "../../engine/cache/memoize.ts";

const TAG_LINE = /^@(?<name>[a-z]\w*)(?:[^\S\n]+(?<value>[^\n]*))?$/i;

const readTags = memoize((comment: string): CommentTags => {
  const tags = new Map<string, string[]>();
  for (const line of comment.split("\n")) {
    const { name, value = "" } = TAG_LINE.exec(line)?.groups ?? {};
    if (name === undefined) break;
    tags.set(name, [...(tags.get(name) ?? []), value.trim()]);
  }
  return tags;
});

/** How a version derives field names from column names. */
export type FieldNaming = (sqlName: string) => string;

/** Version 1 keeps column names, later versions use camelCase. */
export function fieldNamingOf(version: number): FieldNaming {
  return version === 1 ? keepSqlName : toCamelCase;
}

/** `order_lines` and `"Order Lines"` become `order-lines`. A name in this form stays as it is. */
export function toAddressName(sqlName: string): string {
  // Lower case first: some letters become two characters, one of which is not a letter.
  return sqlName.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-");
}

function keepSqlName(name: string): string {
  return name;
}

/** `created_at` becomes `createdAt`; leading underscores stay. */
function toCamelCase(name: string): string {
  return name.replace(/(?<=[a-zA-Z0-9])_+([a-zA-Z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The first name that is not taken; if all are, the first one with a number. */
export function chooseFreeName(
  candidates: readonly [string, ...string[]],
  isTaken: (name: string) => boolean,
  numbered: (name: string, number: number) => string,
): string {
  const free = candidates.find((name) => !isTaken(name));
  if (free !== undefined) return free;
  let number = 2;
  while (isTaken(numbered(candidates[0], number))) number++;
  return numbered(candidates[0], number);
}

/** The leading lines of a comment that begin with `@`, by their first word. */
type CommentTags = ReadonlyMap<string, readonly string[]>;

/** `@root user` in the first line gives `root` -> `["user"]`. */
export function commentTags(comment: string | null): CommentTags {
  return readTags(comment?.startsWith("@") ? comment : "");
}

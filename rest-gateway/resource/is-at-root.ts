import type { Table } from "../../engine/catalog/tables.ts";
import { commentTags } from "./comment-tags.ts";

/** `@root user`: served at `/<name>` by the rules of the user resource; the word names a row in its code, USER_NOT_FOUND. */
export function isAtRoot({ comment }: Pick<Table, "comment">): boolean {
  return commentTags(comment).has("root");
}

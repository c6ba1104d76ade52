import { spokenComment } from "../../engine/catalog/spoken-comment.ts";

export type Comment = {
  readonly text: string | undefined;
  /** Its first line, and what follows that. */
  readonly summary: string | undefined;
  readonly description: string | undefined;
};

export function readComment(comment: string | null): Comment {
  const text = spokenComment(comment) ?? "";
  const end = text.indexOf("\n");
  return {
    text: text || undefined,
    summary: (end < 0 ? text : text.slice(0, end)) || undefined,
    description: (end < 0 ? "" : text.slice(end).replace(/^\n+/, "")) || undefined,
  };
}

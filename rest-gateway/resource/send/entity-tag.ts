import { hash } from "node:crypto";

/** What Postgres computes of a row as well, to compare it with when something is written. */
export function digestOf(text: string): string {
  return hash("sha256", text, "hex");
}

/** Strong: of the row, and of the whole body where that shows more than the row. */
export function entityTag(row: string, body: string): string {
  return row === body ? `"${digestOf(row)}"` : `"${digestOf(row)}.${digestOf(body)}"`;
}

/** `If-None-Match`: any of the tags, weak ones included, for a GET asks for nothing more. */
export function matches(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === "*" || [...header.matchAll(/(?:W\/)?("[^"]*")/g)].some(([, known]) => known === tag);
}

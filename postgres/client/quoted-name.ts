import pg from "pg";

/** A quoted SQL identifier: `"name"`, or `"schema"."name"`. */
export function quotedName(...parts: readonly string[]): string {
  return parts.map(pg.escapeIdentifier).join(".");
}

import pg from "pg";

/** As SQL reads it, whatever is in it: `"name"`, or `"schema"."name"`. */
export function quotedName(...parts: readonly string[]): string {
  return parts.map(pg.escapeIdentifier).join(".");
}

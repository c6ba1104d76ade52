import pg from "pg";

/** A quoted SQL identifier: `"name"`, or `"schema"."name"`. */
export function quotedName(...parts: readonly string[]): string {
  return parts.map(pg.escapeIdentifier).join(".");
}

/** Settings whose values are lists of names, which are stored with quotes where necessary: SET takes each name by itself. */
export const LISTS_OF_NAMES: ReadonlySet<string> = new Set([
  "search_path",
  "temp_tablespaces",
  "local_preload_libraries",
  "session_preload_libraries",
  "shared_preload_libraries",
]);

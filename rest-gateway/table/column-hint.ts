import type { Catalog } from "../../engine/catalog/catalog.ts";

const HINT = /^Perhaps you meant to reference the column "[^"]+\.[^"]+"(?: or the column "[^"]+\.[^"]+")?\.$/;
const COLUMN = /"(?<alias>[^"]+)\.(?<column>[^".]+)"/g;
/** Rows within others of the same table are called so. */
const SUFFIX = /_\d+$/;

/**
 * What Postgres suggests in place of a column that does not exist; null where the role may not know of it. Postgres looks at all columns, and
 * in other languages than English it cannot be seen which one it has found.
 */
export function columnHint(hint: string | null, catalog: Catalog, role: string): string | null {
  if (hint === null || !HINT.test(hint)) return null;
  const named = [...hint.matchAll(COLUMN)].map(({ groups }) => groups as { alias: string; column: string });
  return named.every(({ alias, column }) => isVisible(alias, column, catalog, role)) ? hint : null;
}

function isVisible(alias: string, column: string, catalog: Catalog, role: string): boolean {
  const names = [alias, alias.replace(SUFFIX, "")];
  const tables = [...catalog.schemas.values()]
    .filter(({ exposed }) => exposed)
    .flatMap(({ tables }) => names.flatMap((name) => tables.get(name) ?? []))
    .filter(({ columns }) => columns.has(column));
  return tables.length > 0 && tables.every((table) => catalog.mayRole(role, "select", table, column));
}

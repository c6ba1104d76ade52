import { hasAnyColumnPrivilege } from "./access.ts";
import type { Catalog } from "./catalog.ts";
import type { Routine } from "./routines.ts";
import type { CatalogTable } from "./tables.ts";

const COLUMN_PRIVILEGES = ["select", "insert", "update"] as const;
const TABLE_PRIVILEGES = [...COLUMN_PRIVILEGES, "delete"] as const;

/** True if an error may name the table to the role: only if the role has a privilege on it. */
export function mayNameTable(catalog: Catalog, role: string, table: CatalogTable): boolean {
  if (!mayUseSchema(catalog, role, table.schema)) return false;
  return TABLE_PRIVILEGES.some((privilege) => hasAnyColumnPrivilege(catalog, role, privilege, table));
}

/** True if an error may name the column to the role: only if the role has a privilege on it. */
export function mayNameColumn(catalog: Catalog, role: string, table: CatalogTable, column: string): boolean {
  return COLUMN_PRIVILEGES.some((privilege) => catalog.hasPrivilege(role, privilege, table, column));
}

/** True if an error may name the function to the role: only if the role may call it. */
export function mayCallRoutine(catalog: Catalog, role: string, routine: Routine): boolean {
  return mayUseSchema(catalog, role, routine.schema) && catalog.hasPrivilege(role, "execute", routine);
}

function mayUseSchema(catalog: Catalog, role: string, name: string): boolean {
  const schema = catalog.schemas.get(name);
  return schema !== undefined && catalog.hasPrivilege(role, "usage", schema);
}

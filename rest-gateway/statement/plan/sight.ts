import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Routine } from "../../../engine/catalog/routines.ts";
import type { Table } from "../../../engine/catalog/tables.ts";

const PRIVILEGES = ["select", "insert", "update", "delete"] as const;

/** Whether a refusal may name the table to the role: only if the role can do something with it. */
export function maySee(catalog: Catalog, role: string, table: Table): boolean {
  if (!mayUse(catalog, role, table.schema)) return false;
  return PRIVILEGES.some(
    (privilege) =>
      catalog.mayRole(role, privilege, table) ||
      (privilege !== "delete" &&
        [...table.columns.keys()].some((column) => catalog.mayRole(role, privilege, table, column))),
  );
}

export function mayCall(catalog: Catalog, role: string, routine: Routine): boolean {
  return mayUse(catalog, role, routine.schema) && catalog.mayRole(role, "execute", routine);
}

function mayUse(catalog: Catalog, role: string, name: string): boolean {
  const schema = catalog.schemas.get(name);
  return schema !== undefined && catalog.mayRole(role, "usage", schema);
}

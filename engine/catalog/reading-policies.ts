import type { Catalog } from "./catalog.ts";
import type { Policy } from "./policies.ts";
import type { Table } from "./tables.ts";

/** The policies that say which rows can be read. */
export function readingPolicies({ policies }: Table): readonly Policy[] {
  return policies.filter(({ command }) => command === "all" || command === "select");
}

/** Those that say it to the role; null where the role reads whatever they say. */
export function readingPoliciesFor(catalog: Catalog, table: Table, role: string): readonly Policy[] | null {
  if (!isBound(catalog, table, role)) return null;
  return readingPolicies(table).filter(({ roles }) =>
    roles.some((name) => name === "public" || catalog.hasRole(role, name)),
  );
}

function isBound(catalog: Catalog, { rowSecurity, owner }: Table, name: string): boolean {
  const role = catalog.roles.get(name);
  if (rowSecurity === "off" || role?.superuser || role?.bypassesRowSecurity) return false;
  return rowSecurity === "forced" || !catalog.hasRole(name, owner);
}

import type { Catalog } from "./catalog.ts";
import type { Policy } from "./policies.ts";
import type { Table } from "./tables.ts";

type Command = Exclude<Policy["command"], "all">;

/** The policies that say which rows can be read. */
export function readingPolicies(table: Table): readonly Policy[] {
  return policiesOn(table, "select");
}

/** The policies that apply to the role for the command; null where no policy binds the role. */
export function applicablePolicies(
  catalog: Catalog,
  table: Table,
  role: string,
  command: Command,
): readonly Policy[] | null {
  if (!isBound(catalog, table, role)) return null;
  return policiesOn(table, command).filter(({ roles }) =>
    roles.some((name) => name === "public" || catalog.hasRole(role, name)),
  );
}

function policiesOn({ policies }: Table, command: Command): readonly Policy[] {
  return policies.filter((policy) => policy.command === "all" || policy.command === command);
}

function isBound(catalog: Catalog, { rowSecurity, owner }: Table, name: string): boolean {
  const role = catalog.roles.get(name);
  if (rowSecurity === "off" || role?.superuser || role?.bypassesRowSecurity) return false;
  return rowSecurity === "forced" || !catalog.hasRole(name, owner);
}

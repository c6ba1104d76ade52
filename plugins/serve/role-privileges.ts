import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Routine } from "../../engine/catalog/routines.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import { memoized } from "../../engine/memoized.ts";
import { oncePer } from "../../engine/once-per.ts";
import type { RolePrivileges, TablePrivilege } from "../visibility.ts";

/** What the catalogue says that at least one of these roles may do. */
export function privilegesOf(catalog: Catalog, roles: readonly string[]): RolePrivileges {
  const rolesWithin = memoized((schemaName: string): readonly string[] => {
    const schema = catalog.schemas.get(schemaName);
    return schema ? roles.filter((role) => catalog.mayRole(role, "usage", schema)) : [];
  });
  const mayOn = (privilege: TablePrivilege, table: Table, column?: string) =>
    rolesWithin(table.schema).some((role) => catalog.mayRole(role, privilege, table, column));
  return {
    may(privilege, { schemaName, name }, column) {
      const table = catalog.findTable({ schema: schemaName, name });
      if (!table) return false;
      if (column !== undefined) return mayOn(privilege, table, column);
      return mayOn(privilege, table) || table.columns.keys().some((any) => mayOn(privilege, table, any));
    },
    mayExecute(oid) {
      const routine = routinesOf(catalog).get(oid);
      if (!routine) return false;
      return rolesWithin(routine.schema).some((role) => catalog.mayRole(role, "execute", routine));
    },
  };
}

const routinesOf = oncePer(({ schemas }: Catalog): ReadonlyMap<string, Routine> => {
  const routines = [...schemas.values()].flatMap((schema) => [...schema.routines.values()].flat());
  return new Map(routines.map((routine) => [String(routine.oid), routine]));
});

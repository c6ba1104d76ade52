import { quotedName } from "#postgres/client";
import { hasAnyColumnPrivilege } from "./access.ts";
import type { Catalog } from "./catalog.ts";
import type { TablePrivilege } from "./privileges.ts";
import type { CatalogTable } from "./tables.ts";

/** The message of Postgres, such as `permission denied for materialized view sales`. */
const PERMISSION_DENIED =
  /^permission denied for (?<kind>table|view|materialized view|foreign table|schema|function) (?<name>.+)$/;

export type RefusedCommand = {
  readonly role: string;
  /** The privileges on its table that the command needs; the first missing one is reported. */
  readonly verbs: readonly TablePrivilege[];
};

/** Returns the missing grants that made Postgres refuse the role, as SQL. The error names no schema, so there may be several. */
export function findMissingGrants(message: string, { role, verbs }: RefusedCommand, catalog: Catalog): string[] {
  const { kind, name } = PERMISSION_DENIED.exec(message)?.groups ?? {};
  if (kind === undefined || name === undefined) return [];
  const to = `to ${quotedName(role)};`;
  const schemas = [...catalog.schemas.values()];
  switch (kind) {
    case "schema":
      return [`grant usage on schema ${quotedName(name)} ${to}`];
    case "function":
      return schemas
        .flatMap(({ routines }) => routines.get(name) ?? [])
        .filter((routine) => !catalog.hasPrivilege(role, "execute", routine))
        .map(({ schema, arguments: all }) => {
          return `grant execute on function ${quotedName(schema, name)}(${all.map(({ type }) => type.sqlName).join(", ")}) ${to}`;
        });
    default:
      return schemas
        .flatMap(({ tables }) => tables.get(name) ?? [])
        .flatMap((table) => {
          const privilege = findMissingPrivilege(table, { role, verbs }, catalog);
          return privilege === null ? [] : [`grant ${privilege} on ${quotedName(table.schema, name)} ${to}`];
        });
  }
}

/** Returns null if the role has all privileges. */
function findMissingPrivilege(table: CatalogTable, { role, verbs }: RefusedCommand, catalog: Catalog): string | null {
  const missing = verbs.find((verb) => verb !== "select" && !hasAnyColumnPrivilege(catalog, role, verb, table));
  if (missing !== undefined) return missing;
  const unreadable = [...table.columns.keys()].filter((column) => !catalog.hasPrivilege(role, "select", table, column));
  if (unreadable.length === 0) return null;
  const isWholeTable = unreadable.length === table.columns.size;
  return isWholeTable ? "select" : `select (${unreadable.map((column) => quotedName(column)).join(", ")})`;
}

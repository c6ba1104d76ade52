import { quotedName } from "#postgres/client";
import { hasAnyColumnPrivilege } from "./access.ts";
import type { Catalog } from "./catalog.ts";
import type { TablePrivilege } from "./privileges.ts";
import type { CatalogTable } from "./tables.ts";

/** `permission denied for materialized view sales` */
const PERMISSION_DENIED =
  /^permission denied for (?<kind>table|view|materialized view|foreign table|schema|function) (?<name>.+)$/;

export type RefusedCommand = {
  readonly role: string;
  /** What the command needs of its table, the first that is missing is named. */
  readonly verbs: readonly TablePrivilege[];
};

/** The grants without which Postgres refused the role, as SQL; the refusal names no schema, so there may be several. */
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

/** Null: the role has all of them. */
function findMissingPrivilege(table: CatalogTable, { role, verbs }: RefusedCommand, catalog: Catalog): string | null {
  const missing = verbs.find((verb) => verb !== "select" && !hasAnyColumnPrivilege(catalog, role, verb, table));
  if (missing !== undefined) return missing;
  const unreadable = [...table.columns.keys()].filter((column) => !catalog.hasPrivilege(role, "select", table, column));
  if (unreadable.length === 0) return null;
  const isWholeTable = unreadable.length === table.columns.size;
  return isWholeTable ? "select" : `select (${unreadable.map((column) => quotedName(column)).join(", ")})`;
}

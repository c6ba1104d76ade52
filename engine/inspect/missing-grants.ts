import type { Catalog } from "../catalog/catalog.ts";
import type { Table } from "../catalog/tables.ts";
import { quotedName } from "../quoted-name.ts";

/** `permission denied for materialized view sales` */
const DENIED =
  /^permission denied for (?<kind>table|view|materialized view|foreign table|schema|function) (?<name>.+)$/;

/** The grants without which Postgres refused the role, as SQL; the refusal names no schema, so there may be several. */
export function missingGrants(message: string, role: string, catalog: Catalog): string[] {
  const { kind, name } = DENIED.exec(message)?.groups ?? {};
  if (kind === undefined || name === undefined) return [];
  const to = `to ${quotedName(role)};`;
  const schemas = [...catalog.schemas.values()];
  switch (kind) {
    case "schema":
      return [`grant usage on schema ${quotedName(name)} ${to}`];
    case "function":
      return schemas
        .flatMap(({ routines }) => routines.get(name) ?? [])
        .filter((routine) => !catalog.mayRole(role, "execute", routine))
        .map(({ schema, arguments: all }) => {
          return `grant execute on function ${quotedName(schema, name)}(${all.map(({ type }) => type.sqlName).join(", ")}) ${to}`;
        });
    default:
      return schemas
        .flatMap(({ tables }) => tables.get(name) ?? [])
        .flatMap((table) => {
          const what = closedPart(table, role, catalog);
          return what === null ? [] : [`grant ${what} on ${quotedName(table.schema, name)} ${to}`];
        });
  }
}

/** Null: the role may read all of it. */
function closedPart(table: Table, role: string, catalog: Catalog): string | null {
  const closed = [...table.columns.keys()].filter((column) => !catalog.mayRole(role, "select", table, column));
  if (closed.length === 0) return null;
  const isWhole = closed.length === table.columns.size;
  return isWhole ? "select" : `select (${closed.map((column) => quotedName(column)).join(", ")})`;
}

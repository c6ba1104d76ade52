import { quotedName } from "#postgres/client";
import { hasAnyColumnPrivilege } from "./access.ts";
import type { Catalog } from "./catalog.ts";
import type { TablePrivilege } from "./privileges.ts";
import type { CatalogTable } from "./tables.ts";

/** The message of Postgres, such as `permission denied for materialized view sales`. */
const PERMISSION_DENIED =
  /^permission denied for (?<kind>table|view|materialized view|foreign table|schema|function) (?<name>.+)$/;

type RefusedCommand = {
  readonly role: string;
  /** The privileges on its table that the command needs; the first missing one is reported. */
  readonly verbs: readonly TablePrivilege[];
  /** The columns that the command writes. */
  readonly written?: { readonly schema: string; readonly table: string; readonly columns: readonly string[] };
};

export type MissingGrant = {
  readonly sql: string;
  /** The written columns that the privileges of the role do not include, if they include others. */
  readonly refusedColumns: readonly string[];
};

/** Returns the missing grants that made Postgres refuse the role. The error names no schema, so there may be several. */
export function findMissingGrants(message: string, command: RefusedCommand, catalog: Catalog): MissingGrant[] {
  const { role } = command;
  const { kind, name } = PERMISSION_DENIED.exec(message)?.groups ?? {};
  if (kind === undefined || name === undefined) return [];
  const to = `to ${quotedName(role)};`;
  const schemas = [...catalog.schemas.values()];
  switch (kind) {
    case "schema":
      return [{ sql: `grant usage on schema ${quotedName(name)} ${to}`, refusedColumns: [] }];
    case "function":
      return schemas
        .flatMap(({ routines }) => routines.get(name) ?? [])
        .filter((routine) => !catalog.hasPrivilege(role, "execute", routine))
        .map(({ schema, arguments: all }) => {
          const signature = `${quotedName(schema, name)}(${all.map(({ type }) => type.sqlName).join(", ")})`;
          return { sql: `grant execute on function ${signature} ${to}`, refusedColumns: [] };
        });
    default:
      return schemas
        .flatMap(({ tables }) => tables.get(name) ?? [])
        .flatMap((table) => {
          const missing = findMissingPrivilege(table, command, catalog);
          if (missing === null) return [];
          const { privilege, refusedColumns } = missing;
          return [{ sql: `grant ${privilege} on ${quotedName(table.schema, name)} ${to}`, refusedColumns }];
        });
  }
}

type MissingPrivilege = { readonly privilege: string; readonly refusedColumns: readonly string[] };

/** Returns null if the role has all privileges. */
function findMissingPrivilege(table: CatalogTable, command: RefusedCommand, catalog: Catalog): MissingPrivilege | null {
  const { role, verbs } = command;
  const lacking = (verb: TablePrivilege, columns: readonly string[]) =>
    columns.filter((column) => !catalog.hasPrivilege(role, verb, table, column));
  const writtenColumns = writtenColumnsOf(table, command);
  for (const verb of verbs.filter((verb) => verb !== "select")) {
    if (!hasAnyColumnPrivilege(catalog, role, verb, table)) return { privilege: verb, refusedColumns: [] };
    const refusedColumns = verb === "delete" ? [] : lacking(verb, writtenColumns);
    if (refusedColumns.length > 0) return { privilege: `${verb} (${columnList(refusedColumns)})`, refusedColumns };
  }
  const unreadable = lacking("select", [...table.columns.keys()]);
  if (unreadable.length === 0) return null;
  const isWholeTable = unreadable.length === table.columns.size;
  return { privilege: isWholeTable ? "select" : `select (${columnList(unreadable)})`, refusedColumns: [] };
}

function writtenColumnsOf(table: CatalogTable, { written }: RefusedCommand): string[] {
  const isWritten = written !== undefined && written.schema === table.schema && written.table === table.name;
  return isWritten ? written.columns.filter((column) => table.columns.has(column)) : [];
}

function columnList(columns: readonly string[]): string {
  return columns.map((column) => quotedName(column)).join(", ");
}

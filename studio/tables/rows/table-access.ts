import {
  type DatabaseDescription,
  type DescribedColumn,
  type DescribedTable,
  hasPrivilege,
  hasPrivilegeOnAny,
  hasUsage,
} from "../../api/catalog.ts";
import { identifier, identifierOf, identifierOfRole } from "../../sql-text.ts";
import { filterKind } from "./filters.ts";

/** The reason why a role cannot read a table's rows. */
type TableObstacle = "not exposed" | "no privilege";

/** The system column that identifies a row of a table until the row changes. */
const ROW_ADDRESS = "ctid";

export function findObstacle(catalog: DatabaseDescription, role: string, table: DescribedTable): TableObstacle | null {
  if (!table.exposed) return "not exposed";
  return hasPrivilegeOnAny(catalog, role, "select", table) ? null : "no privilege";
}

export function readableColumns(catalog: DatabaseDescription, role: string, table: DescribedTable): DescribedColumn[] {
  return table.columns.filter(({ name }) => hasPrivilege(catalog, role, "select", table, name));
}

/**
 * The columns that distinguish the rows of a table: the primary key, a unique key that is never null, or the row's storage address.
 * Empty if there is none, as for views.
 */
export function findRowKey(catalog: DatabaseDescription, role: string, table: DescribedTable): readonly string[] {
  const columns = new Map(readableColumns(catalog, role, table).map((column) => [column.name, column]));
  const isKey = (names: readonly (string | null)[]): names is readonly string[] =>
    names.length > 0 && names.every((name) => name !== null && columns.get(name)?.nullable === false);
  if (isKey(table.primary_key)) return table.primary_key;
  const unique = table.indexes.find(
    ({ unique, valid, predicate, columns: names }) => unique && valid && predicate === null && isKey(names),
  );
  if (unique) return unique.columns as readonly string[];
  const isStored = table.kind === "table" || table.kind === "materialized view";
  return isStored && hasPrivilege(catalog, role, "select", table) ? [ROW_ADDRESS] : [];
}

/** Types that Postgres cannot order. */
const UNORDERED = /^(json|xml|point|line|lseg|box|path|polygon|circle|aclitem)(\[\])?$/;

export function isSortable({ base_type: type }: DescribedColumn): boolean {
  return !UNORDERED.test(type);
}

export function isNumeric(column: DescribedColumn): boolean {
  return filterKind(column) === "number";
}

/** The privilege that a request needs on a table; for all columns if it names none. */
export type NeededPrivilege = {
  readonly privilege: "select" | "insert" | "update" | "delete";
  readonly columns?: readonly string[];
};

/** Returns the statements that grant the missing privilege to the role. */
export function grantStatements(
  catalog: DatabaseDescription,
  role: string,
  table: DescribedTable,
  { privilege, columns }: NeededPrivilege,
): string {
  const to = identifierOfRole(role);
  const list = columns ? ` (${columns.map(identifier).join(", ")})` : "";
  return [
    ...(hasUsage(catalog, role, table.schema) ? [] : [`grant usage on schema ${identifier(table.schema)} to ${to};`]),
    `grant ${privilege}${list} on ${identifierOf(table)} to ${to};`,
  ].join("\n");
}

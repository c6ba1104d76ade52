import type {
  DatabaseDescription,
  DescribedGrant,
  DescribedName,
  DescribedTable,
} from "../../catalog/database-description.ts";

export type {
  DatabaseDescription,
  DescribedArgument,
  DescribedColumn,
  DescribedConstraint,
  DescribedDependent,
  DescribedExtension,
  DescribedForeignKey,
  DescribedFunction,
  DescribedGrant,
  DescribedIndex,
  DescribedName,
  DescribedPolicy,
  DescribedPublication,
  DescribedRole,
  DescribedSchema,
  DescribedSequence,
  DescribedTable,
  DescribedTrigger,
  DescribedType,
} from "../../catalog/database-description.ts";

/** The parts of `GET /admin/v1/catalog` with the privileges of a role. */
type Privileges = Pick<DatabaseDescription, "roles" | "schemas">;

export function findTable(
  { tables }: Pick<DatabaseDescription, "tables">,
  name: DescribedName,
): DescribedTable | undefined {
  return tables.find((table) => isSameName(table, name));
}

export function isSameName(one: DescribedName, other: DescribedName): boolean {
  return one.name === other.name && one.schema === other.schema;
}

/** `users`, or `auth.users` outside schema public. */
export function shortName({ schema, name }: DescribedName): string {
  return schema === "public" ? name : `${schema}.${name}`;
}

/** The comment without the smart tags at its start, such as `@name films`; null if nothing is left. */
export function readableComment(comment: string | null): string | null {
  return comment?.replace(/^(?:@[a-z]\w*(?:[^\S\n][^\n]*)?(?:\n|$))+/i, "").trim() || null;
}

/** Returns a key for maps and lists. */
export function nameKey({ schema, name }: DescribedName): string {
  return JSON.stringify([schema, name]);
}

/** The foreign keys that refer to the table, with the tables that have them. */
export function referencesTo({ tables }: Pick<DatabaseDescription, "tables">, name: DescribedName) {
  return tables.flatMap((table) =>
    table.foreign_keys.filter(({ target }) => isSameName(target, name)).map((key) => ({ table, key })),
  );
}

/** Works like `has_table_privilege`, or `has_column_privilege` for a column; includes `usage` of the schema. */
export function hasPrivilege(
  catalog: Privileges,
  role: string,
  privilege: string,
  table: Pick<DescribedTable, "schema" | "grants" | "columns">,
  column?: string,
): boolean {
  const found = catalog.roles.find(({ name }) => name === role);
  if (!found) return false;
  if (found.superuser) return true;
  if (!hasUsage(catalog, role, table.schema)) return false;
  if (isGranted(table.grants, found.inherits, privilege) || hasPredefinedRole(found.inherits, privilege)) return true;
  const grants = table.columns.find(({ name }) => name === column)?.grants ?? [];
  return isGranted(grants, found.inherits, privilege);
}

function isGranted(grants: readonly DescribedGrant[], inherits: readonly string[], wanted: string): boolean {
  return grants.some(
    ({ role, privileges }) => (role === "public" || inherits.includes(role)) && privileges.includes(wanted),
  );
}

/** True if the role may use the schema. */
export function hasUsage(catalog: Privileges, role: string, schema: string): boolean {
  const found = catalog.roles.find(({ name }) => name === role);
  if (!found) return false;
  if (found.superuser || hasPredefinedRole(found.inherits, "usage")) return true;
  const grants = catalog.schemas.find(({ name }) => name === schema)?.grants ?? [];
  return isGranted(grants, found.inherits, "usage");
}

/** True if the role may use the command on at least one column. */
export function hasPrivilegeOnAny(
  catalog: Privileges,
  role: string,
  privilege: string,
  table: Pick<DescribedTable, "schema" | "grants" | "columns">,
): boolean {
  if (hasPrivilege(catalog, role, privilege, table)) return true;
  return table.columns.some(({ name }) => hasPrivilege(catalog, role, privilege, table, name));
}

const PREDEFINED_ROLES: Readonly<Record<string, readonly string[]>> = {
  usage: ["pg_read_all_data", "pg_write_all_data"],
  select: ["pg_read_all_data"],
  insert: ["pg_write_all_data"],
  update: ["pg_write_all_data"],
  delete: ["pg_write_all_data"],
};

function hasPredefinedRole(inherits: readonly string[], privilege: string): boolean {
  return (PREDEFINED_ROLES[privilege] ?? []).some((role) => inherits.includes(role));
}

/** The roles that tokens may name: neither the login of requests nor roles of Postgres itself. */
export function requestRoles({ roles }: Pick<DatabaseDescription, "roles">): readonly string[] {
  return roles
    .filter(({ settable, login, name }) => settable && !login && !name.startsWith("pg_"))
    .map(({ name }) => name);
}

const NATURAL_ORDER = new Intl.Collator("en", { numeric: true });

/** Sorts names so that lists show t2 before t10. */
export function inNaturalOrder(catalog: DatabaseDescription): DatabaseDescription {
  const compare = (one: DescribedName, other: DescribedName) =>
    NATURAL_ORDER.compare(one.schema, other.schema) || NATURAL_ORDER.compare(one.name, other.name);
  const { tables, functions, types } = catalog;
  return {
    ...catalog,
    tables: tables.toSorted(compare),
    functions: functions.toSorted(compare),
    types: types.toSorted(compare),
  };
}

import { entityPermissions, type Introspection, type PgClass } from "graphile-build-pg/pg-introspection";
import { type OmittedObject, quoteSqlName } from "./omitted-objects.ts";

/** Tables that clients may use and for which GraphQL has no type. */
export function findTablesWithoutColumns(introspection: Introspection, schemas: readonly string[]): OmittedObject[] {
  const found = introspection.classes.filter((table) => isUsableWithoutColumns(table, introspection, schemas));
  return found.map(toOmittedTable);
}

function isUsableWithoutColumns(table: PgClass, introspection: Introspection, schemas: readonly string[]): boolean {
  if (!/[rvmfp]/.test(table.relkind) || table.relispartition) return false;
  if (!schemas.includes(table.getNamespace()?.nspname ?? "")) return false;
  if (table.getAttributes().some(({ attnum, attisdropped }) => attnum > 0 && !attisdropped)) return false;
  const caller = introspection.getCurrentUser()!;
  const { select, insert, delete: remove } = entityPermissions(introspection, table, caller, true);
  return Boolean(select || insert || remove);
}

function toOmittedTable(table: PgClass): OmittedObject {
  const schema = table.getNamespace()!.nspname;
  const name = quoteSqlName(schema, table.relname);
  return {
    object: `table ${name}`,
    reason: "it has no columns, and a type of GraphQL has at least one field",
    fix: `-- Add a column to ${name}, or revoke the privileges on it.`,
    isBuildFault: true,
    holder: { kind: "table", schema, name: table.relname },
  };
}

import type { Catalog } from "./catalog.ts";
import { baseTypeOf, type DataType } from "./data-types.ts";

/** True if values of this type must use functions and operators of Postgres itself, independently of the search path. */
export function isBuiltInType(type: DataType | null): boolean {
  const base = type && baseTypeOf(type);
  return (
    base?.schema === "pg_catalog" || base?.kind === "enum" || base?.kind === "range" || base?.kind === "multirange"
  );
}

/**
 * True if a type has no operators of its own, only those of text, inet, anyarray, anyenum, anyrange or record: Postgres
 * would prefer an operator on the search path whose operands are of the type itself.
 */
function isComparedAsAnother(type: DataType): boolean {
  if (type.kind === "array") return isBuiltInType(type.element) && type.element.name !== "json";
  if (["enum", "range", "multirange", "composite"].includes(type.kind)) return true;
  return type.schema === "pg_catalog" && (type.name === "varchar" || type.name === "cidr");
}

/** Returns the schema of the operators that compare rows of these types, which all have one name; null for those on the search path. */
export function operatorSchemaOfRows(types: readonly (DataType | null)[]): string | null {
  const bases = types.map((type) => type && baseTypeOf(type));
  const areOfPostgres = bases.every((base) => base && (isComparedAsAnother(base) || base.schema === "pg_catalog"));
  return areOfPostgres && bases.some((base) => isComparedAsAnother(base!)) ? "pg_catalog" : null;
}

/** Returns the schema of the type's `=` and `<>`, so that they need not be on the search path. */
export function operatorSchemaOf(
  type: DataType | null | undefined,
  { catalog, role }: { readonly catalog: Catalog; readonly role: string },
): string | null {
  const base = type && baseTypeOf(type);
  if (base && isComparedAsAnother(base)) return "pg_catalog";
  const schema = base?.kind === "base" ? base.operatorSchema : null;
  // If the role has no USAGE on the schema, Postgres rejects the qualified name; unqualified, it compares the values as their base types.
  return schema && catalog.hasPrivilege(role, "usage", schema) ? schema.name : null;
}

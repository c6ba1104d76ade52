import { baseTypeOf, type Catalog, type DataType } from "#catalog";
import type { ComparisonName, FieldReference } from "../intent/intent.ts";
import { isBuiltInType, isPlainText, type SelectScope, typeOfField } from "./scope.ts";

/**
 * Whether a type has no operators of its own, but those of text, inet, anyarray, anyenum, anyrange or record: Postgres would prefer any on
 * the search path whose operands are of the type itself.
 */
function isComparedAsAnother(type: DataType): boolean {
  if (type.kind === "array") return isBuiltInType(type.element) && type.element.name !== "json";
  if (["enum", "range", "multirange", "composite"].includes(type.kind)) return true;
  return type.schema === "pg_catalog" && (type.name === "varchar" || type.name === "cidr");
}

/** The schema of the operators that compare rows of these types, which all have one name; null for those on the search path. */
export function operatorSchemaOfRows(types: readonly (DataType | null)[]): string | null {
  const bases = types.map((type) => type && baseTypeOf(type));
  const areOfPostgres = bases.every((base) => base && (isComparedAsAnother(base) || base.schema === "pg_catalog"));
  return areOfPostgres && bases.some((base) => isComparedAsAnother(base!)) ? "pg_catalog" : null;
}

/** The schema of the type's `=` and `<>`, so that they need not be on the search path. */
export function operatorSchemaOf(
  type: DataType | null | undefined,
  { catalog, role }: { readonly catalog: Catalog; readonly role: string },
): string | null {
  const base = type && baseTypeOf(type);
  if (base && isComparedAsAnother(base)) return "pg_catalog";
  const schema = base?.kind === "base" ? base.operatorSchema : null;
  // Without USAGE on the schema Postgres rejects the qualified name; unqualified, it compares the values as their base types.
  return schema && catalog.hasPrivilege(role, "usage", schema) ? schema.name : null;
}

/** Whether Postgres itself has the operator that is meant: other types have none, or an extension has it. */
function supportsContainment(type: DataType | null, operator: ComparisonName): boolean {
  const base = type && baseTypeOf(type);
  if (base?.kind === "array")
    return ARRAY_CONTAINMENT.has(operator) && isBuiltInType(base.element) && baseTypeOf(base.element).name !== "int4";
  return base?.kind === "range" || base?.kind === "multirange";
}

const EQUALITIES: ReadonlySet<ComparisonName> = new Set(["eq", "neq"]);
const ORDER_COMPARISONS: ReadonlySet<ComparisonName> = new Set(["gt", "gte", "lt", "lte"]);
const ARRAY_CONTAINMENT: ReadonlySet<ComparisonName> = new Set(["cs", "cd", "ov"]);
const MATCHES: ReadonlySet<ComparisonName> = new Set(["like", "ilike", "match", "imatch"]);

/**
 * The schema of the operator; null for any on the search path. The extension intarray has containment operators for integer[], which its
 * indexes support; for all other types of Postgres only those of Postgres are meant.
 */
export function schemaOfComparison(
  operator: ComparisonName,
  field: FieldReference,
  schemaOfEquals: string | null,
  scope: SelectScope,
): string | null {
  if (EQUALITIES.has(operator)) return schemaOfEquals;
  if (schemaOfEquals !== "pg_catalog") return null;
  if (ORDER_COMPARISONS.has(operator)) return schemaOfEquals;
  if (MATCHES.has(operator)) return isPlainText(field, scope) ? schemaOfEquals : null;
  return supportsContainment(typeOfField(field.name, scope), operator) ? schemaOfEquals : null;
}

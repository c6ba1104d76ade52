import { baseTypeOf, type DataType, isBuiltInType } from "#catalog";
import type { ComparisonName, FieldReference } from "../intent/intent.ts";
import { isPlainText, type SelectScope, typeOfField } from "./scope.ts";

/** True if Postgres itself has the operator: other types have none, or an extension has it. */
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

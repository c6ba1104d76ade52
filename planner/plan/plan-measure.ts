import { baseTypeOf, type DistanceFunction, type QualifiedName } from "#catalog";
import { ApiError } from "#runtime";
import type { DistanceName, DistanceOperation, FieldReference, Measure } from "../intent/intent.ts";
import { planSearchResult } from "./plan-search.ts";
import { hasName, isPlainText, planField, typeOfField } from "./scope.ts";
import type { DistanceFunctionName, ValueExpression } from "./selection.ts";
import type { SelectionContext } from "./selection-context.ts";

/** The names in the catalogue: for vectors those of pgvector, of which `<->` also has other types; for texts that of pg_trgm. */
const FUNCTION_NAMES: Readonly<Record<DistanceName, DistanceFunctionName>> = {
  distance: "<->",
  l2: "<->",
  l1: "<+>",
  cosine: "<=>",
  inner: "<#>",
  similarity: "similarity",
};

/** The field itself, or the value computed from it. */
export function planMeasuredField(field: FieldReference, context: SelectionContext): ValueExpression {
  const { measure } = field;
  if (!measure) return planField(field, context.scope);
  const { operation } = measure;
  return operation?.kind === "distance"
    ? planDistance(field, measure, operation, context)
    : planSearchResult(field, measure, operation, context);
}

function planDistance(
  field: FieldReference,
  measure: Measure,
  operation: DistanceOperation,
  { scope, planContext }: SelectionContext,
): ValueExpression {
  const of = planField(field, scope);
  const type = subjectType(field, scope);
  // Postgres rejects unknown names.
  if (type === null && scope.columns.size > 0 && !hasName(scope, field.name)) return of;
  const found = type && findDistance(operation.name, type, planContext);
  if (!found) throw measureNotPossible(field.name, measure, type);
  const to = { parameter: planContext.parameterFor(operation), type: found.right };
  return { kind: "distance", function: FUNCTION_NAMES[operation.name], schema: found.schema.name, of, to };
}

const TEXT: QualifiedName = { schema: "pg_catalog", name: "text" };

/** The type whose operators the values use: varchar uses those of text. */
function subjectType(field: FieldReference, scope: SelectionContext["scope"]): QualifiedName | null {
  if (isPlainText(field, scope)) return TEXT;
  const type = field.path.length === 0 ? typeOfField(field.name, scope) : null;
  return type && baseTypeOf(type);
}

/** Finds the function between two values of the type, or else the only one from the type to another type. */
function findDistance(
  name: DistanceName,
  type: QualifiedName,
  { catalog, role }: SelectionContext["planContext"],
): DistanceFunction | null {
  const candidates = catalog.distances.filter(
    (known) =>
      known.name === FUNCTION_NAMES[name] &&
      isSameName(known.left, type) &&
      catalog.hasPrivilege(role, "usage", known.schema),
  );
  const [only, ...others] = candidates;
  const same = candidates.find(({ right }) => isSameName(right, type));
  return same ?? (others.length === 0 ? only : undefined) ?? null;
}

function isSameName(a: QualifiedName, b: QualifiedName): boolean {
  return a.schema === b.schema && a.name === b.name;
}

function measureNotPossible(field: string, { name, at }: Measure, type: QualifiedName | null): ApiError {
  const what = name === "similarity" ? "function" : "operator";
  const wanted = FUNCTION_NAMES[name as DistanceName];
  return new ApiError("invalid", "PGRST184", `'${field}' has no ${name} (column ${at})`, {
    details: `There is no ${what} ${wanted} between values of ${type ? `the type ${type.name}` : "an unknown type"}.`,
    hint: "Points and other shapes, ranges of extensions and vectors have distances; texts have them with pg_trgm.",
  });
}

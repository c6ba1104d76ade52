import {
  applicablePolicies,
  bypassesRowSecurity,
  type Catalog,
  type CatalogTable,
  type QualifiedName,
  readsAllRows,
} from "#catalog";
import { ApiError } from "#runtime";
import type { NestedStep } from "./plan/nested-step.ts";
import type { Plan, PlanOptions, ReadPlan, TotalPlan } from "./plan/plan.ts";

/** If no estimate is shown, rows are counted up to this number, or up to the maximum of a response. */
const MAX_COUNTED_ROWS = 10_000;

type EstimateOptions = Pick<PlanOptions, "role" | "maxRows">;

/**
 * The estimates of Postgres's planner count all rows of a table, including those that policies or views hide from the role,
 * and many conditions make them reveal values of such rows. So the rows are counted instead, and execution plans refused.
 */
export function withoutHiddenEstimates<P extends Plan>(
  plan: P,
  steps: readonly NestedStep[],
  catalog: Catalog,
  options: EstimateOptions,
): P {
  const needsEstimate = plan.kind === "read" && plan.needsEstimate;
  if (!needsEstimate && plan.format.kind !== "plan") return plan;
  if (!usesHiddenRows(plan, steps, catalog, options.role)) return plan;
  if (plan.format.kind === "plan") throw planWithheld(plan.format.type, options.role);
  return { ...plan, needsEstimate: false, total: boundedTotal(plan as Extract<P, ReadPlan>, options) };
}

function boundedTotal({ rows }: ReadPlan, { maxRows }: EstimateOptions): TotalPlan {
  if (rows.limit === null && rows.offset === 0) return { kind: "page" };
  return { kind: "counted", max: Math.max(MAX_COUNTED_ROWS, maxRows ?? 0) + 1 };
}

function usesHiddenRows(plan: Plan, steps: readonly NestedStep[], catalog: Catalog, role: string): boolean {
  if (bypassesRowSecurity(catalog, role)) return false;
  const written = [...(plan.kind === "write" ? [plan.table] : []), ...steps.map(({ table }) => table)];
  if (written.some((table) => !changesAnyRow(catalog, table, role))) return true;
  const visited = new WeakSet();
  return Object.entries(plan).some(
    ([name, part]) => name !== "table" && name !== "routine" && hasHiddenRows(part, catalog, role, visited),
  );
}

function changesAnyRow(catalog: Catalog, table: CatalogTable, role: string): boolean {
  const commands = ["insert", "update", "delete"] as const;
  return (
    readsAllRows(catalog, table, role) &&
    commands.every((command) => applicablePolicies(catalog, table, role, command) === null)
  );
}

/** Reads a plan by the members that all its parts have. Objects that the catalogue does not know count as hidden. */
function hasHiddenRows(part: unknown, catalog: Catalog, role: string, visited: WeakSet<object>): boolean {
  if (typeof part !== "object" || part === null || part instanceof Map || visited.has(part)) return false;
  visited.add(part);
  // A table or function of the catalogue leads to all others.
  if ("columns" in part && part.columns instanceof Map) return false;
  const { kind, name, through, routine, row, by } = part as Readonly<Record<string, unknown>>;
  const tables = [kind === "table" && name, member(through, "table"), member(row, "table")].filter(isName);
  const routines = [routine, kind === "found" && by].filter(isName);
  return (
    tables.some((each) => isHiddenTable(catalog.findTable(each), catalog, role)) ||
    routines.some((each) => isHiddenRoutine(each, catalog)) ||
    Object.values(part).some((each) => hasHiddenRows(each, catalog, role, visited))
  );
}

function isHiddenTable(table: CatalogTable | undefined, catalog: Catalog, role: string): boolean {
  return !table || !readsAllRows(catalog, table, role);
}

/** True if one function of the name is hidden, even if it is another overload. */
function isHiddenRoutine({ schema, name }: QualifiedName, catalog: Catalog): boolean {
  const tables = [...catalog.schemas.values()].flatMap((each) => [...each.tables.values()]);
  const found = [
    ...(catalog.schemas.get(schema)?.routines.get(name) ?? []),
    ...tables.flatMap(({ rowRoutines }) => rowRoutines.filter((each) => each.name === name && each.schema === schema)),
  ];
  return found.length === 0 || found.some(({ showsAllRows }) => !showsAllRows);
}

function member(part: unknown, name: string): unknown {
  return typeof part === "object" && part !== null ? (part as Readonly<Record<string, unknown>>)[name] : undefined;
}

function isName(value: unknown): value is QualifiedName {
  return typeof member(value, "schema") === "string" && typeof member(value, "name") === "string";
}

function planWithheld(type: string, role: string): ApiError {
  return new ApiError("notAcceptable", "PGRST107", `None of these media types are available: ${type}`, {
    details: `An execution plan would tell the role ${role} about rows that row-level security or a view hides from it.`,
    hint: "Request it as a role that bypasses row-level security, or use npm run why.",
  });
}

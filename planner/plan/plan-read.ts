import type { CatalogTable } from "#catalog";
import type { CountMethod, ReadIntent, ResponseOptions } from "../intent/intent.ts";
import { findTable } from "./find-target.ts";
import { planReadPage } from "./keyset-page.ts";
import { negotiateFormat, type PlanOptions, type ReadPlan, type TotalPlan } from "./plan.ts";
import { planSelection } from "./plan-selection.ts";
import { placeCountConditions } from "./related-count.ts";
import { tableScope } from "./scope.ts";
import { buildSelectTree, type SelectNode, selectsAllColumns } from "./select-tree.ts";
import type { RowSource, SelectPlan } from "./selection.ts";
import type { PlanContext } from "./selection-context.ts";

export function planRead(
  intent: ReadIntent,
  response: ResponseOptions,
  context: PlanContext,
  options: PlanOptions,
): ReadPlan {
  const { catalog, role } = context;
  const { target, selection, count } = intent;
  const table = findTable(target, catalog, role);
  const tree = buildSelectTree(placeCountConditions(selection, table, context), context);
  const {
    rows,
    kept: keptPages,
    page,
  } = intent.page
    ? planReadPage(intent.page, { table, node: tree }, context)
    : { rows: planRowRange(table, tree, context), kept: [], page: null };
  const selectsAll = selectsAllColumns(selection.select);
  const { format, body } = negotiateFormat({
    ...response,
    target: table,
    selectsAll,
    catalog,
    explain: options.explainEnabled,
  });
  return {
    kind: "read",
    table,
    rows,
    keptPages,
    keyset: page,
    format,
    body: response.includesBody ? body : { kind: "none" },
    total: planTotal(count, rows, options),
    needsEstimate: count === "planned" || count === "estimated",
    readOnly: true,
    guards: [],
  };
}

function planRowRange(table: CatalogTable, tree: SelectNode, context: PlanContext): SelectPlan {
  const scope = tableScope(table, { alias: table.name, depth: 0, takenAliases: new Set() }, context);
  const source: RowSource = { kind: "table", name: { schema: table.schema, name: table.name }, through: null };
  return planSelection(tree, { scope, source, join: [] }, context);
}

/** Plans the total. If there is no range, the rows of the page are all rows. */
export function planTotal(
  count: CountMethod | null,
  { limit, offset }: Pick<SelectPlan, "limit" | "offset">,
  { maxRows }: Pick<PlanOptions, "maxRows">,
): TotalPlan {
  if (count === null || count === "planned") return { kind: "none" };
  if (limit === null && offset === 0) return { kind: "page" };
  // Counting one more than the maximum page suffices to know that an estimate is needed.
  return { kind: "counted", max: count === "estimated" && maxRows !== null ? maxRows + 1 : null };
}

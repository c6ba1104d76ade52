import type { Table } from "../../../engine/catalog/tables.ts";
import { type Count, EVERY_COLUMN, type Manner, type ReadIntent, type SelectItem } from "../intent.ts";
import { negotiate } from "./format.ts";
import { planReadPage } from "./page.ts";
import type { PlanOptions, ReadPlan, Total } from "./plan.ts";
import { tableScope } from "./scope.ts";
import { type Planning, planRows } from "./select.ts";
import type { Selection, Source } from "./selection.ts";
import { findTable } from "./table.ts";
import { type Node, plant } from "./tree.ts";

export function planRead(intent: ReadIntent, manner: Manner, planning: Planning, options: PlanOptions): ReadPlan {
  const { catalog, role } = planning;
  const { target, shape, count } = intent;
  const table = findTable(target, catalog, role);
  const node = plant(shape, planning);
  const { rows, kept, page } = intent.page
    ? planReadPage(intent.page, { table, node }, planning)
    : { rows: planWindow(table, node, planning), kept: [], page: null };
  const selectsAll = isEverything(shape.select);
  const { format, body } = negotiate({ ...manner, target: table, selectsAll, catalog, explain: options.explain });
  return {
    kind: "read",
    table,
    rows,
    kept,
    page,
    format,
    body: manner.body ? body : { kind: "none" },
    total: totalOf(count, rows, options),
    estimated: count === "planned" || count === "estimated",
    readOnly: true,
    guards: [],
  };
}

function planWindow(table: Table, node: Node, planning: Planning): Selection {
  const scope = tableScope(table, { alias: table.name, depth: 0, taken: new Set() });
  const source: Source = { kind: "table", name: { schema: table.schema, name: table.name }, through: null };
  return planRows(node, { scope, source, join: [] }, planning);
}

/** All columns, and nothing besides. */
export function isEverything(select: readonly SelectItem[]): boolean {
  const [only, ...others] = select;
  return (
    (only === undefined ||
      (only.kind === "column" && only.field?.name === EVERY_COLUMN.name && only.aggregate === null)) &&
    others.length === 0
  );
}

/** Rows that no window holds back are all there are. */
export function totalOf(
  count: Count | null,
  { limit, offset }: Pick<Selection, "limit" | "offset">,
  { maxRows }: Pick<PlanOptions, "maxRows">,
): Total {
  if (count === null || count === "planned") return { kind: "none" };
  if (limit === null && offset === 0) return { kind: "page" };
  // One more than a page can have is enough to know that an estimate is needed.
  return { kind: "counted", most: count === "estimated" && maxRows !== null ? maxRows + 1 : null };
}

import type { BodyPlan } from "./negotiate-format.ts";
import type { CallPlan, Plan, ReadPlan, TotalPlan } from "./plan.ts";
import { columnExpression, type OutputColumn } from "./selection.ts";

/** More rows than these are not put together by Postgres but sent as they come. */
export const MAX_BUFFERED_ROWS = 5_000;

/** Of an answer that can be put together from rows that come one by one. */
export type StreamedPlan = (ReadPlan | CallPlan) & { readonly body: StreamedBody };
type StreamedBody = Extract<BodyPlan, { kind: "csv" } | { kind: "json" }>;

/** Null: the answer is in one piece, or short whatever happens. */
export function toStreamedPlan(plan: Plan): StreamedPlan | null {
  // What was written is undone when something fails later: so nothing of it is told before it is over.
  if (plan.kind === "write" || !plan.readOnly || plan.guards.length > 0 || plan.format.kind === "plan") return null;
  // Where a page ends stands in the headers, and so before its rows.
  if (plan.keyset) return null;
  const { body } = plan;
  const isJson = body.kind === "json" && body.of === "rows";
  if (plan.kind === "read") {
    const total = plan.total.kind === "page" ? COUNT_ALL : plan.total;
    if (body.kind === "csv") return { ...plan, rows: nameAllColumns(plan), body, total };
    return isJson ? { ...plan, body, total } : null;
  }
  // To count a function's rows before they come would be to call it twice.
  return isJson && plan.total.kind !== "page" ? { ...plan, body } : null;
}

/** How many there are is told before the last one is there. */
const COUNT_ALL: TotalPlan = { kind: "counted", most: null };

/** The same, but of no more rows than show that there are too many. */
export function toProbePlan(plan: Plan): Plan {
  const { limit } = plan.rows;
  return limit !== null && limit <= MAX_BUFFERED_ROWS
    ? plan
    : { ...plan, rows: { ...plan.rows, limit: MAX_BUFFERED_ROWS + 1 } };
}

/** The first line of CSV names the columns before Postgres has said which there are: so they must be these. */
function nameAllColumns({ rows, table }: ReadPlan): ReadPlan["rows"] {
  const all = [...table.columns.keys()].map(
    (name): OutputColumn => ({ kind: "value", name, value: columnExpression(rows.alias, name), isAggregate: false }),
  );
  return { ...rows, outputs: rows.outputs.flatMap((output) => (output.kind === "all" ? all : [output])) };
}

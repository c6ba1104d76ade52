import type { BodyPlan } from "./negotiate-format.ts";
import type { CallPlan, Plan, ReadPlan, TotalPlan } from "./plan.ts";
import { columnExpression, type OutputColumn } from "./selection.ts";

/** Responses with more rows are streamed instead of aggregated by Postgres. */
export const MAX_BUFFERED_ROWS = 5_000;

/** The plan of a response that can be streamed row by row. */
export type StreamedPlan = (ReadPlan | CallPlan) & { readonly body: StreamedBody };
type StreamedBody = Extract<BodyPlan, { kind: "csv" } | { kind: "json" }>;

/** Returns null if the response is a single piece or always short. */
export function toStreamedPlan(plan: Plan): StreamedPlan | null {
  // A write is rolled back on a later error, so nothing may be sent before it has ended.
  if (plan.kind === "write" || !plan.readOnly || plan.guards.length > 0 || plan.format.kind === "plan") return null;
  // The cursor is in the headers, which precede the rows.
  if (plan.keyset) return null;
  const { body } = plan;
  const isJson = body.kind === "json" && body.of === "rows";
  if (plan.kind === "read") {
    const total = plan.total.kind === "page" ? COUNT_ALL : plan.total;
    if (body.kind === "csv") return { ...plan, rows: nameAllColumns(plan), body, total };
    return isJson ? { ...plan, body, total } : null;
  }
  // Counting a function's rows beforehand would call it twice.
  return isJson && plan.total.kind !== "page" ? { ...plan, body } : null;
}

/** The count is sent before the last row. */
const COUNT_ALL: TotalPlan = { kind: "counted", max: null };

/** The same plan, limited to one row more than may be buffered. */
export function toProbePlan(plan: Plan): Plan {
  const { limit } = plan.rows;
  return limit !== null && limit <= MAX_BUFFERED_ROWS
    ? plan
    : { ...plan, rows: { ...plan.rows, limit: MAX_BUFFERED_ROWS + 1 } };
}

/** The CSV header precedes the result, so the columns are listed explicitly. */
function nameAllColumns({ rows, table }: ReadPlan): ReadPlan["rows"] {
  const all = [...table.columns.keys()].map(
    (name): OutputColumn => ({ kind: "value", name, value: columnExpression(rows.alias, name), isAggregate: false }),
  );
  return { ...rows, outputs: rows.outputs.flatMap((output) => (output.kind === "all" ? all : [output])) };
}

import type { Database } from "../../engine/database/database.ts";
import type { Context } from "../../engine/database/statement.ts";
import type { Intent } from "../statement/intent.ts";
import type { Plan } from "../statement/plan/plan.ts";
import { valuesAt } from "../statement/plan/slots.ts";
import type { Answer } from "../statement/query/answer.ts";
import { toEstimateQuery } from "../statement/query/query.ts";

type Means = { readonly context: Context; readonly database: Database; readonly maxRows: number | null };

/**
 * `planned` is Postgres's guess; `estimated` counts as far as the largest page reaches and believes the guess beyond. Where
 * pages have no limit the greater of both is told, as PostgREST does.
 */
export async function totalWithEstimate(
  plan: Plan,
  intent: Intent,
  { total }: Pick<Answer, "total">,
  { context, database, maxRows }: Means,
): Promise<number | null> {
  if (plan.kind !== "read" || !plan.estimated || plan.format.kind === "plan") return total;
  if (intent.count === "estimated" && (total === null || (maxRows !== null && total <= maxRows))) return total;
  const { text, slots } = toEstimateQuery(plan);
  const { rows } = await database.run(context, { text, values: valuesAt(slots, intent) }, { readOnly: true });
  const guess = Number(JSON.parse(rows.map(([line]) => line).join("\n"))[0].Plan["Plan Rows"]);
  return Math.max(guess, total ?? 0);
}

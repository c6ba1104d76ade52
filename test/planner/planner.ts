import type { Intent } from "../../planner/intent.ts";
import type { Plan } from "../../planner/plan/plan.ts";
import { planOver, type Wishes } from "./museum.ts";
import { readRecordedCatalog } from "./recorded-catalog.ts";

/** For tests of plans and of the text of statements, which need no database. */
export const catalog = await readRecordedCatalog();

export function planIntent(intent: Intent, options?: Wishes): Plan {
  return planOver(catalog, intent, options);
}

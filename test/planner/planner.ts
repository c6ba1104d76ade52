import type { Intent } from "../../planner/intent/intent.ts";
import type { Plan } from "../../planner/plan/plan.ts";
import { type FixtureOptions, planOver } from "./fixture-database.ts";
import { readRecordedCatalog } from "./recorded-catalog.ts";

/** The recorded catalogue, for tests of plans and of the text of statements, which need no database. */
export const catalog = await readRecordedCatalog();

export function planIntent(intent: Intent, options?: FixtureOptions): Plan {
  return planOver(catalog, intent, options);
}

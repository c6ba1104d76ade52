import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Statement } from "../../engine/database/statement.ts";
import type { Intent, Manner } from "./intent.ts";
import { type Plan, type PlanOptions, planIntent } from "./plan/plan.ts";
import { shapeKey } from "./plan/shape-key.ts";
import { valuesAt } from "./plan/slots.ts";
import { toQuery } from "./query/query.ts";
import type { Query } from "./query/sql.ts";

export type Prepared = { readonly plan: Plan; readonly statement: Statement };
type Known = { readonly plan: Plan; readonly query: Query };

const MOST_KNOWN = 2_000;

/** Plans what an intent of its shape needs, once per catalogue and role; each request brings only its values. */
export function makePreparer(settings: Omit<PlanOptions, "role">) {
  let known = new Map<string, Known>();
  let of: Catalog | null = null;

  return (intent: Intent, manner: Manner, catalog: Catalog, role: string): Prepared => {
    if (catalog !== of) {
      known = new Map();
      of = catalog;
    }
    const key = `${role}\n${shapeKey(intent, manner)}`;
    let found = known.get(key);
    if (!found) {
      const plan = planIntent(intent, manner, catalog, { ...settings, role });
      found = { plan, query: toQuery(plan) };
      if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value!);
      known.set(key, found);
    }
    return { plan: found.plan, statement: { text: found.query.text, values: valuesAt(found.query.slots, intent) } };
  };
}

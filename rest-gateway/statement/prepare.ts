import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Statement } from "../../engine/database/statement.ts";
import { type Hits, RecentMap } from "../../engine/recent-map.ts";
import type { Stepwise } from "../../engine/stepwise.ts";
import type { Intent, Manner } from "./intent.ts";
import { type LongPlan, toLongPlan, toProbe } from "./plan/long.ts";
import { type Plan, type PlanOptions, planIntent } from "./plan/plan.ts";
import { shapeKey } from "./plan/shape-key.ts";
import { valuesAt, valuesInSteps } from "./plan/slots.ts";
import { toQuery, toRowsQuery } from "./query/query.ts";
import type { Query } from "./query/sql.ts";

export type Prepared = {
  readonly plan: Plan;
  /** Gives the whole answer in one row. */
  readonly statement: Statement;
  /** Null for an answer that can only be had whole. */
  readonly long: LongRead | null;
  /** The same for another intent, which differs in its values only. */
  again(intent: Intent): Prepared;
};

/** Other ways to an answer that may be too long to be held. */
export type LongRead = {
  readonly plan: LongPlan;
  /** Gives the whole answer too, or else more rows than it may have. */
  readonly probe: Statement;
  /** Gives one row after the other. */
  rows(): Statement;
  readonly memory: Memory;
};

/** What is known of all requests of one shape. */
export type Memory = {
  /** Whether the latest answer was too long to be held. */
  wasLong: boolean;
};

type Known = { readonly plan: Plan; readonly query: Query; readonly long: KnownLong | null };
type KnownLong = {
  readonly plan: LongPlan;
  readonly probe: Query;
  readonly rows: Query;
  readonly memory: Memory;
};

const MOST_KNOWN = 2_000;

type Settings = Omit<PlanOptions, "role"> & {
  /** Answers are told whole, however long they are. */
  readonly whole?: boolean;
};

type Request = readonly [intent: Intent, manner: Manner, catalog: Catalog, role: string];

export type Preparer = {
  prepare(...request: Request): Prepared;
  /** The same where a body is so large that its values take long to be put together. */
  prepareInSteps(...request: Request): Stepwise<Prepared>;
};

/** Plans what an intent of its shape needs, once per catalogue and role; each request brings only its values. */
export function makePreparer({ whole = false, ...settings }: Settings, hits?: Hits): Preparer {
  const known = new RecentMap<string, Known>(MOST_KNOWN, undefined, hits);
  let of: Catalog | null = null;

  const find = (intent: Intent, manner: Manner, catalog: Catalog, role: string): Known => {
    if (catalog !== of) {
      known.clear();
      of = catalog;
    }
    const key = `${role}\n${shapeKey(intent, manner)}`;
    let found = known.get(key);
    if (!found) {
      found = toKnown(planIntent(intent, manner, catalog, { ...settings, role }), whole);
      known.set(key, found);
    }
    return found;
  };

  return {
    prepare: (intent, manner, catalog, role) => withValues(find(intent, manner, catalog, role), intent),
    *prepareInSteps(intent, manner, catalog, role) {
      const found = find(intent, manner, catalog, role);
      return withValues(found, intent, yield* valuesInSteps(found.query.slots, intent));
    },
  };
}

function toKnown(plan: Plan, whole: boolean): Known {
  const long = whole ? null : toLongPlan(plan);
  return { plan, query: toQuery(plan), long: long && toKnownLong(plan, long) };
}

function toKnownLong(whole: Plan, plan: LongPlan): KnownLong {
  return { plan, probe: toQuery(toProbe(whole)), rows: toRowsQuery(plan), memory: { wasLong: false } };
}

function withValues(known: Known, intent: Intent, values = valuesAt(known.query.slots, intent)): Prepared {
  const { plan, query, long } = known;
  const statement = { text: query.text, values };
  const again = (other: Intent) => withValues(known, other);
  if (!long) return { plan, statement, long, again };
  const { probe, rows, memory } = long;
  return {
    plan,
    statement,
    again,
    long: {
      plan: long.plan,
      // It differs in its limit alone.
      probe: { text: probe.text, values: statement.values },
      rows: () => ({ text: rows.text, values: valuesAt(rows.slots, intent) }),
      memory,
    },
  };
}

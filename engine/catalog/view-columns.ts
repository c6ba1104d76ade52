import { parseTargets, type Target } from "./parse-tree.ts";
import type { Read } from "./reader.ts";
import { inSlices } from "./slices.ts";

/** For each view (by oid): which column of which table or view each of its columns shows, by their numbers. */
export type ViewTargets = ReadonlyMap<number, readonly Target[]>;

type RuleRow = { view: number; tree: string };

// A query tree is long and its column list short. Without a sub-select in an expression, the outermost list is the last one.
const RULES = `
  select r.ev_class as view,
    case when strpos(r.ev_action::text, '{SUBLINK') = 0 then split_part(r.ev_action::text, ' :targetList ', -1)
      else r.ev_action::text end as tree
  from pg_rewrite r join pg_class c on c.oid = r.ev_class
  where c.relkind in ('v', 'm') and r.rulename = '_RETURN' and (c.relnamespace = any ($1) or c.oid = any ($2))
  order by r.ev_class`;

const VIEWS_AMONG = `
  select oid from pg_class where oid = any ($1) and relkind in ('v', 'm') order by oid`;

/** Of the views of these schemas, and of the views beneath them wherever those are. */
export async function readViewTargets(read: Read, schemas: readonly number[]): Promise<ViewTargets> {
  const targets = new Map<number, readonly Target[]>();
  let rules = await read<RuleRow>("views", RULES, [schemas, []]);
  while (rules.length > 0) {
    await inSlices(rules, ({ view, tree }) => targets.set(view, parseTargets(tree)));
    const beneath = new Set([...targets.values()].flat().map(({ table }) => table));
    const unknown = [...beneath].filter((oid) => !targets.has(oid));
    const views = await read<{ oid: number }>("views", VIEWS_AMONG, [unknown]);
    rules = views.length > 0 ? await read<RuleRow>("views", RULES, [[], views.map(({ oid }) => oid)]) : [];
  }
  return targets;
}

/** The same, followed down to the tables. */
export function toTableTargets(views: ViewTargets): ViewTargets {
  const byPosition = new Map([...views].map(([view, targets]) => [view, new Map(targets.map((t) => [t.position, t]))]));

  const follow = (target: Target, passed: ReadonlySet<number>): Target | null => {
    const view = byPosition.get(target.table);
    if (!view) return target;
    // `create or replace view` can make a view that shows itself; Postgres refuses to run it, not to define it.
    if (passed.has(target.table)) return null;
    const next = view.get(target.column);
    return next ? follow(next, new Set(passed).add(target.table)) : null;
  };

  return new Map(
    [...views].map(([view, targets]) => [
      view,
      targets.flatMap((target) => {
        const base = follow(target, new Set([view]));
        return base ? [{ position: target.position, table: base.table, column: base.column }] : [];
      }),
    ]),
  );
}

import type { CatalogQuery } from "./catalog-query.ts";

/**
 * A view is whole if it shows each row of one table without row-level security, itself or through whole views. The query
 * tree shows this: it has one query of one relation, without a condition. In names, blanks and brackets are escaped with a
 * backslash.
 */
const WHOLE_VIEWS = `
  with recursive below (view, relation, kind, restricted) as (
    select oid, oid, relkind, false from pg_class where relkind = 'v' and relnamespace = any ($1)
    union
    select b.view, c.oid, c.relkind, c.relrowsecurity
    from below b
      join pg_rewrite r on r.ev_class = b.relation and r.rulename = '_RETURN'
      join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
      join pg_class c on c.oid = d.refobjid
    where b.kind = 'v' and c.oid <> b.relation
  ), unfiltered as materialized (
    select r.ev_class as view
    from pg_rewrite r cross join lateral (select r.ev_action::text as tree offset 0) action
    where r.rulename = '_RETURN' and r.ev_class in (select relation from below where kind = 'v')
      and tree ~ ' :jointree {FROMEXPR :fromlist \\({RANGETBLREF :rtindex [0-9]+}\\) :quals <>} '
      and strpos(substr(tree, 4), '{QUERY ') = 0 and strpos(tree, '{TABLESAMPLECLAUSE ') = 0
      and tree !~ ' :rtekind [1-9]' and tree !~ ' :has(Aggs|WindowFuncs|TargetSRFs|DistinctOn) true '
      and strpos(tree, ' :groupClause <> ') > 0 and strpos(tree, ' :havingQual <> ') > 0
      and strpos(tree, ' :distinctClause <> ') > 0 and strpos(tree, ' :setOperations <> ') > 0
      and strpos(tree, ' :limitOffset <> ') > 0 and strpos(tree, ' :limitCount <> ') > 0
  )
  select view from below
  group by view
  having bool_and(
    case kind when 'v' then relation in (select unfiltered.view from unfiltered)
      else kind in ('r', 'p', 'm') and not restricted end
  )
  order by view`;

export async function readWholeViews(read: CatalogQuery, schemas: readonly number[]): Promise<ReadonlySet<number>> {
  const rows = await read<{ view: number }>("wholeViews", WHOLE_VIEWS, [schemas]);
  return new Set(rows.map(({ view }) => view));
}

/** The same condition as `isInlined` of routines.ts. */
const IS_INLINED = `p.prolang = (select oid from pg_language where lanname = 'sql') and p.proretset
  and p.provolatile <> 'v' and not p.proisstrict and not p.prosecdef and p.proconfig is null`;

/** Postgres knows the relations that a function's query reads if it parsed the query when the function was created. */
const OPEN_ROUTINES = `
  with recursive below (routine, class, object, kind, closed) as (
    select p.oid, 'pg_proc'::regclass::oid, p.oid, 'f'::"char", p.prosqlbody is null
    from pg_proc p where p.pronamespace = any ($1) and ${IS_INLINED}
    union
    select b.routine, d.refclassid, d.refobjid, coalesce(c.relkind, 'f'),
      coalesce(c.relrowsecurity or c.relkind not in ('r', 'p', 'm', 'v'), p.prosqlbody is null)
    from below b
      join pg_depend d on d.classid = b.class and d.objid = b.object
      left join pg_class c on d.refclassid = 'pg_class'::regclass and c.oid = d.refobjid
      left join pg_proc p on d.refclassid = 'pg_proc'::regclass and p.oid = d.refobjid and ${IS_INLINED}
    where b.kind = 'f' and not b.closed and (c.oid is not null or p.oid is not null)
  )
  select routine, array_agg(distinct object) filter (where kind = 'v') as views
  from below
  group by routine
  having not bool_or(closed)
  order by routine`;

/**
 * Returns the functions whose query Postgres inlines into the calling query, and which read only tables without row-level
 * security and whole views.
 */
export async function readOpenRoutines(
  read: CatalogQuery,
  schemas: readonly number[],
  wholeViews: ReadonlySet<number>,
): Promise<ReadonlySet<number>> {
  const rows = await read<{ routine: number; views: number[] | null }>("openRoutines", OPEN_ROUTINES, [schemas]);
  const open = rows.filter(({ views }) => (views ?? []).every((view) => wholeViews.has(view)));
  return new Set(open.map(({ routine }) => routine));
}

import { inSnapshot } from "../../engine/catalog/snapshot.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { AsOwner } from "../../engine/database/as-owner.ts";

/** What the policies of a table are made of, directly or by way of functions, operators and domains. */
export type PolicyDependency =
  /** A condition of a policy or of a domain, with all names qualified. */
  | { readonly kind: "condition"; readonly text: string }
  | FunctionDependency
  | {
      readonly kind: "relation";
      /** Whether it has the same rows for everybody. */
      readonly isSameForAll: boolean;
    };

export type FunctionDependency = {
  readonly kind: "function";
  /** As it is called in conditions. */
  readonly name: string;
  /** Null for a body that Postgres does not keep parsed: nobody knows what it uses. */
  readonly body: string | null;
  /** Whether it is written in C, part of an extension and declared to depend on its arguments alone. */
  readonly isImmutableC: boolean;
  /** Whether it takes nothing, gives JSON and changes no setting. */
  readonly isPlainJson: boolean;
};

// What comes with Postgres is not in pg_depend, and stands in the texts. Those who read through a row type do not read its table.
const DEPENDENCIES = `
  with recursive used (class, object) as (
    select 'pg_policy'::regclass::oid, oid from pg_policy where polrelid = $1 and polcmd in ('*', 'r')
    union
    select next.class, next.object
    from used cross join lateral (
      select d.refclassid, d.refobjid from pg_depend d
      where d.classid = used.class and d.objid = used.object and case
        when used.class = 'pg_type'::regclass then d.refclassid = 'pg_type'::regclass
        else d.refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass)
          or d.refclassid = 'pg_class'::regclass and d.refobjid <> $1
      end
      union all
      select 'pg_constraint'::regclass, c.oid from pg_constraint c
      where used.class = 'pg_type'::regclass and c.contypid = used.object
      union all
      select 'pg_type'::regclass, a.atttypid
      from pg_type t join pg_attribute a on a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
      where used.class = 'pg_type'::regclass and t.oid = used.object
    ) as next (class, object)
    where used.class in ('pg_policy'::regclass, 'pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass,
      'pg_constraint'::regclass)
  )
  select json_build_object('kind', 'condition', 'text', pg_get_expr(p.polqual, p.polrelid)) as dependency
  from used join pg_policy p on used.class = 'pg_policy'::regclass and p.oid = used.object where p.polqual is not null
  union all
  select json_build_object('kind', 'condition', 'text', pg_get_expr(c.conbin, 0))
  from used join pg_constraint c on used.class = 'pg_constraint'::regclass and c.oid = used.object where c.conbin is not null
  union all
  select json_build_object(
    'kind', 'function', 'name', format('%I.%I', n.nspname, p.proname), 'body', pg_get_function_sqlbody(p.oid),
    'isImmutableC', l.lanname = 'c' and p.prokind = 'f' and p.provolatile = 'i' and exists (
      select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
    ),
    'isPlainJson', p.pronargs = 0 and p.prorettype in ('json'::regtype, 'jsonb'::regtype) and p.proconfig is null
  )
  from used join pg_proc p on used.class = 'pg_proc'::regclass and p.oid = used.object
    join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
  union all
  select json_build_object('kind', 'relation', 'isSameForAll', c.relkind in ('r', 'p', 'm') and not c.relrowsecurity)
  from used join pg_class c on used.class = 'pg_class'::regclass and c.oid = used.object`;

/** Asked of the database as it is at one moment. */
export function readPolicyDependencies(asOwner: AsOwner, { oid }: Table): Promise<readonly PolicyDependency[]> {
  return asOwner((client) =>
    inSnapshot(client, async () => {
      const { rows } = await client.query<{ dependency: PolicyDependency }>(DEPENDENCIES, [oid]);
      return rows.map(({ dependency }) => dependency);
    }),
  );
}

import { firing, label, ours } from "./objects.ts";

/** Those behind a constraint are written with the table. */
export const indexes = `
  select ${label("pg_class", "class.oid")} as object, pg_get_indexdef(indexrelid) as statement
  from pg_index
  join pg_class as class on class.oid = indrelid ${ours("pg_class", "class.oid", "class.relnamespace")}
  where not exists (
    select from pg_constraint where conindid = indexrelid and conrelid = indrelid and contype in ('p', 'u', 'x')
  )`;

export const triggers = `
  select
    ${label("pg_class", "class.oid")} as object,
    pg_get_triggerdef(trigger.oid) || coalesce(
      e';\\nalter table ' || class.oid::regclass || ' ' || ${firing("tgenabled")} || ' trigger ' || quote_ident(tgname),
      ''
    ) as statement
  from pg_trigger as trigger
  join pg_class as class on class.oid = tgrelid ${ours("pg_class", "class.oid", "class.relnamespace")}
  where not tgisinternal`;

/** What `alter table` says about rows: who is bound by policies, and how much of an old row the WAL keeps. */
export const rowLevels = `
  select
    ${label("pg_class", "class.oid")} as object,
    format('alter table %s %s', class.oid::regclass, setting) as statement
  from pg_class as class ${ours("pg_class", "class.oid", "class.relnamespace")}
  cross join lateral (values
    (relrowsecurity, 'enable row level security'),
    (relforcerowsecurity, 'force row level security'),
    (relreplident = 'f', 'replica identity full'),
    (relreplident = 'n', 'replica identity nothing')
  ) as flag (holds, setting)
  where relkind in ('r', 'p') and holds`;

export const policies = `
  select
    ${label("pg_class", "class.oid")} as object,
    format(
      'create policy %I on %s%s for %s to %s%s%s',
      polname,
      class.oid::regclass,
      case when not polpermissive then ' as restrictive' end,
      case polcmd
        when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all'
      end,
      (
        select string_agg(case role when 0 then 'public' else role::regrole::text end, ', ' order by role::regrole::text)
        from unnest(polroles) as role
      ),
      ' using (' || pg_get_expr(polqual, polrelid) || ')',
      ' with check (' || pg_get_expr(polwithcheck, polrelid) || ')'
    ) as statement
  from pg_policy
  join pg_class as class on class.oid = polrelid ${ours("pg_class", "class.oid", "class.relnamespace")}`;

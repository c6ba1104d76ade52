import type pg from "pg";

export type Rule = {
  readonly rule: string;
  /** The names of the objects that violate it. */
  readonly violations: string;
  /** Something that breaks it, and the name it is then reported by. */
  readonly breach: string;
  readonly reported: string;
};

/** Postgres's own, graphile-migrate's and the members of extensions are not ours to judge. */
const OURS = "nspname !~ '^pg_|^information_schema$|^graphile_migrate$|^extensions$'";
const REQUEST_ROLES = "unnest('{anon,authenticated,admin,service_role}'::text[])";
/** Tables and views in which a role of a request was granted something. */
const EXPOSED = `
  select class.*, nspname || '.' || relname as name
  from pg_class as class
  join pg_namespace on pg_namespace.oid = relnamespace and ${OURS}
  where relkind in ('r', 'p', 'v', 'm', 'f') and exists (
    select from ${REQUEST_ROLES} as role
    where has_any_column_privilege(role, class.oid, 'select, insert, update')
      or has_table_privilege(role, class.oid, 'delete, truncate')
  )`;
const FUNCTIONS = `
  select proc.*, proc.oid::regprocedure::text as name
  from pg_proc as proc
  join pg_namespace on pg_namespace.oid = pronamespace and ${OURS}`;
const CALLABLE = `exists (select from ${REQUEST_ROLES} as role where has_function_privilege(role, oid, 'execute'))`;

export const RULES: readonly Rule[] = [
  {
    rule: "every table has row-level security",
    violations: `
      select nspname || '.' || relname as name from pg_class join pg_namespace on pg_namespace.oid = relnamespace and ${OURS}
      where relkind in ('r', 'p') and not relrowsecurity`,
    breach: "create table auth.bare (id int)",
    reported: "auth.bare",
  },
  {
    rule: "every verb that is granted on a table has a policy for the role",
    // Files are closed until a project writes policies for them, as at Supabase.
    violations: `
      select distinct name || ' ' || verb || ' ' || role as name
      from (${EXPOSED}) as exposed
      cross join unnest('{anon,authenticated,admin}'::text[]) as role
      cross join (values ('select', 'r'), ('insert', 'a'), ('update', 'w'), ('delete', 'd')) as verbs (verb, command)
      where relkind in ('r', 'p') and relnamespace <> 'storage'::regnamespace
        and case verb when 'delete' then has_table_privilege(role, exposed.oid, verb) else has_any_column_privilege(role, exposed.oid, verb) end
        and not exists (
          select from pg_policy where polrelid = exposed.oid and polpermissive and polcmd in (command::"char", '*')
            and (polroles = '{0}' or exists (select from unnest(polroles) as bound where pg_has_role(role, bound, 'usage')))
        )`,
    breach: "drop policy insert_own on public.comments; drop policy insert_open on public.comments",
    reported: "public.comments insert authenticated",
  },
  {
    rule: "no role of a request was granted anything in a table of schema auth",
    violations: `
      select name from (${EXPOSED}) as exposed where relnamespace = 'auth'::regnamespace`,
    breach: "grant select (username) on auth.users to service_role",
    reported: "auth.users",
  },
  {
    rule: "a view that is granted reads under the policies of who asks",
    violations: `
      select name from (${EXPOSED}) as exposed
      where relkind = 'm' or relkind = 'v' and not coalesce(reloptions && '{security_invoker=true,security_invoker=on}', false)`,
    breach: "create view public.leak as select * from auth.users; grant select on public.leak to anon",
    reported: "public.leak",
  },
  {
    rule: "a policy asks who calls once per statement, not per row",
    violations: `
      select polname || ' on ' || polrelid::regclass as name
      from pg_policy, concat(pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)) as condition
      where regexp_replace(condition, 'SELECT auth\\.\\w+\\(', '', 'g') ~ 'auth\\.|current_setting'`,
    breach: "create policy per_row on public.comments using (author_id = auth.uid())",
    reported: "per_row on public.comments",
  },
  {
    rule: "every column that a policy compares leads an index",
    violations: `
      select distinct refobjid::regclass || '.' || attname as name
      from pg_depend
      join pg_attribute on attrelid = refobjid and attnum = refobjsubid
      where classid = 'pg_policy'::regclass and refclassid = 'pg_class'::regclass and refobjsubid > 0
        and not exists (select from pg_index where indrelid = refobjid and indkey[0] = refobjsubid)
        -- Only true for the row that the transaction itself inserts, which RETURNING checks alone.
        and (refobjid, attname) <> ('public.users'::regclass, 'created_at')`,
    breach: "create policy by_content on public.comments using (content = 'x')",
    reported: "public.comments.content",
  },
  {
    rule: "every foreign key leads an index",
    violations: `
      select conrelid::regclass || ' ' || conname as name
      from pg_constraint
      join pg_class as class on class.oid = conrelid
      join pg_namespace on pg_namespace.oid = relnamespace and ${OURS}
      where contype = 'f' and not exists (
        select from pg_index where indrelid = conrelid and indpred is null
          and (indkey::smallint[])[0:cardinality(conkey) - 1] @> conkey
      )`,
    breach:
      "alter table public.comments add answers bigint constraint comments_answers_fkey references public.comments",
    reported: "public.comments comments_answers_fkey",
  },
  {
    rule: "every function pins its search_path, or runs as its caller and resolves its names when it is created",
    // Two are inlined, which a setting would prevent; their bodies qualify all names and have no operators.
    violations: `
      select name from (${FUNCTIONS}) as functions
      where (prosqlbody is null or prosecdef) and not coalesce(array_to_string(proconfig, ' ') ~ '(^| )search_path=', false)
        and name not in ('public.articles_title(public.articles,text)', 'public.articles_summary(public.articles)')`,
    breach: "create function content_service.loose() returns int language sql as 'select 1'",
    reported: "content_service.loose()",
  },
  {
    rule: "nothing that a request can execute runs with the rights of its owner",
    // Two return nothing but ids, to queries that apply the policies to the rows; one says whether sign-ups are open. Four queue calls in the caller's own role, and read and cancel the caller's own tasks.
    violations: `
      select name from (${FUNCTIONS}) as functions
      where prosecdef and ${CALLABLE}
        and name not in (
          'content_service.articles_containing(text)', 'content_service.articles_sharing(text[])', 'auth.accepts_sign_ups()',
          'api.enqueue(text,jsonb,timestamp with time zone,text)', 'api.read_task(uuid)', 'api.list_tasks()',
          'api.cancel_task(uuid)', 'public.me()', 'public.users_own_email(bigint)'
        )`,
    breach: `
      create function public.climb() returns int language sql security definer set search_path = '' as 'select 1';
      grant execute on function public.climb to authenticated`,
    reported: "public.climb()",
  },
  {
    rule: "no function is everybody's",
    violations: `
      select name from (${FUNCTIONS}) as functions
      where exists (select from aclexplode(coalesce(proacl, acldefault('f', proowner))) where grantee = 0)`,
    breach: `
      create function public.open() returns int language sql set search_path = '' as 'select 1';
      grant execute on function public.open to public`,
    reported: "public.open()",
  },
  {
    rule: "what a client sees has a comment",
    violations: `
      select name from (${EXPOSED}) as exposed where obj_description(oid, 'pg_class') is null
      union all
      select name || '.' || attname from (${EXPOSED}) as exposed
      join pg_attribute on attrelid = exposed.oid and attnum > 0 and not attisdropped
      where col_description(attrelid, attnum) is null
      union all
      select name from (${FUNCTIONS}) as functions where ${CALLABLE} and obj_description(oid, 'pg_proc') is null
      union all
      select format_type(pg_type.oid, null) from pg_type
      join pg_namespace on pg_namespace.oid = typnamespace and ${OURS}
      left join pg_class as class on class.oid = typrelid
      where (typtype in ('e', 'd', 'r') or class.relkind = 'c') and obj_description(pg_type.oid, 'pg_type') is null`,
    breach: "alter table public.comments add mood text",
    reported: "public.comments.mood",
  },
  {
    rule: "a constraint that a client can break says what to do",
    violations: `
      select rule.name from (
        select conrelid as relation, conname as name, conkey as columns, obj_description(oid, 'pg_constraint') as advice
        from pg_constraint where contype in ('c', 'u', 'p', 'f', 'x') and conrelid <> 0
        union all
        select indrelid, indexrelid::regclass::text, indkey::smallint[], obj_description(indexrelid, 'pg_class')
        from pg_index where indisunique and not exists (select from pg_constraint where conindid = indexrelid)
      ) as rule
      join (${EXPOSED}) as exposed on exposed.oid = rule.relation
      where advice is null and exists (
        select from pg_attribute where attrelid = relation and (attnum = any (columns) or 0 = any (columns))
          and has_column_privilege('authenticated', relation, attnum, 'insert, update')
      )`,
    breach: "alter table public.comments add constraint comments_content_polite check (content <> 'No.')",
    reported: "comments_content_polite",
  },
  {
    rule: "a table of schema public logs whole rows for who follows its changes",
    violations: `
      select name from (${EXPOSED}) as exposed
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relreplident <> 'f'`,
    breach: "alter table public.comments replica identity default",
    reported: "public.comments",
  },
];

export async function violationsOf({ violations }: Rule, owner: pg.ClientBase): Promise<string[]> {
  // Postgres then writes every name with its schema.
  await owner.query("set search_path = ''");
  const { rows } = await owner.query<{ name: string }>(`${violations} order by name`);
  return rows.map(({ name }) => name);
}

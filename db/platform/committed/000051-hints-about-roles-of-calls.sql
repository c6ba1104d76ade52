--! Previous: sha1:16b6e3a19fccc8892f5735df746cc72e86a7f3b4
--! Hash: sha1:c9f9e9664476240438b795331161c0e158a33a31
--! Message: hints about roles of calls

--! Included private/callable_function.sql
-- Functions of Postgres and of extensions are left out: some run any SQL (query_to_xml), change settings of the connection or
-- read files of the server, and everybody may execute them. A function that the role may not execute is reported as one that does not exist.
create or replace function private.callable_function(role text, function text, arguments jsonb) returns regprocedure as $$
declare
  -- The name, with or without its schema, and the types of its parameters, with or without.
  v_parts text[] := regexp_match(
    function, '^\s*((?:(?:"(?:[^"]|"")+"|[^\s"().]+)\s*\.\s*)?(?:"(?:[^"]|"")+"|[^\s"().]+))\s*(\(.*\))?\s*$'
  );
  v_path text[];
  v_signature regprocedure;
  v_callable oid[];
  v_matching oid[];
begin
  begin
    v_path := parse_ident(v_parts[1]);
    v_path := case cardinality(v_path) when 1 then array['public'] || v_path else v_path end;
    v_signature := to_regprocedure(format('%I.%I', v_path[1], v_path[2]) || v_parts[2]);
  exception when others then
    v_path := null;
  end;

  select array_agg(proc.oid order by proc.oid) into v_callable
    from pg_proc as proc
    join pg_namespace as namespace on namespace.oid = proc.pronamespace
    join pg_type as result on result.oid = proc.prorettype
    where namespace.nspname = v_path[1] and proc.proname = v_path[2]
      and (v_parts[2] is null or proc.oid = v_signature)
      and proc.prokind = 'f' and (result.typtype <> 'p' or result.typname in ('void', 'record'))
      and namespace.nspname !~ '^pg_' and namespace.nspname <> 'information_schema'
      and not exists (
        select from pg_depend where classid = 'pg_proc'::regclass and objid = proc.oid and deptype = 'e'
      )
      and not exists (
        select from private.function_inputs(proc.oid) as input
        join pg_type on pg_type.oid = input.type where pg_type.typtype = 'p'
      )
      and has_schema_privilege(callable_function.role, namespace.oid, 'usage')
      and has_function_privilege(callable_function.role, proc.oid, 'execute');
  if v_callable is null then
    raise exception 'There is no function % that % may call', function, role using errcode = 'NTFND', detail = 'function',
      hint = format(
        'Write its name with its schema, and the types of its parameters where several have the name. If the role lacks the privilege: '
        'grant execute on function … to %I, and grant usage on its schema. Procedures, aggregates, '
        'triggers, functions with polymorphic parameters and those of Postgres and of extensions cannot be queued.', role
      );
  end if;

  select array_agg(callable order by callable) into v_matching
    from unnest(v_callable) as callable where private.takes_arguments(callable, callable_function.arguments);
  if v_matching is null then
    raise exception 'The arguments do not match the parameters of %', function using errcode = 'WRONG', detail = 'arguments',
      hint = 'It is called by ' || (
        select string_agg(
          format('%s(%s)', oid::regproc, pg_get_function_arguments(oid)), ' or ' order by oid
        ) from unnest(v_callable) as oid
      ) || '. Name each argument that has no default.';
  end if;
  if cardinality(v_matching) > 1 or private.is_ambiguous_call(v_matching[1], arguments) then
    raise exception 'Several functions take these arguments of %', function using errcode = 'WRONG', detail = 'function',
      hint = 'Write the types of the parameters, as in public.f(integer, text), and name all arguments.';
  end if;
  return v_matching[1];
end;
$$ language plpgsql set search_path = '';
comment on function private.callable_function is
  'The function that a role means by a name or a signature, and by the names of the arguments.';
--! EndIncluded private/callable_function.sql
--! Included private/check_task_role.sql
-- Tasks do not run as the owner of the tables or as a superuser, whom no policy binds: psql and triggers of the service act as them
-- without having chosen so. A role that bypasses policies, such as service_role, has to be chosen.
create or replace function private.check_task_role(role text) returns void as $$
declare
  v_become text := case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
begin
  if not exists (select from pg_roles where rolname = role) then
    raise exception 'There is no role %', role using errcode = 'WRONG', detail = 'role';
  end if;
  if exists (
    select from pg_roles where rolname = role and (
      rolsuper or oid = (select relowner from pg_class where oid = 'private.tasks'::regclass)
    )
  ) then
    raise exception 'No function is queued as %, which bypasses the policies', role
      using errcode = 'NOPER', hint = 'Choose a role of requests, such as service_role: "set role service_role" before '
        'api.enqueue, the argument of api.enqueue_as, or the column "role" of a schedule.';
  end if;
  -- The logins of the service are those that may lock tasks.
  if not exists (
    select from pg_roles as login
    where not login.rolsuper and has_function_privilege(login.oid, 'private.lock_task(text)', 'execute')
      and login.oid <> (select relowner from pg_class where oid = 'private.tasks'::regclass)
      and pg_has_role(login.oid, role, v_become)
  ) then
    raise exception 'The login of the service cannot run functions as %', role
      using errcode = 'NOPER', hint = format('Run once as the owner: grant %I to authenticator', role);
  end if;
end;
$$ language plpgsql stable set search_path = '';
comment on function private.check_task_role is 'Refuses roles that tasks cannot or must not run as.';
--! EndIncluded private/check_task_role.sql
--! Included private/tg__check_schedule_role.sql
-- With the rights of who writes, unlike the other checks.
create or replace function private.tg__check_schedule_role() returns trigger as $$
begin
  -- A schedule whose role is gone can be disabled.
  if TG_OP = 'UPDATE' and not NEW.is_enabled and NEW.role = OLD.role then
    return NEW;
  end if;
  if NEW.role is null then
    raise exception 'A schedule must have a role' using errcode = 'WRONG', detail = 'role',
      hint = 'Write the role that the function runs as, such as service_role.';
  end if;
  if to_regrole(quote_ident(NEW.role)) is null then
    raise exception 'There is no role %', NEW.role using errcode = 'WRONG', detail = 'role';
  end if;
  if not pg_has_role(to_regrole(quote_ident(NEW.role)), 'member') then
    raise exception 'Only members of % may choose it as the role of a schedule', NEW.role
      using errcode = 'NOPER', detail = 'role', hint = format('Run as a superuser: grant %I to %I', NEW.role, current_user);
  end if;
  return NEW;
end;
$$ language plpgsql set search_path = '';
comment on function private.tg__check_schedule_role is 'Refuses a role that the writer of a schedule is no member of.';
--! EndIncluded private/tg__check_schedule_role.sql

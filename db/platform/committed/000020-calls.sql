--! Previous: sha1:db6e15623bc346f572fff5728583eb604c38186b
--! Hash: sha1:5965d117492ce022e9db0a4602e8989607e9f415

-- Function calls that SQL queues: api.enqueue in the caller's own role, api.enqueue_as in another. And tasks, as SQL sees them.
create function content_service.function_inputs(function oid) returns table (name text, type oid, is_variadic boolean, is_required boolean)
begin atomic
  select nullif(input.name, ''), input.type, coalesce(input.mode = 'v', false),
    row_number() over (order by input.position) <= proc.pronargs - proc.pronargdefaults
  from pg_proc as proc,
    unnest(coalesce(proc.proallargtypes, proc.proargtypes::oid[]), proc.proargnames, proc.proargmodes)
      with ordinality as input (type, name, mode, position)
  where proc.oid = function_inputs.function and coalesce(input.mode, 'i') in ('i', 'b', 'v')
  order by input.position;
end;
comment on function content_service.function_inputs is 'The parameters of a function that a call gives values to; those without a name have null.';

create function content_service.takes_arguments(function oid, arguments jsonb) returns boolean
begin atomic
  select jsonb_typeof(arguments) = 'object'
    and not exists (
      select from jsonb_object_keys(case jsonb_typeof(arguments) when 'object' then arguments else '{}' end) as given
      where not exists (select from content_service.function_inputs(function) as input where input.name = given)
    )
    and not exists (select from content_service.function_inputs(function) as input where input.is_required and not coalesce(arguments ? input.name, false));
end;
comment on function content_service.takes_arguments is 'Whether a function can be called with these named arguments.';

-- A call by names finds the function again among all that have its name. Where arguments are left to their defaults, it may be another.
create function content_service.is_ambiguous_call(function oid, arguments jsonb) returns boolean
begin atomic
  select exists (select from content_service.function_inputs(function) as input where not coalesce(arguments ? input.name, false)) and exists (
      select from pg_proc as proc
      join pg_proc as other on other.proname = proc.proname and other.pronamespace = proc.pronamespace and other.oid <> proc.oid
      where proc.oid = function and content_service.takes_arguments(other.oid, arguments)
        and not exists (
          select from content_service.function_inputs(proc.oid) as input
          join content_service.function_inputs(other.oid) as other_input on other_input.name = input.name
          where arguments ? input.name and other_input.type <> input.type
        )
    );
end;
comment on function content_service.is_ambiguous_call is 'Whether a call with these named arguments could mean another function of the same name.';

-- Functions of Postgres and of extensions are left out: some run any SQL (query_to_xml), change settings of the connection or
-- read files of the server, and everybody may execute them. A function that the role may not execute is reported as one that does not exist.
create function content_service.callable_function(role text, function text, arguments jsonb) returns regprocedure as $$
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
        select from content_service.function_inputs(proc.oid) as input
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
    from unnest(v_callable) as callable where content_service.takes_arguments(callable, callable_function.arguments);
  if v_matching is null then
    raise exception 'The arguments do not match the parameters of %', function using errcode = 'WRONG', detail = 'arguments',
      hint = 'It is called by ' || (
        select string_agg(
          format('%s(%s)', oid::regproc, pg_get_function_arguments(oid)), ' or ' order by oid
        ) from unnest(v_callable) as oid
      ) || '. Name each argument that has no default.';
  end if;
  if cardinality(v_matching) > 1 or content_service.is_ambiguous_call(v_matching[1], arguments) then
    raise exception 'Several functions take these arguments of %', function using errcode = 'WRONG', detail = 'function',
      hint = 'Write the types of the parameters, as in public.f(integer, text), and name all arguments.';
  end if;
  return v_matching[1];
end;
$$ language plpgsql set search_path = '';
comment on function content_service.callable_function is 'The function that a role means by a name or a signature, and by the names of the arguments.';

-- The names of types and functions are those of an empty search path, so the caller's does not matter. $1 is the object of arguments.
create function content_service.call_statement(function text, arguments jsonb) returns text as $$
declare
  v_function regprocedure := to_regprocedure(function);
  v_inputs text := (
    select string_agg(format('%I %s', input.name, format_type(input.type, null)), ', ')
    from content_service.function_inputs(v_function) as input where arguments ? input.name
  );
  v_values text := (
    select string_agg(
      format('%s%I => given.%I', case when input.is_variadic then 'variadic ' end, input.name, input.name), ', '
    )
    from content_service.function_inputs(v_function) as input where arguments ? input.name
  );
  v_from text := case
    when v_inputs is null then '(select $1::pg_catalog.jsonb) as given'
    else format('pg_catalog.jsonb_to_record($1::pg_catalog.jsonb) as given (%s)', v_inputs)
  end;
  v_call text;
begin
  select format('%I.%I(%s)', namespace.nspname, proc.proname, v_values) into v_call
    from pg_proc as proc join pg_namespace as namespace on namespace.oid = proc.pronamespace
    where proc.oid = v_function;
  return (
    select case
      when proc.proretset then format(
        'select coalesce(pg_catalog.json_agg(item), ''[]'') from (select %s as item from %s) as call', v_call, v_from
      )
      when proc.prorettype = 'void'::regtype then format(
        'select nullif(%s::pg_catalog.text, '''')::pg_catalog.json from %s', v_call, v_from
      )
      else format('select pg_catalog.to_json(%s) from %s', v_call, v_from)
    end
    from pg_proc as proc where proc.oid = v_function
  );
end;
$$ language plpgsql stable set search_path = '';
comment on function content_service.call_statement is 'The statement that calls a function with an object of arguments and returns its result as JSON; null where the function does not exist.';

-- Tasks do not run as the owner of the tables or as a superuser, whom no policy binds: psql and triggers of the service act as them
-- without having chosen so. A role that bypasses policies, such as service_role, has to be chosen.
create function content_service.check_task_role(role text) returns void as $$
declare
  v_become text := case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
begin
  if not exists (select from pg_roles where rolname = role) then
    raise exception 'There is no role %', role using errcode = 'WRONG', detail = 'role';
  end if;
  if exists (
    select from pg_roles where rolname = role and (
      rolsuper or oid = (select relowner from pg_class where oid = 'content_service.tasks'::regclass)
    )
  ) then
    raise exception 'No function is queued as %, which bypasses the policies', role
      using errcode = 'NOPER', hint = 'Choose a role of requests, such as service_role: "set role service_role" before '
        'api.enqueue, the argument of api.enqueue_as, or the column "role" of a schedule.';
  end if;
  -- The logins of the service are those that may lock tasks.
  if not exists (
    select from pg_roles as login
    where not login.rolsuper and has_function_privilege(login.oid, 'content_service.lock_task(text)', 'execute')
      and login.oid <> (select relowner from pg_class where oid = 'content_service.tasks'::regclass)
      and pg_has_role(login.oid, role, v_become)
  ) then
    raise exception 'The login of the service cannot run functions as %', role
      using errcode = 'NOPER', hint = format('Run once as the owner: grant %I to authenticator', role);
  end if;
end;
$$ language plpgsql stable set search_path = '';
comment on function content_service.check_task_role is 'Refuses roles that tasks cannot or must not run as.';

-- A waiting task with the same key is replaced and keeps its id. One that has begun stays: the new one waits beside it.
create function content_service.queue_call(
  role text, claims jsonb, function text, arguments jsonb,
  run_at timestamptz default now(), key text default null, time_limit interval default null,
  lane text default null, caller_key text default null
) returns uuid as $$
#variable_conflict use_column
declare
  v_function text;
  v_id uuid;
  v_owner text := content_service.task_owner(queue_call.role, queue_call.claims);
  v_lane text := coalesce(queue_call.lane, content_service.task_lane(queue_call.role, queue_call.claims));
begin
  if to_regnamespace('graphile_worker') is null then
    raise exception 'There is no queue yet' using errcode = '55000', hint = 'Start the service: it creates the queue.';
  end if;
  perform content_service.check_task_role(role);
  v_function := content_service.callable_function(role, function, arguments)::text;
  if not isfinite(run_at) then
    raise exception 'The time to run at must be finite' using errcode = 'WRONG', detail = 'run_at';
  end if;
  if length(key) not between 1 and 200 then
    raise exception 'A key has 1 to 200 characters' using errcode = 'WRONG', detail = 'key';
  end if;

  insert into content_service.tasks as task (
    owner, work, caller, request, body, function, arguments, run_at, key, time_limit, lane, caller_key, bytes
  )
    values (
      v_owner, v_function,
      jsonb_build_object(
        'kind', case queue_call.role when 'anon' then 'anonymous' else 'known' end,
        'role', queue_call.role, 'claims', queue_call.claims
      ),
      '{}', '', v_function, queue_call.arguments, coalesce(queue_call.run_at, now()), queue_call.key, queue_call.time_limit,
      v_lane, coalesce(queue_call.caller_key, v_owner),
      octet_length(queue_call.arguments::text) + coalesce(octet_length(queue_call.claims::text), 0)
    )
    on conflict (owner, key) where status = 'queued' and attempts = 0 do update
      set work = excluded.work, caller = excluded.caller, function = excluded.function, arguments = excluded.arguments,
        run_at = excluded.run_at, time_limit = excluded.time_limit, created_at = excluded.created_at,
        lane = excluded.lane, caller_key = excluded.caller_key, bytes = excluded.bytes, turn = null
    returning task.id into v_id;
  perform graphile_worker.add_job(
    'perform_' || v_lane, json_build_object('task', v_id), run_at => coalesce(queue_call.run_at, now()), job_key => v_id::text,
    max_attempts => 5
  );
  return v_id;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.queue_call is 'Queues the call of a function as a role and with claims. For the owner only; api.enqueue is for callers.';

-- Runs with the owner's rights, because requests cannot write tasks. The task has the role and the claims of the request or the session,
-- also where a function with other rights calls this one: "set role" is not changed by those.
create function api.enqueue(function text, arguments jsonb default '{}', run_at timestamptz default now(), key text default null) returns uuid as $$
declare
  v_role text := auth.role();
  v_claims jsonb := auth.jwt();
  v_owner text := content_service.task_owner(v_role, v_claims);
begin
  -- Callers without a user share an owner, so one would replace the tasks of the others.
  if key is not null and v_owner not like 'user %'
    and not exists (select from pg_roles where rolname = v_role and rolbypassrls)
  then
    raise exception 'A key needs a caller with a user' using errcode = 'WRONG', detail = 'key',
      hint = 'Callers whose claims have no "sub" share their role, and would replace each other''s tasks.';
  end if;
  perform content_service.check_task_bounds(content_service.task_lane(v_role, v_claims), v_owner, v_role);
  return content_service.queue_call(v_role, v_claims, function, arguments, run_at, key);
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function api.enqueue to authenticated, service_role;
comment on function api.enqueue is 'Queues a call of a function, which runs once, after the transaction has committed, with the role and the claims of who queues it. Returns the id of the task.';

-- Granted to nobody: security definer functions of the owner call it, such as triggers, and the owner in psql. Without claims the task
-- belongs to the role, so that the user whose request queued it neither sees nor cancels it.
create function api.enqueue_as(
  role text, function text, arguments jsonb default '{}', run_at timestamptz default now(), key text default null, claims jsonb default null
) returns uuid
begin atomic
  select content_service.queue_call(role, claims, function, arguments, run_at, key, lane => 'system');
end;
comment on function api.enqueue_as is 'Queues a call of a function as a role of the owner''s choice. For triggers with the rights of the owner, and for the owner.';

create function content_service.sees_task(owner text) returns boolean
language sql stable
return auth.is_admin() or sees_task.owner = content_service.task_owner(auth.role(), auth.jwt());
comment on function content_service.sees_task is 'Whether a task is the caller''s own; administrators see all.';

create function api.read_task(id uuid)
returns table (
  work text, status text, progress integer, result json, error jsonb, run_at timestamptz, created_at timestamptz, started_at timestamptz, finished_at timestamptz
) as $$
  select task.work, state.status, state.progress, state.result, state.error,
    task.run_at, state.created_at, state.started_at, state.finished_at
  from content_service.tasks as task
  cross join content_service.read_task(task.id, task.owner) as state
  where task.id = read_task.id and content_service.sees_task(task.owner);
$$ language sql stable security definer set search_path = '';
grant execute on function api.read_task to authenticated, service_role;
comment on function api.read_task is 'The state and the result of a task of the caller''s; no row for a task of others.';

-- Callers without a user share their tasks with all others of their role, who find them by their random ids only.
create function api.list_tasks() returns table (id uuid, work text, status text, key text, run_at timestamptz, created_at timestamptz) as $$
  select task.id, task.work, task.status, task.key, task.run_at, task.created_at
  from content_service.tasks as task
  where task.finished_at is null and (
    (select auth.is_admin()) or task.owner = (select content_service.task_owner(auth.role(), auth.jwt())) and (
      task.owner like 'user %' or (select rolbypassrls from pg_roles where rolname = auth.role())
    )
  )
  order by task.run_at, task.id;
$$ language sql stable security definer set search_path = '';
grant execute on function api.list_tasks to authenticated, service_role;
comment on function api.list_tasks is 'The tasks of the calling user that wait or run, those that are due first.';

create function api.cancel_task(id uuid) returns boolean as $$
declare
  v_is_cancelled boolean;
begin
  delete from content_service.tasks as task
    where task.id = cancel_task.id and task.status = 'queued' and content_service.sees_task(task.owner);
  v_is_cancelled := found;
  if v_is_cancelled then
    perform graphile_worker.remove_job(cancel_task.id::text);
  end if;
  return v_is_cancelled;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function api.cancel_task to authenticated, service_role;
comment on function api.cancel_task is 'Cancels a task of the caller''s that waits; false if it has begun or does not exist.';

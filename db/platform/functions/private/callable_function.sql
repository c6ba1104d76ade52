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

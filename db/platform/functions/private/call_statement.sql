-- The names of types and functions are those of an empty search path, so the caller's does not matter. $1 is the object of arguments.
create or replace function private.call_statement(function text, arguments jsonb) returns text as $$
declare
  v_function regprocedure := to_regprocedure(function);
  v_inputs text := (
    select string_agg(format('%I %s', input.name, format_type(input.type, null)), ', ')
    from private.function_inputs(v_function) as input where arguments ? input.name
  );
  v_values text := (
    select string_agg(
      format('%s%I => given.%I', case when input.is_variadic then 'variadic ' end, input.name, input.name), ', '
    )
    from private.function_inputs(v_function) as input where arguments ? input.name
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
comment on function private.call_statement is
  'The statement that calls a function with an object of arguments and returns its result as JSON; null where the function does not exist.';

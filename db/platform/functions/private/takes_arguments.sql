create or replace function private.takes_arguments(function oid, arguments jsonb) returns boolean
begin atomic
  select jsonb_typeof(arguments) = 'object'
    and not exists (
      select from jsonb_object_keys(case jsonb_typeof(arguments) when 'object' then arguments else '{}' end) as given
      where not exists (select from private.function_inputs(function) as input where input.name = given)
    )
    and not exists (
      select from private.function_inputs(function) as input
      where input.is_required and not coalesce(arguments ? input.name, false)
    );
end;
comment on function private.takes_arguments is 'Whether a function can be called with these named arguments.';

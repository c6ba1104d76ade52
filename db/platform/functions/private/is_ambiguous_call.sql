-- A call by names finds the function again among all that have its name. Where arguments are left to their defaults, it may be another.
create or replace function private.is_ambiguous_call(function oid, arguments jsonb) returns boolean
begin atomic
  select exists (
      select from private.function_inputs(function) as input where not coalesce(arguments ? input.name, false)
    ) and exists (
      select from pg_proc as proc
      join pg_proc as other on other.proname = proc.proname and other.pronamespace = proc.pronamespace and other.oid <> proc.oid
      where proc.oid = function and private.takes_arguments(other.oid, arguments)
        and not exists (
          select from private.function_inputs(proc.oid) as input
          join private.function_inputs(other.oid) as other_input on other_input.name = input.name
          where arguments ? input.name and other_input.type <> input.type
        )
    );
end;
comment on function private.is_ambiguous_call is
  'Whether a call with these named arguments could mean another function of the same name.';

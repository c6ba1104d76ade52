create or replace function private.function_inputs(function oid)
returns table (name text, type oid, is_variadic boolean, is_required boolean)
begin atomic
  select nullif(input.name, ''), input.type, coalesce(input.mode = 'v', false),
    row_number() over (order by input.position) <= proc.pronargs - proc.pronargdefaults
  from pg_proc as proc,
    unnest(coalesce(proc.proallargtypes, proc.proargtypes::oid[]), proc.proargnames, proc.proargmodes)
      with ordinality as input (type, name, mode, position)
  where proc.oid = function_inputs.function and coalesce(input.mode, 'i') in ('i', 'b', 'v')
  order by input.position;
end;
comment on function private.function_inputs is 'The parameters of a function that a call gives values to; those without a name have null.';

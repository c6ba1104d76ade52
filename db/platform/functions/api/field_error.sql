-- The message is the comment on the constraint; functions that return errors as data look it up here.
create or replace function api.field_error(broken_table regclass, broken_constraint text)
returns public.field_error as $$
  select row(attribute.attname, coalesce(obj_description(rule.oid, 'pg_constraint'), rule.conname || ' is violated'))
  from pg_constraint as rule
  left join pg_attribute as attribute on attribute.attrelid = rule.conrelid and attribute.attnum = rule.conkey[1]
  where rule.conrelid = broken_table and rule.conname = broken_constraint;
$$ language sql stable parallel safe set search_path = '';
grant execute on function api.field_error to anon, authenticated, service_role;
comment on function api.field_error is 'A violated constraint as its field and the comment on it.';

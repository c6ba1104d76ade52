--! Previous: sha1:2eee5f8b64e11e723919450ee7f2103dc51c87d6
--! Hash: sha1:345f85c4198c589fb5f4b581f5a0a95e46077e9a
--! Message: field errors

-- A function that returns errors as data, one per field, takes the message from the comment of the violated constraint.
create type public.field_error as (field text, message text);
comment on type public.field_error is 'One field of the input and what is wrong with it.';
comment on column public.field_error.field is e'@notNull\nThe name of the field.';
comment on column public.field_error.message is e'@notNull\nWhat to do about it.';

--! Included api/field_error.sql
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
--! EndIncluded api/field_error.sql

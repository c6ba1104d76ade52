--! Previous: sha1:11c2d6a4754b7fb8ad22bdb5c587bc7d69020dce
--! Hash: sha1:9bbd89cae85a8b8e0196e97c013fae124016a7f7
--! Message: schema changes

-- The service reloads its catalogue when it is notified on PostgREST's channel. Event triggers do so after every DDL statement;
-- where the owner may not create them, the service polls.
--! Included private/tg__schema_changed.sql
-- Runs as whoever changes the schema. Temporary tables and refreshed materialized views are ignored. So are objects dropped with
-- another: on Postgres 14 the defaults of a temporary table do not count as temporary.
create or replace function private.tg__schema_changed() returns event_trigger as $$
begin
  if TG_EVENT = 'sql_drop' then
    if not exists (select from pg_event_trigger_dropped_objects() where original and not is_temporary) then
      return;
    end if;
  elsif not exists (
    select from pg_event_trigger_ddl_commands()
    where schema_name is distinct from 'pg_temp' and command_tag <> 'REFRESH MATERIALIZED VIEW'
  ) then
    return;
  end if;
  notify pgrst, 'reload schema';
  -- Also in the change stream, where it precedes changes that the new policies apply to.
  perform pg_logical_emit_message(true, 'schema', '');
end;
$$ language plpgsql set search_path = '';
comment on function private.tg__schema_changed is 'Notifies the service that the schema has changed.';
--! EndIncluded private/tg__schema_changed.sql

do $$
begin
  create event trigger schema_changed on ddl_command_end execute function private.tg__schema_changed();
  create event trigger schema_dropped on sql_drop execute function private.tg__schema_changed();
exception when insufficient_privilege then
  raise notice 'Without event triggers: changes of the schema are noticed by polling'
    using hint = 'Only a superuser may create event triggers.';
end $$;

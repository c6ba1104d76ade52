--! Previous: sha1:a2f9cf9cae44649cd46d80d09576e362aacba667
--! Hash: sha1:b1f2f352fc3f6df89321f3b261f0dee65e10386b
--! Message: schema_changes

-- The engine reloads the catalogue when it is told to, on PostgREST's channel and in its words. An event trigger does so
-- at every change; who may not create one has the engine look for changes by itself.
--! Included private/tg__schema_changed.sql
-- Runs as whoever changes something. A temporary table is nobody else's business, and a materialized view that is
-- refreshed has the shape it had.
create or replace function private.tg__schema_changed() returns event_trigger as $$
begin
  if TG_EVENT = 'sql_drop' then
    if not exists (select from pg_event_trigger_dropped_objects() where not is_temporary) then
      return;
    end if;
  elsif not exists (
    select from pg_event_trigger_ddl_commands()
    where schema_name is distinct from 'pg_temp' and command_tag <> 'REFRESH MATERIALIZED VIEW'
  ) then
    return;
  end if;
  notify pgrst, 'reload schema';
end;
$$ language plpgsql set search_path = '';
comment on function private.tg__schema_changed is 'Tells the engine that the schema has changed.';
--! EndIncluded private/tg__schema_changed.sql

do $$
begin
  create event trigger schema_changed on ddl_command_end execute function private.tg__schema_changed();
  create event trigger schema_dropped on sql_drop execute function private.tg__schema_changed();
exception when insufficient_privilege then
  raise notice 'Without event triggers: changes of the schema are noticed by polling'
    using hint = 'Only a superuser may create event triggers.';
end $$;

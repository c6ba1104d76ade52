-- For a database that is served without the migrations: tells the service of each change of the schema, which it otherwise
-- notices by looking every few seconds. It may be run again. Only a superuser may create event triggers, or who is as good
-- as one at your provider.
create schema if not exists content_service_watch;

create or replace function content_service_watch.tell_of_schema_change() returns event_trigger
language plpgsql set search_path = '' as $$
begin
  if tg_event = 'sql_drop' then
    -- What goes with something else is not looked at.
    if not exists (select from pg_event_trigger_dropped_objects() where original and not is_temporary) then
      return;
    end if;
  elsif tg_tag not in ('DROP OWNED', 'REASSIGN OWNED') and not exists (
    select from pg_event_trigger_ddl_commands()
    where schema_name is distinct from 'pg_temp' and command_tag <> 'REFRESH MATERIALIZED VIEW'
  ) then
    return;
  end if;
  perform pg_notify('pgrst', 'reload schema');
  -- The same in the change stream, ahead of the changes that are to be judged by the new policies.
  perform pg_logical_emit_message(true, 'schema', '');
end $$;

drop event trigger if exists content_service_changed;
create event trigger content_service_changed on ddl_command_end
  execute function content_service_watch.tell_of_schema_change();
drop event trigger if exists content_service_dropped;
create event trigger content_service_dropped on sql_drop
  execute function content_service_watch.tell_of_schema_change();

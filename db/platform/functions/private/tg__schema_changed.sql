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

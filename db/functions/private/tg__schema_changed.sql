-- Runs as whoever changes something. A temporary table is nobody else's business, and a materialized view that is
-- refreshed has the shape it had. What goes with something else is not looked at: on Postgres 14 the defaults of a
-- temporary table pass for ones that are not temporary.
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
  -- The same in the change stream, where it comes ahead of the changes that are to be judged by the new policies.
  perform pg_logical_emit_message(true, 'schema', '');
end;
$$ language plpgsql set search_path = '';
comment on function private.tg__schema_changed is 'Tells the engine that the schema has changed.';

-- The names of the parameters are Supabase's.
create or replace function realtime.broadcast_changes(
  topic_name text,
  event_name text,
  operation text,
  table_name text,
  table_schema text,
  new record,
  old record,
  level text default 'ROW'
) returns void as $$
begin
  if level = 'STATEMENT' then
    raise exception 'Changes are broadcast for each row, not for each statement' using errcode = 'WRONG', detail = 'level';
  end if;
  perform realtime.send(
    jsonb_build_object(
      'old_record', to_jsonb(broadcast_changes.old),
      'record', to_jsonb(broadcast_changes.new),
      'operation', operation,
      'table', table_name,
      'schema', table_schema
    ),
    event_name,
    topic_name
  );
end;
$$ language plpgsql volatile set search_path = '';

grant execute on function realtime.broadcast_changes to service_role;
comment on function realtime.broadcast_changes is
  'Broadcasts the change of a row to a private channel; for triggers, which pass NEW and OLD.';

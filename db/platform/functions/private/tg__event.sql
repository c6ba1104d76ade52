-- Commits that notify are serialized (300 a second instead of 2,000), so events are emitted only while there is a listener. The check
-- locks the sequence until the end of the transaction: private.await_events thereby sees which transactions have checked before it.
-- Keys only: a payload over 8,000 bytes would fail the user's own write, and the subscriber re-reads the row in its own role anyway.
-- Keys are sent as text, because a bigint does not survive JSON in JavaScript.
-- Security definer, because callers may not use the sequences; it reads nothing but the row at hand.
create or replace function private.tg__event() returns trigger as $$
declare
  v_row jsonb;
  v_schema text := TG_TABLE_SCHEMA;
  v_table text := TG_TABLE_NAME;
begin
  if coalesce(to_timestamp(pg_sequence_last_value('private.events_awaited_until')) < clock_timestamp(), true) then
    return null;
  end if;
  v_row := to_jsonb(case TG_OP when 'DELETE' then OLD else NEW end);
  -- The trigger of a partitioned table fires on the partition; clients know the partitioned table.
  if pg_partition_root(TG_RELID) <> TG_RELID then
    select pg_namespace.nspname, pg_class.relname into v_schema, v_table
      from pg_class join pg_namespace on pg_namespace.oid = pg_class.relnamespace
      where pg_class.oid = pg_partition_root(TG_RELID);
  end if;
  perform pg_notify('graphql', jsonb_build_object(
    'n', nextval('private.event_number'),
    's', v_schema,
    't', v_table,
    'op', lower(TG_OP),
    'k', (select jsonb_object_agg(key, v_row ->> key) from unnest('{id}' || TG_ARGV) as key where v_row ? key)
  )::text);
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.tg__event is
  'For each row: notifies channel graphql of the change, while events are awaited. Arguments: the columns to send besides id.';

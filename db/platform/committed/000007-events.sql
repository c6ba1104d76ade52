--! Previous: sha1:148aee9b222b9cd975a2f97a97769753ba51039c
--! Hash: sha1:d4ecae4b78be2965d8eff829a9a936c726217224
--! Message: events

-- Domain events for GraphQL subscriptions. A trigger on a table emits them; "@subscription" in the table's comment names the
-- subscription and the column by which a subscriber may filter (by:id? is optional).

-- Notifications are lost while nobody listens. A listener that reconnects compares the last number with those it has received, and
-- knows whether it missed an event.
create sequence private.event_number;
comment on sequence private.event_number is 'Numbers the events that are sent on channel graphql.';

-- Events are emitted only while a listener has asked for them; a listener that is killed is forgotten when its time is over.
-- A sequence, because its value is visible to all transactions at once, whatever their isolation level.
create sequence private.events_awaited_until;
comment on sequence private.events_awaited_until is 'Until when events are emitted, in seconds since 1970.';

--! Included private/tg__event.sql
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
--! EndIncluded private/tg__event.sql
--! Included private/await_events.sql
-- A listener calls this first, and again before the time is over; several may. Events of a time without listeners are neither sent nor
-- numbered: one number is skipped, so that listeners notice the gap.
create or replace function private.await_events(
  seconds integer,
  out was_awaited boolean,
  out at double precision,
  out writers text[]
) as $$
declare
  v_now timestamptz;
begin
  -- Serialized: otherwise the time could be set back.
  perform pg_advisory_xact_lock(hashtext('private.await_events'));
  v_now := clock_timestamp();
  was_awaited := coalesce(to_timestamp(pg_sequence_last_value('private.events_awaited_until')) >= v_now, false);
  at := extract(epoch from v_now);
  perform setval('private.events_awaited_until', ceil(at)::bigint + seconds);
  if not was_awaited then
    perform nextval('private.event_number');
  end if;
  select coalesce(array_agg(virtualtransaction), '{}') into writers
    from pg_locks
    where locktype = 'relation' and relation = 'private.events_awaited_until'::regclass and mode = 'RowExclusiveLock'
      and database = (select oid from pg_database where datname = current_database())
      and pid is distinct from pg_backend_pid();
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.await_events to authenticator;
comment on function private.await_events is
  'Emits events for so many seconds. Returns whether they were emitted until now, when that was, and which transactions had checked already.';
--! EndIncluded private/await_events.sql

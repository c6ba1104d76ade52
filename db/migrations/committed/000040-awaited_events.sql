--! Previous: sha1:6ae00c9da97d9a939acfce8e1ba4c4961fe20162
--! Hash: sha1:d9d677f83ede58d6976792ac2affaab22066d5c4
--! Message: awaited_events

--! split: 0010-awaited_events.sql
-- Events are told while somebody waits for them. Whoever does says for how long, and says so again: one that is killed
-- is forgotten after a while. A sequence, because all see the same value of it at once, however their transactions are isolated.
create sequence if not exists private.events_awaited_until;
comment on sequence private.events_awaited_until is 'Until when events are told, in seconds since 1970.';
--! Included private/tg__event.sql
-- Commits that notify wait for one another (300 a second instead of 2,000), so nothing is told while nobody waits for it.
-- To look whether somebody does holds the sequence until the transaction's end: so private.await_events sees who has
-- looked before it, and is not over yet.
-- Keys only: a payload over 8,000 bytes would fail the user's own write, and the subscriber re-reads the row in its own
-- role anyway. Keys travel as text, because a bigint does not survive JSON in JavaScript.
-- Runs as its owner, since nobody else may count events; it reads nothing but the row at hand.
create or replace function private.tg__event() returns trigger as $$
declare
  v_row jsonb;
begin
  if coalesce(to_timestamp(pg_sequence_last_value('private.events_awaited_until')) < clock_timestamp(), true) then
    return null;
  end if;
  v_row := to_jsonb(case TG_OP when 'DELETE' then OLD else NEW end);
  perform pg_notify('graphql', jsonb_build_object(
    'n', nextval('private.event_number'),
    's', TG_TABLE_SCHEMA,
    't', TG_TABLE_NAME,
    'op', lower(TG_OP),
    'k', (select jsonb_object_agg(key, v_row ->> key) from unnest('{id}' || TG_ARGV) as key where v_row ? key)
  )::text);
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.tg__event is
  'For each row: tells channel graphql which row changed, while events are awaited. Arguments: the columns to send besides id.';
--! EndIncluded private/tg__event.sql
--! Included private/await_events.sql
-- Whoever hands events on calls this first, and again before the time is over; several may. Where nobody did for a while,
-- what happened then was neither told nor numbered: a number is left out, so that all who count notice.
create or replace function private.await_events(
  seconds integer,
  out was_awaited boolean,
  out at double precision,
  out writers text[]
) as $$
declare
  v_now timestamptz;
begin
  -- One at a time, or the time could be set back.
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
  'Has events told for so many seconds. Answers whether they were until now, when that was, and which transactions have looked already.';
--! EndIncluded private/await_events.sql

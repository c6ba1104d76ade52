--! Previous: sha1:c10e9d52217194f0d3145fa3e1da02dc5a7ef495
--! Hash: sha1:da6e13400593386b7d2c0e52f85d6d62355a3fb7

-- What notices changes: times of rows, the schema, rows that are streamed to subscribers, and events.

-- For tables with the columns created_at and updated_at.

-- The time of the change, not the start of the transaction: other transactions may have changed and shown the row meanwhile. It always
-- moves forward, whatever the clock does; by at least one millisecond, because clients read times in milliseconds.
create function content_service.tg__timestamps() returns trigger as $$
begin
  NEW.created_at := OLD.created_at;
  NEW.updated_at := greatest(clock_timestamp(), OLD.updated_at + interval '1 millisecond');
  return NEW;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.tg__timestamps is 'Before update: keeps created_at, moves updated_at forward.';

-- The service reloads its catalogue when it is notified on PostgREST's channel. Event triggers do so after every DDL statement;
-- where the owner may not create them, the service polls.

-- Runs as whoever changes the schema. Temporary tables and refreshed materialized views are ignored. So are objects dropped with
-- another: on Postgres 14 the defaults of a temporary table do not count as temporary.
create function content_service.tg__schema_changed() returns event_trigger as $$
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
comment on function content_service.tg__schema_changed is 'Notifies the service that the schema has changed.';

do $$
begin
  create event trigger schema_changed on ddl_command_end execute function content_service.tg__schema_changed();
  create event trigger schema_dropped on sql_drop execute function content_service.tg__schema_changed();
exception when insufficient_privilege then
  raise notice 'Without event triggers: changes of the schema are noticed by polling'
    using hint = 'Only a superuser may create event triggers.';
end $$;

-- Row changes reach subscribers from the tables of this publication, whose name is Supabase's. A table that is dropped from it
-- stays out: "alter publication supabase_realtime drop table public.notes".
do $$
begin
  if not exists (select from pg_publication where pubname = 'supabase_realtime') then
    create publication supabase_realtime with (publish_via_partition_root = true);
  end if;
  if current_setting('server_version_num')::int >= 180000 then
    alter publication supabase_realtime set (publish_generated_columns = stored);
  end if;
exception when insufficient_privilege then
  raise warning 'Without a publication supabase_realtime that is ours, row changes are not streamed: %', sqlerrm;
end $$;

-- Subscribers receive the old row and policies are checked against it: both need all of its columns in the WAL (replica identity
-- full), which costs nothing where wal_level is below logical. Two event triggers set this up for each new table that may be
-- served. Publishing a table never prevents updates of it: see content_service.keep_writable.

-- Every schema with USAGE for authenticated may be served, except schemas of this service that hold no tables of applications.
create function content_service.is_served(class pg_class) returns boolean
language sql stable
return class.relkind in ('r', 'p')
  and class.relpersistence = 'p'
  and class.relnamespace not in ('auth'::regnamespace, 'api'::regnamespace, 'extensions'::regnamespace)
  and has_schema_privilege('authenticated', class.relnamespace, 'usage');
comment on function content_service.is_served is 'Whether this table may be served.';

-- Schema content_service is closed to other roles that create tables.
create function content_service.tg__log_whole_rows() returns event_trigger as $$
declare
  v_table regclass;
begin
  for v_table in
    select class.oid
    from pg_event_trigger_ddl_commands() as command
    join pg_class as class on command.classid = 'pg_class'::regclass and class.oid = command.objid
    where content_service.is_served(class) and not command.in_extension
  loop
    execute format('alter table %s replica identity full', v_table);
  end loop;
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.tg__log_whole_rows is 'Gives a new table that may be served the replica identity full.';

-- A virtual column is not in the WAL, and Postgres 18 refuses to update a published table with replica identity full that has one. Such a
-- table uses its key as replica identity; without a key it is not published.
create function content_service.keep_writable("table" regclass) returns void as $$
begin
  if not exists (
    select from pg_attribute where attrelid = "table" and attgenerated = 'v' and not attisdropped
  ) then
    return;
  end if;
  if exists (select from pg_class where oid = "table" and relreplident = 'f') then
    execute format('alter table %s replica identity default', "table");
  end if;
  if not exists (select from pg_index where indrelid = "table" and indisprimary) and exists (
    select from pg_publication_rel
    join pg_publication on pg_publication.oid = prpubid
    where prrelid = "table" and pubname = 'supabase_realtime'
  ) then
    execute format('alter publication supabase_realtime drop table %s', "table");
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.keep_writable is 'Changes the replica identity of a published table if it would prevent updates.';

-- Rows of a partition are published as rows of its root. The publication belongs to the owner of the database, who need not be the role
-- that creates a table. An altered table is not published again: it may have been removed on purpose.
create function content_service.tg__publish_rows() returns event_trigger as $$
declare
  v_table regclass;
  v_is_new boolean;
begin
  for v_table, v_is_new in
    select class.oid, bool_or(command.command_tag <> 'ALTER TABLE')
    from pg_event_trigger_ddl_commands() as command
    join pg_class as class on command.classid = 'pg_class'::regclass and class.oid = command.objid
    where content_service.is_served(class)
      and not command.in_extension
      and exists (select from pg_publication where pubname = 'supabase_realtime' and not puballtables)
    group by class.oid
  loop
    if v_is_new and not (select relispartition from pg_class where oid = v_table) then
      execute format('alter publication supabase_realtime add table %s', v_table);
    end if;
    perform content_service.keep_writable(member)
    from (select v_table union select relid from pg_partition_tree(v_table)) as members (member);
  end loop;
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.tg__publish_rows is 'Publishes the changes of a new table that may be served.';

-- Event triggers run in the order of their names: log_whole_rows first.
do $$
begin
  create event trigger log_whole_rows on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO')
    execute function content_service.tg__log_whole_rows();
  create event trigger publish_rows on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE')
    execute function content_service.tg__publish_rows();
exception when insufficient_privilege then
  raise notice 'Without event triggers: say "alter table … replica identity full" and "alter publication supabase_realtime add table …" for each new table that is served'
    using hint = 'Only a superuser may create event triggers.';
end $$;

-- Domain events for GraphQL subscriptions. A trigger on a table emits them; "@subscription" in the table's comment names the
-- subscription and the column by which a subscriber may filter (by:id? is optional).

-- Notifications are lost while nobody listens. A listener that reconnects compares the last number with those it has received, and
-- knows whether it missed an event.
create sequence content_service.event_number;
comment on sequence content_service.event_number is 'Numbers the events that are sent on channel graphql.';

-- Events are emitted only while a listener has asked for them; a listener that is killed is forgotten when its time is over.
-- A sequence, because its value is visible to all transactions at once, whatever their isolation level.
create sequence content_service.events_awaited_until;
comment on sequence content_service.events_awaited_until is 'Until when events are emitted, in seconds since 1970.';

-- Commits that notify are serialized (300 a second instead of 2,000), so events are emitted only while there is a listener. The check locks the sequence until
-- the end of the transaction: content_service.await_events thereby sees which transactions have checked before it. Keys only: a payload over 8,000 bytes would fail the
-- user's own write, and the subscriber re-reads the row in its own role anyway. Keys are sent as text, because a bigint does not survive JSON in JavaScript.
-- Security definer, because callers may not use the sequences; it reads nothing but the row at hand.
create function content_service.tg__event() returns trigger as $$
declare
  v_row jsonb;
  v_schema text := TG_TABLE_SCHEMA;
  v_table text := TG_TABLE_NAME;
begin
  if coalesce(to_timestamp(pg_sequence_last_value('content_service.events_awaited_until')) < clock_timestamp(), true) then
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
    'n', nextval('content_service.event_number'),
    's', v_schema,
    't', v_table,
    'op', lower(TG_OP),
    'k', (select jsonb_object_agg(key, v_row ->> key) from unnest('{id}' || TG_ARGV) as key where v_row ? key)
  )::text);
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.tg__event is 'For each row: notifies channel graphql of the change, while events are awaited. Arguments: the columns to send besides id.';

-- A listener calls this first, and again before the time is over; several may. Events of a time without listeners are neither sent nor
-- numbered: one number is skipped, so that listeners notice the gap.
create function content_service.await_events(seconds integer, out was_awaited boolean, out at double precision, out writers text[]) as $$
declare
  v_now timestamptz;
begin
  -- Serialized: otherwise the time could be set back.
  perform pg_advisory_xact_lock(hashtext('content_service.await_events'));
  v_now := clock_timestamp();
  was_awaited := coalesce(to_timestamp(pg_sequence_last_value('content_service.events_awaited_until')) >= v_now, false);
  at := extract(epoch from v_now);
  perform setval('content_service.events_awaited_until', ceil(at)::bigint + seconds);
  if not was_awaited then
    perform nextval('content_service.event_number');
  end if;
  select coalesce(array_agg(virtualtransaction), '{}') into writers
    from pg_locks
    where locktype = 'relation' and relation = 'content_service.events_awaited_until'::regclass and mode = 'RowExclusiveLock'
      and database = (select oid from pg_database where datname = current_database())
      and pid is distinct from pg_backend_pid();
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function content_service.await_events to authenticator;
comment on function content_service.await_events is 'Emits events for so many seconds. Returns whether they were emitted until now, when that was, and which transactions had checked already.';

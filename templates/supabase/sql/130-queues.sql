-- The functions and tables of pgmq. Each queue is a table pgmq.q_<name>, and its archive a table pgmq.a_<name>.
create schema pgmq;
comment on schema pgmq is 'Queues of messages, with the functions and tables of pgmq.';

create table pgmq.meta (
  queue_name     character varying not null unique,
  is_partitioned boolean not null,
  is_unlogged    boolean not null,
  created_at     timestamptz not null default now()
);
comment on table pgmq.meta is '@sample all';
create type pgmq.message_record as (
  msg_id bigint, read_ct integer, enqueued_at timestamptz, vt timestamptz, message jsonb, headers jsonb
);
create type pgmq.queue_record as (queue_name character varying, is_partitioned boolean, is_unlogged boolean, created_at timestamptz);
create type pgmq.metrics_result as (
  queue_name text, queue_length bigint, newest_msg_age_sec integer, oldest_msg_age_sec integer, total_messages bigint,
  scrape_time timestamptz, queue_visible_length bigint
);

create function pgmq.validate_queue_name(queue_name text) returns void language plpgsql set search_path = '' as $$
begin
  if length(queue_name) > 47 then
    raise exception 'queue name is too long, maximum length is 47 characters';
  end if;
end;
$$;
create function pgmq.format_table_name(queue_name text, prefix text) returns text language plpgsql set search_path = '' as $$
begin
  if queue_name ~ '\$|;|--|''' then
    raise exception 'queue name contains invalid characters: $, ;, --, or \''';
  end if;
  return lower(prefix || '_' || queue_name);
end;
$$;

create function pgmq._create(queue_name text, unlogged boolean) returns void language plpgsql set search_path = '' as $$
declare
  v_queue text := pgmq.format_table_name(queue_name, 'q');
  v_archive text := pgmq.format_table_name(queue_name, 'a');
begin
  perform pgmq.validate_queue_name(queue_name);
  perform pg_advisory_xact_lock(hashtext('pgmq.' || v_queue));
  execute format(
    'create %s table if not exists pgmq.%I (
      msg_id bigint primary key generated always as identity, read_ct integer not null default 0,
      enqueued_at timestamptz not null default now(), vt timestamptz not null, message jsonb, headers jsonb
    )', case when unlogged then 'unlogged' else '' end, v_queue
  );
  execute format(
    'create table if not exists pgmq.%I (
      msg_id bigint primary key, read_ct integer not null default 0, enqueued_at timestamptz not null default now(),
      archived_at timestamptz not null default now(), vt timestamptz not null, message jsonb, headers jsonb
    )', v_archive
  );
  execute format('comment on table pgmq.%I is ''@anonymize empty''', v_queue);
  execute format('comment on table pgmq.%I is ''@anonymize empty''', v_archive);
  execute format('create index if not exists %I on pgmq.%I (vt asc)', v_queue || '_vt_idx', v_queue);
  execute format('create index if not exists %I on pgmq.%I (archived_at)', 'archived_at_idx_' || queue_name, v_archive);
  insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values (_create.queue_name, false, unlogged) on conflict do nothing;
end;
$$;
create function pgmq.create(queue_name text) returns void language sql set search_path = '' as $$ select pgmq._create($1, false); $$;
create function pgmq.create_non_partitioned(queue_name text) returns void language sql set search_path = '' as $$ select pgmq._create($1, false); $$;
create function pgmq.create_unlogged(queue_name text) returns void language sql set search_path = '' as $$ select pgmq._create($1, true); $$;
create function pgmq.create_partitioned(queue_name text, partition_interval text default '10000', retention_interval text default '100000')
returns void language plpgsql set search_path = '' as $$
begin
  raise exception 'pg_partman is required for partitioned queues' using errcode = 'feature_not_supported', hint = 'Use pgmq.create().';
end;
$$;
create function pgmq.drop_queue(queue_name text) returns boolean language plpgsql set search_path = '' as $$
begin
  perform pg_advisory_xact_lock(hashtext('pgmq.' || pgmq.format_table_name(queue_name, 'q')));
  if not exists (select from pgmq.meta where meta.queue_name = drop_queue.queue_name) then
    raise notice 'pgmq queue `%` does not exist', queue_name;
    return false;
  end if;
  execute format('drop table if exists pgmq.%I', pgmq.format_table_name(queue_name, 'q'));
  execute format('drop table if exists pgmq.%I', pgmq.format_table_name(queue_name, 'a'));
  delete from pgmq.meta where meta.queue_name = drop_queue.queue_name;
  return true;
end;
$$;
create function pgmq.drop_queue(queue_name text, partitioned boolean) returns boolean language sql set search_path = '' as $$ select pgmq.drop_queue($1); $$;
create function pgmq.purge_queue(queue_name text) returns bigint language plpgsql set search_path = '' as $$
declare
  v_count bigint;
begin
  execute format('select count(*) from pgmq.%I', pgmq.format_table_name(queue_name, 'q')) into v_count;
  execute format('truncate table pgmq.%I', pgmq.format_table_name(queue_name, 'q'));
  return v_count;
end;
$$;
create function pgmq.detach_archive(queue_name text) returns void language plpgsql set search_path = '' as $$ begin end; $$;
create function pgmq.list_queues() returns setof pgmq.queue_record language sql stable set search_path = '' as $$
  select queue_name, is_partitioned, is_unlogged, created_at from pgmq.meta;
$$;

create function pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[], delay timestamptz) returns setof bigint
language plpgsql set search_path = '' as $$
begin
  if coalesce(cardinality(msgs), 0) = 0 then
    raise exception 'msgs cannot be NULL or empty';
  end if;
  if headers is not null and cardinality(headers) <> cardinality(msgs) then
    raise exception 'headers array length must match msgs array length';
  end if;
  return query execute format(
    'insert into pgmq.%I (vt, message, headers)
      select $1, given.message, given.headers
      from unnest($2, coalesce($3, array_fill(null::jsonb, array[cardinality($2)]))) with ordinality as given (message, headers, place)
      order by place
      returning msg_id',
    pgmq.format_table_name(queue_name, 'q')
  ) using delay, msgs, headers;
end;
$$;
create function pgmq.send_batch(queue_name text, msgs jsonb[]) returns setof bigint language sql set search_path = '' as $$
  select pgmq.send_batch($1, $2, null::jsonb[], clock_timestamp()); $$;
create function pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[]) returns setof bigint language sql set search_path = '' as $$
  select pgmq.send_batch($1, $2, $3, clock_timestamp()); $$;
create function pgmq.send_batch(queue_name text, msgs jsonb[], delay integer) returns setof bigint language sql set search_path = '' as $$
  select pgmq.send_batch($1, $2, null::jsonb[], clock_timestamp() + make_interval(secs => $3)); $$;
create function pgmq.send_batch(queue_name text, msgs jsonb[], delay timestamptz) returns setof bigint language sql set search_path = '' as $$
  select pgmq.send_batch($1, $2, null::jsonb[], $3); $$;
create function pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[], delay integer) returns setof bigint language sql set search_path = '' as $$
  select pgmq.send_batch($1, $2, $3, clock_timestamp() + make_interval(secs => $4)); $$;
create function pgmq.send(queue_name text, msg jsonb) returns setof bigint language sql set search_path = '' as $$
  select pgmq.send_batch($1, array[$2], null::jsonb[], clock_timestamp()); $$;
create function pgmq.send(queue_name text, msg jsonb, headers jsonb) returns setof bigint language sql set search_path = '' as $$
  select pgmq.send_batch($1, array[$2], array[$3], clock_timestamp()); $$;
create function pgmq.send(queue_name text, msg jsonb, delay integer) returns setof bigint language sql set search_path = '' as $$
  select pgmq.send_batch($1, array[$2], null::jsonb[], clock_timestamp() + make_interval(secs => $3)); $$;
create function pgmq.send(queue_name text, msg jsonb, delay timestamptz) returns setof bigint language sql set search_path = '' as $$
  select pgmq.send_batch($1, array[$2], null::jsonb[], $3); $$;
create function pgmq.send(queue_name text, msg jsonb, headers jsonb, delay integer) returns setof bigint language sql set search_path = '' as $$
  select pgmq.send_batch($1, array[$2], array[$3], clock_timestamp() + make_interval(secs => $4)); $$;
create function pgmq.send(queue_name text, msg jsonb, headers jsonb, delay timestamptz) returns setof bigint language sql set search_path = '' as $$
  select pgmq.send_batch($1, array[$2], array[$3], $4); $$;

create function pgmq.read(queue_name text, vt integer, qty integer, conditional jsonb default '{}') returns setof pgmq.message_record
language plpgsql set search_path = '' as $$
begin
  return query execute format(
    'with readable as (
      select msg_id from pgmq.%1$I where vt <= clock_timestamp() and ($3 = ''{}'' or message @> $3)
      order by msg_id limit $1 for update skip locked
    ), read as (
      update pgmq.%1$I as queued set vt = clock_timestamp() + $2, read_ct = read_ct + 1
      from readable where queued.msg_id = readable.msg_id
      returning queued.msg_id, queued.read_ct, queued.enqueued_at, queued.vt, queued.message, queued.headers
    ) select * from read order by msg_id',
    pgmq.format_table_name(queue_name, 'q')
  ) using qty, make_interval(secs => vt), conditional;
end;
$$;
create function pgmq.read_with_poll(
  queue_name text, vt integer, qty integer, max_poll_seconds integer default 5, poll_interval_ms integer default 100, conditional jsonb default '{}'
) returns setof pgmq.message_record language plpgsql set search_path = '' as $$
declare
  v_until timestamptz := clock_timestamp() + make_interval(secs => max_poll_seconds);
begin
  loop
    return query select * from pgmq.read(queue_name, vt, qty, conditional);
    exit when found or clock_timestamp() > v_until;
    perform pg_sleep(poll_interval_ms / 1000.0);
  end loop;
end;
$$;
create function pgmq.pop(queue_name text, qty integer default 1) returns setof pgmq.message_record language plpgsql set search_path = '' as $$
begin
  return query execute format(
    'with readable as (
      select msg_id from pgmq.%1$I where vt <= clock_timestamp() order by msg_id limit $1 for update skip locked
    ), popped as (
      delete from pgmq.%1$I where msg_id in (select msg_id from readable)
      returning msg_id, read_ct, enqueued_at, vt, message, headers
    ) select * from popped order by msg_id',
    pgmq.format_table_name(queue_name, 'q')
  ) using qty;
end;
$$;
create function pgmq.delete(queue_name text, msg_ids bigint[]) returns setof bigint language plpgsql set search_path = '' as $$
begin
  return query execute format('delete from pgmq.%I where msg_id = any ($1) returning msg_id', pgmq.format_table_name(queue_name, 'q'))
    using msg_ids;
end;
$$;
create function pgmq.delete(queue_name text, msg_id bigint) returns boolean language sql set search_path = '' as $$
  select exists (select from pgmq.delete($1, array[$2])); $$;
create function pgmq.archive(queue_name text, msg_ids bigint[]) returns setof bigint language plpgsql set search_path = '' as $$
begin
  return query execute format(
    'with archived as (
      delete from pgmq.%I where msg_id = any ($1) returning msg_id, vt, read_ct, enqueued_at, message, headers
    )
    insert into pgmq.%I (msg_id, vt, read_ct, enqueued_at, message, headers)
      select msg_id, vt, read_ct, enqueued_at, message, headers from archived returning msg_id',
    pgmq.format_table_name(queue_name, 'q'), pgmq.format_table_name(queue_name, 'a')
  ) using msg_ids;
end;
$$;
create function pgmq.archive(queue_name text, msg_id bigint) returns boolean language sql set search_path = '' as $$
  select exists (select from pgmq.archive($1, array[$2])); $$;
create function pgmq.set_vt(queue_name text, msg_ids bigint[], vt timestamptz) returns setof pgmq.message_record language plpgsql set search_path = '' as $$
begin
  return query execute format(
    'update pgmq.%I set vt = $2 where msg_id = any ($1) returning msg_id, read_ct, enqueued_at, vt, message, headers',
    pgmq.format_table_name(queue_name, 'q')
  ) using msg_ids, vt;
end;
$$;
create function pgmq.set_vt(queue_name text, msg_ids bigint[], vt integer) returns setof pgmq.message_record language sql set search_path = '' as $$
  select * from pgmq.set_vt($1, $2, clock_timestamp() + make_interval(secs => $3)); $$;
create function pgmq.set_vt(queue_name text, msg_id bigint, vt integer) returns setof pgmq.message_record language sql set search_path = '' as $$
  select * from pgmq.set_vt($1, array[$2], clock_timestamp() + make_interval(secs => $3)); $$;
create function pgmq.set_vt(queue_name text, msg_id bigint, vt timestamptz) returns setof pgmq.message_record language sql set search_path = '' as $$
  select * from pgmq.set_vt($1, array[$2], $3); $$;

create function pgmq.metrics(queue_name text) returns pgmq.metrics_result language plpgsql set search_path = '' as $$
declare
  v_result pgmq.metrics_result;
begin
  execute format(
    'select $1, count(*), extract(epoch from clock_timestamp() - max(enqueued_at))::integer,
      extract(epoch from clock_timestamp() - min(enqueued_at))::integer,
      (select case when is_called then last_value else 0 end from pgmq.%I), clock_timestamp(), count(*) filter (where vt <= clock_timestamp())
    from pgmq.%I',
    pgmq.format_table_name(queue_name, 'q') || '_msg_id_seq', pgmq.format_table_name(queue_name, 'q')
  ) into v_result using queue_name;
  return v_result;
end;
$$;
create function pgmq.metrics_all() returns setof pgmq.metrics_result language sql set search_path = '' as $$
  select (pgmq.metrics(queue_name)).* from pgmq.meta; $$;

grant usage on schema pgmq to postgres, anon, authenticated, service_role;
grant all on all tables in schema pgmq to postgres, service_role;
grant all on all sequences in schema pgmq to postgres, service_role;
alter default privileges in schema pgmq grant all on tables to postgres, service_role;
alter default privileges in schema pgmq grant all on sequences to postgres, service_role;
-- Only those who may write the tables of a queue get further than this; callers of pgmq_public are granted a queue's table by the project.
grant select on pgmq.meta to anon, authenticated;

-- For clients: add pgmq_public to PGRST_DB_SCHEMAS, and grant a queue's table to their role.
create schema pgmq_public;
grant usage on schema pgmq_public to postgres, anon, authenticated, service_role;
comment on schema pgmq_public is 'Queues for clients, with the functions of Supabase Queues.';
create function pgmq_public.pop(queue_name text) returns setof pgmq.message_record language sql set search_path = '' as $$
  select * from pgmq.pop($1); $$;
create function pgmq_public.send(queue_name text, message jsonb, sleep_seconds integer default 0) returns setof bigint language sql set search_path = '' as $$
  select * from pgmq.send($1, $2, $3); $$;
create function pgmq_public.send_batch(queue_name text, messages jsonb[], sleep_seconds integer default 0) returns setof bigint
language sql set search_path = '' as $$ select * from pgmq.send_batch($1, $2, $3); $$;
create function pgmq_public.archive(queue_name text, message_id bigint) returns boolean language sql set search_path = '' as $$
  select pgmq.archive($1, $2); $$;
create function pgmq_public.delete(queue_name text, message_id bigint) returns boolean language sql set search_path = '' as $$
  select pgmq.delete($1, $2); $$;
create function pgmq_public.read(queue_name text, sleep_seconds integer, n integer) returns setof pgmq.message_record
language sql set search_path = '' as $$ select * from pgmq.read($1, $2, $3); $$;
comment on function pgmq_public.pop is 'Reads the next message and deletes it.';
comment on function pgmq_public.send is 'Adds a message, which is hidden for some seconds.';
comment on function pgmq_public.send_batch is 'Adds messages, which are hidden for some seconds.';
comment on function pgmq_public.archive is 'Moves a message to the archive.';
comment on function pgmq_public.delete is 'Deletes a message.';
comment on function pgmq_public.read is 'Reads messages, which are hidden for some seconds.';

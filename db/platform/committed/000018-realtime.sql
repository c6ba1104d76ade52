--! Previous: sha1:0f5c49ef022d71f8aade7df2dd7ef23c7356c002
--! Hash: sha1:01a3729de790efded353089508b29026a24a51ec

-- Channels. A message is broadcast through the write-ahead log and stored nowhere; the table exists for its policies, which decide
-- who may receive and send in a private channel. The service inserts a trial message as the caller and rolls it back.
create schema realtime;
comment on schema realtime is 'Channels: policies of private ones, and broadcasts from SQL.';

create table realtime.messages (
  id          uuid primary key default gen_random_uuid(),
  topic       text not null,
  extension   text not null constraint messages_extension check (extension in ('broadcast', 'presence')),
  event       text,
  payload     jsonb,
  private     boolean not null default false,
  inserted_at timestamptz not null default now(),
  updated_at  timestamptz not null default now()
);
-- Granted after the table was created, so that the event triggers did not take it for one that is served and publish it.
grant usage on schema realtime to anon, authenticated, service_role, authenticator;

-- Private channels are closed until a policy opens them:
--   create policy select_own_room on realtime.messages for select to authenticated
--     using ((select realtime.topic()) = 'user:' || (select auth.uid()));
alter table realtime.messages enable row level security;
create policy select_nobody on realtime.messages for select using (false); create policy insert_nobody on realtime.messages for insert with check (false);
-- The login inserts the row that the caller's SELECT policies are checked against.
create policy insert_trial on realtime.messages for insert to authenticator with check (true); grant select, insert on realtime.messages to anon, authenticated, service_role;
grant insert (id, topic, extension, private) on realtime.messages to authenticator;
comment on table realtime.messages is 'Its policies decide who may receive and send in private channels. It holds no rows.';
comment on constraint messages_pkey on realtime.messages is 'A message with this id exists.';
comment on constraint messages_extension on realtime.messages is 'The extension is broadcast or presence.';
comment on column realtime.messages.id is 'The message.';
comment on column realtime.messages.topic is 'The name of the channel.';
comment on column realtime.messages.extension is 'broadcast or presence.';
comment on column realtime.messages.event is 'The event''s name.';
comment on column realtime.messages.payload is 'The contents.';
comment on column realtime.messages.private is 'Whether the channel is private.';
comment on column realtime.messages.inserted_at is 'When it was sent.';
comment on column realtime.messages.updated_at is 'When it was last changed.';

create function realtime.topic() returns text
language sql stable parallel safe
return nullif(current_setting('realtime.topic', true), '');
grant execute on function realtime.topic to anon, authenticated, service_role;
comment on function realtime.topic is 'The private channel that is being checked, for policies on realtime.messages.';

-- Sent through the write-ahead log: delivered at every process when the transaction commits, and stored nowhere. Granted to no client role: the policies on
-- realtime.messages do not apply here. A trigger that sends on behalf of the writer is security definer.
create function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
language sql volatile
begin atomic
  select pg_logical_emit_message(true, 'realtime', jsonb_build_object(
    'said', jsonb_build_array(jsonb_build_object(
      'kind', 'broadcast',
      'topic', topic,
      'private', private,
      'event', event,
      'encoding', 'json',
      'payload', payload::text
    ))
  )::text);
end;
grant execute on function realtime.send to service_role;
comment on function realtime.send is 'Broadcasts to a channel, when the transaction commits.';

-- Like realtime.send, for data that is not JSON.
create function realtime.send_binary(payload bytea, event text, topic text, private boolean default true) returns void
language sql volatile
begin atomic
  select pg_logical_emit_message(true, 'realtime', jsonb_build_object(
    'said', jsonb_build_array(jsonb_build_object(
      'kind', 'broadcast',
      'topic', topic,
      'private', private,
      'event', event,
      'encoding', 'raw',
      'payload', encode(payload, 'base64')
    ))
  )::text);
end;
grant execute on function realtime.send_binary to service_role;
comment on function realtime.send_binary is 'Broadcasts bytes to a channel, when the transaction commits.';

-- The names of the parameters are Supabase's.
create function realtime.broadcast_changes(
  topic_name text, event_name text, operation text, table_name text, table_schema text, new record, old record, level text default 'ROW'
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
comment on function realtime.broadcast_changes is 'Broadcasts the change of a row to a private channel; for triggers, which pass NEW and OLD.';

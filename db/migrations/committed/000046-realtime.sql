--! Previous: sha1:b15e2ec98e02aea21d0abf5f427b764533f56e8b
--! Hash: sha1:22082829db4c7fb1ddcc2a87a4b88f39e211aa17
--! Message: realtime

--! split: 1-current.sql
-- Channels. A message is broadcast by way of the write-ahead log and kept nowhere; the table is there for its policies, which
-- say who may hear and who may speak in a private channel. The engine tries a message as the caller and undoes it.
create schema realtime;
comment on schema realtime is 'Channels: who may join private ones, and broadcasts from SQL.';

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
-- Granted now, so that the table was not yet one to be served when it was made: its changes are nobody's business.
grant usage on schema realtime to anon, authenticated, service_role, authenticator;

-- Nobody is let in until a policy says so:
--   create policy select_own_room on realtime.messages for select to authenticated
--     using ((select realtime.topic()) = 'user:' || (select auth.uid()));
alter table realtime.messages enable row level security;
create policy select_nobody on realtime.messages for select using (false);
create policy insert_nobody on realtime.messages for insert with check (false);
-- The login puts there what the caller is to see or not.
create policy insert_trial on realtime.messages for insert to authenticator with check (true);
grant select, insert on realtime.messages to anon, authenticated, service_role;
grant insert (id, topic, extension, private) on realtime.messages to authenticator;

comment on table realtime.messages is 'Who may hear and speak in private channels: its policies say so. It holds nothing.';
comment on constraint messages_pkey on realtime.messages is 'There is a message of that id already.';
comment on constraint messages_extension on realtime.messages is 'The extension is broadcast or presence.';
comment on column realtime.messages.id is 'The message.';
comment on column realtime.messages.topic is 'The name of the channel.';
comment on column realtime.messages.extension is 'What is heard or said: broadcast or presence.';
comment on column realtime.messages.event is 'The event''s name.';
comment on column realtime.messages.payload is 'What is said.';
comment on column realtime.messages.private is 'Whether the channel is private.';
comment on column realtime.messages.inserted_at is 'When it was said.';
comment on column realtime.messages.updated_at is 'When it was changed last.';

--! Included realtime/topic.sql
create or replace function realtime.topic() returns text
language sql stable parallel safe
return nullif(current_setting('realtime.topic', true), '');

grant execute on function realtime.topic to anon, authenticated, service_role;
comment on function realtime.topic is 'The name of the private channel that is being asked about, in a policy on realtime.messages.';
--! EndIncluded realtime/topic.sql
--! Included realtime/send.sql
-- Told by way of the write-ahead log: it arrives when the transaction commits, at every gateway, and nothing is kept.
-- Granted to no role of a client: the policies on realtime.messages do not judge what is sent here. A trigger that sends
-- for whoever writes is security definer.
create or replace function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
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
--! EndIncluded realtime/send.sql
--! Included realtime/broadcast_changes.sql
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
  'Broadcasts the change of a row to a private channel; for triggers, which hand on NEW and OLD.';
--! EndIncluded realtime/broadcast_changes.sql

-- Whoever follows the changes learns of a new policy before it is asked about what comes after it.
--! Included private/tg__schema_changed.sql
-- Runs as whoever changes something. A temporary table is nobody else's business, and a materialized view that is
-- refreshed has the shape it had.
create or replace function private.tg__schema_changed() returns event_trigger as $$
begin
  if TG_EVENT = 'sql_drop' then
    if not exists (select from pg_event_trigger_dropped_objects() where not is_temporary) then
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
--! EndIncluded private/tg__schema_changed.sql

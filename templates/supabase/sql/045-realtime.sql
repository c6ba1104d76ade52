-- Messages that SQL sends are kept in realtime.messages and broadcast from there when the transaction commits, as in Supabase: by a trigger, so that
-- rows that a project inserts itself are sent too.
create function realtime.broadcast_message() returns trigger language plpgsql set search_path = '' as $$
begin
  if NEW.extension = 'broadcast' and NEW.payload is not null then
    perform pg_logical_emit_message(true, 'realtime', jsonb_build_object(
      'said', jsonb_build_array(jsonb_build_object(
        'kind', 'broadcast',
        'topic', NEW.topic,
        'private', NEW.private,
        'event', coalesce(NEW.event, ''),
        'encoding', 'json',
        'payload', NEW.payload::text
      ))
    )::text);
  end if;
  return null;
end;
$$;
comment on function realtime.broadcast_message is 'Broadcasts a row of realtime.messages when the transaction commits.';
create trigger content_service_broadcast_message after insert on realtime.messages for each row execute function realtime.broadcast_message();

-- As the owner, because senders may delete nothing. Each statement deletes more than it inserts, unless it inserts many rows.
create function realtime.delete_old_messages() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  delete from realtime.messages where id in (
    select id from realtime.messages where inserted_at < now() - interval '72 hours'
    order by inserted_at limit 100 for update skip locked
  );
  return null;
end;
$$;
comment on function realtime.delete_old_messages is 'Deletes messages that are older than 72 hours.';
create trigger content_service_delete_old_messages after insert on realtime.messages execute function realtime.delete_old_messages();
create index messages_inserted_at_topic_index on realtime.messages (inserted_at desc, topic) where extension = 'broadcast' and private;
create index content_service_messages_inserted_at_idx on realtime.messages (inserted_at);

-- Policies on this table decide who may join a channel. They are asked about messages without a payload, so they show no row that is kept.
create policy no_kept_messages on realtime.messages as restrictive for select to anon, authenticated using (payload is null);

-- The INSERT policies on realtime.messages apply to the caller. As in Supabase, a message that cannot be sent is a warning.
create or replace function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
language plpgsql volatile set search_path = '' as $$
declare
  v_id uuid := gen_random_uuid();
begin
  perform set_config('realtime.topic', send.topic, true);
  insert into realtime.messages (id, payload, event, topic, private, extension) values (
    v_id,
    case
      when jsonb_typeof(send.payload) = 'object' and not send.payload ? 'id'
      then send.payload || jsonb_build_object('id', v_id)
      else send.payload
    end,
    send.event, send.topic, send.private, 'broadcast'
  );
exception when others then
  raise warning 'ErrorSendingBroadcastMessage: %', sqlerrm;
end;
$$;
grant execute on function realtime.send, realtime.broadcast_changes to public;
comment on function realtime.send is 'Broadcasts to a channel, when the transaction commits, and keeps the message for 72 hours.';
comment on table realtime.messages is e'@sample none\n@anonymize empty\nIts policies decide who may receive and send in private channels. Messages that SQL sends are kept for 72 hours.';

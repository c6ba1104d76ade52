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

-- Sent through the write-ahead log: delivered at every process when the transaction commits, and stored nowhere.
-- Granted to no client role: the policies on realtime.messages do not apply here. A trigger that sends on behalf of the writer is
-- security definer.
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

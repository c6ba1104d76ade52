-- Like realtime.send, for data that is not JSON.
create or replace function realtime.send_binary(payload bytea, event text, topic text, private boolean default true) returns void
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

--! Previous: sha1:adfcf748661ed0dfaebc0e11955cb8f72f0a7603
--! Hash: sha1:a59439b4a391f062a2a409b65f0c45915e5958e4
--! Message: binary_broadcasts

--! split: 1-current.sql
-- Bytes from SQL, as Supabase has them.
--! Included realtime/send_binary.sql
-- As realtime.send, for what is not JSON.
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
--! EndIncluded realtime/send_binary.sql

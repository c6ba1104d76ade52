--! Previous: sha1:3cc4f13b6f7d582b53e0da451e38ac740f433451
--! Hash: sha1:b450e635276ff6089451730cc81d7b8c294e8847
--! Message: broadcasts of read-only transactions

-- A logical message is not a change of a table, so Postgres itself lets read-only transactions emit it.
create or replace function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void as $$
begin
  if current_setting('transaction_read_only')::boolean then
    raise exception 'cannot execute realtime.send() in a read-only transaction' using errcode = 'read_only_sql_transaction';
  end if;
  perform pg_logical_emit_message(true, 'realtime', jsonb_build_object(
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
$$ language plpgsql set search_path = '';
comment on function realtime.send is 'Broadcasts to a channel, when the transaction commits. Fails in a read-only transaction.';

create or replace function realtime.send_binary(payload bytea, event text, topic text, private boolean default true) returns void as $$
begin
  if current_setting('transaction_read_only')::boolean then
    raise exception 'cannot execute realtime.send_binary() in a read-only transaction' using errcode = 'read_only_sql_transaction';
  end if;
  perform pg_logical_emit_message(true, 'realtime', jsonb_build_object(
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
$$ language plpgsql set search_path = '';
comment on function realtime.send_binary is 'Broadcasts bytes to a channel, when the transaction commits. Fails in a read-only transaction.';

create or replace function auth.use_message(issuer text, message_id text, expires_at timestamptz) returns boolean as $$
begin
  delete from auth.federation_replays as expired where (expired.issuer, expired.message_id) in (
    select replays.issuer, replays.message_id from auth.federation_replays as replays where replays.expires_at < now()
    order by replays.expires_at limit 10 for update skip locked
  );
  insert into auth.federation_replays (issuer, message_id, expires_at)
    values (use_message.issuer, use_message.message_id, use_message.expires_at)
    on conflict on constraint federation_replays_pkey do nothing;
  return found;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_message is 'Whether this message of a provider is used for the first time.';

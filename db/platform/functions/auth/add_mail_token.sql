-- At most one mail a minute, so that nobody can flood a mailbox.
create or replace function auth.add_mail_token(
  token_hash bytea, purpose text, user_id bigint, email text, seconds integer, sign_up jsonb default null
) returns text as $$
begin
  if exists (
    select from auth.mail_tokens as sent
    where sent.user_id = add_mail_token.user_id and sent.purpose = add_mail_token.purpose
      and sent.created_at > now() - interval '1 minute'
  ) then
    return null;
  end if;
  perform auth.replace_mail_tokens(add_mail_token.user_id, add_mail_token.purpose, sign_up ->> 'password_hash');
  insert into auth.mail_tokens (token_hash, purpose, user_id, email, expires_at, password_hash, user_name, user_metadata)
    values (
      add_mail_token.token_hash, add_mail_token.purpose, add_mail_token.user_id, add_mail_token.email,
      now() + make_interval(secs => seconds), sign_up ->> 'password_hash', sign_up ->> 'name', nullif(sign_up -> 'metadata', 'null')
    );
  delete from auth.mail_tokens as expired where expired.token_hash in (
    select mail_tokens.token_hash from auth.mail_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  return email;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_mail_token is
  'The address to send the token to, which proves the sign-up {name, password_hash, metadata}; null when one was sent within the last minute.';

-- Each call deletes a few sign-ins whose tokens have all expired, and with them the tokens.
create or replace function auth.add_refresh_token(
  user_id bigint, token_hash bytea, family_id uuid, seconds integer, client_info auth.client_info
) returns jsonb as $$
begin
  update auth.token_sessions as session set
      refreshed_at = clock_timestamp(), address = client_info.address, user_agent = client_info.user_agent
    where session.id = add_refresh_token.family_id;
  insert into auth.refresh_tokens (token_hash, family_id, user_id, issued_at, expires_at, signed_in_at, address, user_agent)
    values (
      add_refresh_token.token_hash, add_refresh_token.family_id, add_refresh_token.user_id,
      clock_timestamp(), clock_timestamp() + make_interval(secs => seconds),
      (select session.created_at from auth.token_sessions as session where session.id = add_refresh_token.family_id),
      client_info.address, client_info.user_agent
    );
  delete from auth.refresh_tokens as expired where expired.token_hash in (
    select refresh_tokens.token_hash from auth.refresh_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  delete from auth.token_sessions as ended where ended.id in (
    select session.id from auth.token_sessions as session
    where session.refreshed_at < now() - make_interval(secs => seconds)
      and not exists (select from auth.refresh_tokens as token where token.family_id = session.id)
    order by session.refreshed_at limit 10 for update skip locked
  );
  return auth.session_claims(add_refresh_token.user_id, add_refresh_token.family_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_refresh_token is
  'Stores a refresh token and returns the claims of the access token. The caller has locked the account.';

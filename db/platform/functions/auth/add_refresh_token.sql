-- Each call deletes a few expired tokens.
create or replace function auth.add_refresh_token(
  user_id bigint, token_hash bytea, family_id uuid, seconds integer, client_info auth.client_info
) returns jsonb as $$
begin
  insert into auth.refresh_tokens (token_hash, family_id, user_id, issued_at, expires_at, signed_in_at, address, user_agent)
    values (
      add_refresh_token.token_hash, add_refresh_token.family_id, add_refresh_token.user_id,
      clock_timestamp(), clock_timestamp() + make_interval(secs => seconds),
      coalesce((
        select min(coalesce(earlier.signed_in_at, earlier.issued_at)) from auth.refresh_tokens as earlier
        where earlier.family_id = add_refresh_token.family_id
      ), clock_timestamp()),
      client_info.address, client_info.user_agent
    );
  delete from auth.refresh_tokens as expired where expired.token_hash in (
    select refresh_tokens.token_hash from auth.refresh_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  return auth.token_claims(add_refresh_token.user_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_refresh_token is
  'Stores a refresh token and returns the claims of the access token. The caller has locked the account.';

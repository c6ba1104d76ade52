create or replace function auth.open_tokens(user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info)
returns jsonb as $$
begin
  perform auth.log_event('refresh_token.created', open_tokens.user_id, client_info);
  return auth.add_refresh_token(open_tokens.user_id, open_tokens.token_hash, gen_random_uuid(), seconds, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.open_tokens is
  'Starts a family of refresh tokens and returns the claims of its first access token. The caller has locked the account.';

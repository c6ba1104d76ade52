-- Not a reuse: the client, which has proved more by its access token, gets the next pair without presenting its refresh token.
create or replace function auth.continue_tokens(
  user_id bigint, session_id uuid, token_hash bytea, seconds integer, client_info auth.client_info
) returns jsonb as $$
begin
  update auth.refresh_tokens as token set rotated_at = clock_timestamp()
    where token.user_id = continue_tokens.user_id and token.family_id = session_id
      and token.rotated_at is null and token.revoked_at is null;
  if not found then
    return null;
  end if;
  return auth.add_refresh_token(
    continue_tokens.user_id, continue_tokens.token_hash, session_id, continue_tokens.seconds, client_info
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.continue_tokens is
  'Replaces the refresh token of a sign-in and returns the claims of its next access token; null if it has ended. The caller has locked the account.';

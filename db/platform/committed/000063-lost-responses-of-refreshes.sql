--! Previous: sha1:4b453185651648b4d7768221ab132f45fef4c1be
--! Hash: sha1:4211fa80674faf059f1d094b28dda3cd0aa7ee27
--! Message: lost responses of refreshes

--! Included auth/rotate_refresh_token.sql
-- The user is read before the account is locked and the rest afterwards: meanwhile another request may have rotated the token or
-- revoked its family. With keeps_answers, the token that was rotated last stays valid until its successor is used: its client may have lost the
-- response. It then gets a successor of its own; both are rotated together by the next.
create or replace function auth.rotate_refresh_token(
  token_hash bytea, next_hash bytea, seconds integer, retry_hash bytea, client_info auth.client_info,
  keeps_answers boolean default false, out outcome text, out claims jsonb, out sealed_answer bytea
) as $$
declare
  v_user_id bigint;
  v_account auth.users;
  v_token auth.refresh_tokens;
begin
  select refresh_tokens.user_id into v_user_id
    from auth.refresh_tokens where refresh_tokens.token_hash = rotate_refresh_token.token_hash;
  v_account := auth.lock_account(v_user_id);
  select * into v_token from auth.refresh_tokens where refresh_tokens.token_hash = rotate_refresh_token.token_hash;

  if v_token.token_hash is null or v_token.revoked_at is not null or v_token.expires_at <= clock_timestamp()
    or v_account.user_id is null or auth.is_disabled(v_account)
  then
    outcome := 'ended';
  elsif v_token.idempotency_key_hash = retry_hash and v_token.sealed_until > clock_timestamp() then
    outcome := 'repeated';
    sealed_answer := v_token.sealed_answer;
  elsif v_token.rotated_at is null or keeps_answers and not exists (
    select from auth.refresh_tokens as later where later.family_id = v_token.family_id and later.rotated_at > v_token.rotated_at
  ) then
    outcome := 'rotated';
    update auth.refresh_tokens as token
      set rotated_at = coalesce(v_token.rotated_at, clock_timestamp())
      where token.family_id = v_token.family_id and token.rotated_at is null;
    -- The bearer of this token has received the response that was sealed; others of its sign-in may not, where each may retry.
    update auth.refresh_tokens as earlier
      set idempotency_key_hash = null, sealed_answer = null, sealed_until = null
      where earlier.family_id = v_token.family_id and earlier.sealed_answer is not null
        and (not keeps_answers or earlier.sealed_until < clock_timestamp());
    claims := auth.add_refresh_token(v_user_id, next_hash, v_token.family_id, seconds, client_info);
  else
    outcome := 'reused';
    update auth.refresh_tokens as token set revoked_at = now()
      where token.family_id = v_token.family_id and token.revoked_at is null;
    perform auth.log_event('refresh_token.reused', v_user_id, client_info);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.rotate_refresh_token is
  'Exchanges a refresh token: rotated; repeated for a retry; reused or ended otherwise.';
--! EndIncluded auth/rotate_refresh_token.sql

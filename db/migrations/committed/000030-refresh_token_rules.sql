--! Previous: sha1:7322ef6f7a0a80dc4cfc7380fe803ebc38b0ee9c
--! Hash: sha1:8a033d1d070089127a7a84b6b63d4a85782ba95a
--! Message: refresh_token_rules

--! split: 0030-refresh_tokens.sql
-- The rules of refresh tokens: one at a time in each family, exchanged once.
--! Included auth/add_refresh_token.sql
-- Each token that is added sweeps a few that have expired.
create or replace function auth.add_refresh_token(
  user_id bigint, token_hash bytea, family_id uuid, seconds integer
) returns jsonb as $$
begin
  insert into auth.refresh_tokens (token_hash, family_id, user_id, issued_at, expires_at)
    values (
      add_refresh_token.token_hash, add_refresh_token.family_id, add_refresh_token.user_id,
      clock_timestamp(), clock_timestamp() + make_interval(secs => seconds)
    );
  delete from auth.refresh_tokens as expired where expired.token_hash in (
    select refresh_tokens.token_hash from auth.refresh_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  return auth.token_claims(add_refresh_token.user_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_refresh_token is
  'Stores a refresh token, and gives the claims of the access token that goes with it. The account is held.';
--! EndIncluded auth/add_refresh_token.sql
--! Included auth/open_tokens.sql
create or replace function auth.open_tokens(user_id bigint, token_hash bytea, seconds integer, sender auth.sender)
returns jsonb as $$
begin
  perform auth.log_event('refresh_token.created', open_tokens.user_id, sender);
  return auth.add_refresh_token(open_tokens.user_id, open_tokens.token_hash, gen_random_uuid(), seconds);
end;
$$ language plpgsql set search_path = '';
comment on function auth.open_tokens is
  'Begins a family of refresh tokens; the claims of its first access token. The account is held.';
--! EndIncluded auth/open_tokens.sql
--! Included auth/rotate_refresh_token.sql
-- Whose token it is, is asked before the account is held and the rest afterwards: by then another request may have
-- rotated the token, and ended its family.
create or replace function auth.rotate_refresh_token(
  token_hash bytea, next_hash bytea, seconds integer, retry_hash bytea, sender auth.sender,
  out outcome text, out claims jsonb, out sealed_answer bytea
) as $$
declare
  v_user_id bigint;
  v_account auth.credentials;
  v_token auth.refresh_tokens;
begin
  select refresh_tokens.user_id into v_user_id
    from auth.refresh_tokens where refresh_tokens.token_hash = rotate_refresh_token.token_hash;
  v_account := auth.hold_account(v_user_id);
  select * into v_token from auth.refresh_tokens where refresh_tokens.token_hash = rotate_refresh_token.token_hash;

  if v_token.token_hash is null or v_token.revoked_at is not null or v_token.expires_at <= clock_timestamp()
    or v_account.user_id is null or v_account.disabled_at is not null
  then
    outcome := 'ended';
  elsif v_token.rotated_at is null then
    outcome := 'rotated';
    update auth.refresh_tokens as token
      set rotated_at = clock_timestamp() where token.token_hash = v_token.token_hash;
    -- Whoever shows this token has received the answer that it was sealed in.
    update auth.refresh_tokens as earlier
      set idempotency_key_hash = null, sealed_answer = null, sealed_until = null
      where earlier.family_id = v_token.family_id and earlier.sealed_answer is not null;
    claims := auth.add_refresh_token(v_user_id, next_hash, v_token.family_id, seconds);
  elsif v_token.idempotency_key_hash = retry_hash and v_token.sealed_until > clock_timestamp() then
    outcome := 'repeated';
    sealed_answer := v_token.sealed_answer;
  else
    outcome := 'reused';
    update auth.refresh_tokens as token set revoked_at = now()
      where token.family_id = v_token.family_id and token.revoked_at is null;
    perform auth.log_event('refresh_token.reused', v_user_id, sender);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.rotate_refresh_token is
  'Exchanges a refresh token for the next: rotated. Else repeated for the retry of one that was, reused or ended.';
--! EndIncluded auth/rotate_refresh_token.sql
--! Included auth/seal_answer.sql
create or replace function auth.seal_answer(token_hash bytea, retry_hash bytea, sealed_answer bytea, seconds integer)
returns void as $$
  update auth.refresh_tokens as token set
    idempotency_key_hash = seal_answer.retry_hash,
    sealed_answer = seal_answer.sealed_answer,
    sealed_until = clock_timestamp() + make_interval(secs => seconds)
  where token.token_hash = seal_answer.token_hash;
$$ language sql set search_path = '';
comment on function auth.seal_answer is
  'Keeps what the token was exchanged for, in the transaction that did so, for the same Idempotency-Key to ask again.';
--! EndIncluded auth/seal_answer.sql
--! Included auth/revoke_refresh_tokens.sql
create or replace function auth.revoke_refresh_tokens(user_id bigint, sender auth.sender) returns void as $$
begin
  perform auth.hold_account(revoke_refresh_tokens.user_id);
  update auth.refresh_tokens set revoked_at = now()
    where refresh_tokens.user_id = revoke_refresh_tokens.user_id and revoked_at is null;
  perform auth.log_event('refresh_tokens.revoked', revoke_refresh_tokens.user_id, sender);
end;
$$ language plpgsql set search_path = '';
comment on function auth.revoke_refresh_tokens is 'Signs out everywhere where the user is signed in by tokens.';
--! EndIncluded auth/revoke_refresh_tokens.sql

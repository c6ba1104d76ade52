--! Previous: sha1:266d83bb7798bb9dfbc7988830373a65257d2fb3
--! Hash: sha1:3a00ea23caa065cbb70aceb7d18984cb6380b25e
--! Message: refresh tokens

-- A sign-in starts a family of refresh tokens with one valid token at a time; each refresh rotates it. When a rotated token is used
-- again it was stolen, or the response was lost: the whole family is revoked, unless the same Idempotency-Key retries at once.
create table auth.refresh_tokens (
  token_hash           bytea primary key check (octet_length(token_hash) = 32),
  family_id            uuid not null,
  user_id              bigint not null,
  issued_at            timestamptz not null default now(),
  expires_at           timestamptz not null check (expires_at > issued_at),
  rotated_at           timestamptz,
  revoked_at           timestamptz,
  idempotency_key_hash bytea check (octet_length(idempotency_key_hash) = 32),
  sealed_answer        bytea,
  sealed_until         timestamptz,
  constraint refresh_tokens_retry check (
    num_nulls(idempotency_key_hash, sealed_answer, sealed_until) in (0, 3)
    and (sealed_answer is null or rotated_at is not null)
  )
);
create index on auth.refresh_tokens (family_id);
create index on auth.refresh_tokens (user_id);
create index on auth.refresh_tokens (expires_at);
alter table auth.refresh_tokens enable row level security;

comment on table auth.refresh_tokens is
  'Refresh tokens, as SHA-256 only, kept until they expire so that a reused one is recognised.';
comment on column auth.refresh_tokens.rotated_at is 'When it was exchanged for its successor; since then it is spent.';
comment on column auth.refresh_tokens.revoked_at is 'When it was ended by logout, or with its family.';
comment on column auth.refresh_tokens.sealed_answer is
  'The pair it was exchanged for, encrypted with a key that only the bearer of this token can derive.';
comment on column auth.refresh_tokens.sealed_until is 'Until when the same Idempotency-Key receives the same pair.';

--! Included auth/add_refresh_token.sql
-- Each call deletes a few expired tokens.
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
  'Stores a refresh token and returns the claims of the access token. The caller has locked the account.';
--! EndIncluded auth/add_refresh_token.sql
--! Included auth/open_tokens.sql
create or replace function auth.open_tokens(user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info)
returns jsonb as $$
begin
  perform auth.log_event('refresh_token.created', open_tokens.user_id, client_info);
  return auth.add_refresh_token(open_tokens.user_id, open_tokens.token_hash, gen_random_uuid(), seconds);
end;
$$ language plpgsql set search_path = '';
comment on function auth.open_tokens is
  'Starts a family of refresh tokens and returns the claims of its first access token. The caller has locked the account.';
--! EndIncluded auth/open_tokens.sql
--! Included auth/rotate_refresh_token.sql
-- The user is read before the account is locked and the rest afterwards: meanwhile another request may have rotated the token or
-- revoked its family.
create or replace function auth.rotate_refresh_token(
  token_hash bytea, next_hash bytea, seconds integer, retry_hash bytea, client_info auth.client_info,
  out outcome text, out claims jsonb, out sealed_answer bytea
) as $$
declare
  v_user_id bigint;
  v_account auth.credentials;
  v_token auth.refresh_tokens;
begin
  select refresh_tokens.user_id into v_user_id
    from auth.refresh_tokens where refresh_tokens.token_hash = rotate_refresh_token.token_hash;
  v_account := auth.lock_account(v_user_id);
  select * into v_token from auth.refresh_tokens where refresh_tokens.token_hash = rotate_refresh_token.token_hash;

  if v_token.token_hash is null or v_token.revoked_at is not null or v_token.expires_at <= clock_timestamp()
    or v_account.user_id is null or v_account.disabled_at is not null
  then
    outcome := 'ended';
  elsif v_token.rotated_at is null then
    outcome := 'rotated';
    update auth.refresh_tokens as token
      set rotated_at = clock_timestamp() where token.token_hash = v_token.token_hash;
    -- The bearer of this token has received the response that was sealed.
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
    perform auth.log_event('refresh_token.reused', v_user_id, client_info);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.rotate_refresh_token is
  'Exchanges a refresh token: rotated; repeated for a retry; reused or ended otherwise.';
--! EndIncluded auth/rotate_refresh_token.sql
--! Included auth/store_retry_response.sql
create or replace function auth.store_retry_response(token_hash bytea, retry_hash bytea, sealed_answer bytea, seconds integer)
returns void as $$
  update auth.refresh_tokens as token set
    idempotency_key_hash = store_retry_response.retry_hash,
    sealed_answer = store_retry_response.sealed_answer,
    sealed_until = clock_timestamp() + make_interval(secs => seconds)
  where token.token_hash = store_retry_response.token_hash;
$$ language sql set search_path = '';
comment on function auth.store_retry_response is
  'Stores the pair that the token was exchanged for, in the same transaction, for a retry with the same Idempotency-Key.';
--! EndIncluded auth/store_retry_response.sql
--! Included auth/revoke_refresh_tokens.sql
create or replace function auth.revoke_refresh_tokens(user_id bigint, client_info auth.client_info) returns void as $$
begin
  perform auth.lock_account(revoke_refresh_tokens.user_id);
  update auth.refresh_tokens set revoked_at = now()
    where refresh_tokens.user_id = revoke_refresh_tokens.user_id and revoked_at is null;
  perform auth.log_event('refresh_tokens.revoked', revoke_refresh_tokens.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.revoke_refresh_tokens is 'Ends all sign-ins of the user by tokens.';
--! EndIncluded auth/revoke_refresh_tokens.sql

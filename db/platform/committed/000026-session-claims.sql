--! Previous: sha1:cfcf3533e93d951eceee1832b2bb3923815591fa
--! Hash: sha1:9b23713589d06de882c74b9d99b30a4e1620bcf1
--! Message: session claims

-- Access tokens with the claims of Supabase Auth, a reuse window for refresh tokens, sign-out by scope, metadata and bans.
drop function auth.rotate_refresh_token(bytea, bytea, integer, bytea, auth.client_info);
--! Included auth/uid.sql
-- Ids are bigint. A subject that is no id of this service (missing, a word, 19 digits or more) gives null, never an error. Tokens whose
-- subject is the uuid of an account have the id in the claim user_id.
create or replace function auth.uid() returns bigint
language sql stable parallel safe
return coalesce(
  substring(auth.jwt() ->> 'sub' from '^[1-9][0-9]{0,17}$'), substring(auth.jwt() ->> 'user_id' from '^[1-9][0-9]{0,17}$')
)::bigint;

grant execute on function auth.uid to anon, authenticated, service_role;
comment on function auth.uid is 'The id of the calling user; null for callers who are not signed in.';
--! EndIncluded auth/uid.sql
--! Included auth/merge_metadata.sql
create or replace function auth.merge_metadata(metadata jsonb, changes jsonb) returns jsonb
language sql immutable
begin atomic
  select coalesce(jsonb_object_agg(entry.key, entry.value), '{}')
  from jsonb_each(metadata || coalesce(changes, '{}')) as entry
  where not coalesce(changes -> entry.key = 'null', false);
end;

comment on function auth.merge_metadata is 'The object with the changes, without the keys that are null in the changes.';
--! EndIncluded auth/merge_metadata.sql
--! Included auth/set_metadata.sql
-- Metadata travels in access tokens, and these in a header, whose length is limited.
create or replace function auth.set_metadata(user_id bigint, user_metadata jsonb, app_metadata jsonb) returns void as $$
declare
  v_account constant auth.users := auth.lock_account(set_metadata.user_id);
  v_user jsonb := auth.merge_metadata(v_account.raw_user_meta_data, set_metadata.user_metadata);
  v_app jsonb := auth.merge_metadata(v_account.raw_app_meta_data, set_metadata.app_metadata);
begin
  if octet_length(v_user::text) > 8192 or octet_length(v_app::text) > 8192 then
    raise exception 'Metadata has at most 8192 bytes' using errcode = 'WRONG', detail = 'data';
  end if;
  update auth.users as account set raw_user_meta_data = v_user, raw_app_meta_data = v_app
    where account.user_id = set_metadata.user_id and (account.raw_user_meta_data, account.raw_app_meta_data) <> (v_user, v_app);
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_metadata is
  'Changes the given keys of the metadata and removes those that are null. Null: none.';
--! EndIncluded auth/set_metadata.sql
--! Included auth/ban_account.sql
create or replace function auth.ban_account(user_id bigint, until timestamptz, client_info auth.client_info) returns boolean as $$
begin
  if (auth.lock_account(ban_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.users as account set banned_until = ban_account.until where account.user_id = ban_account.user_id;
  if until > now() then
    perform auth.end_sign_ins(ban_account.user_id);
  end if;
  perform auth.log_event(
    case when until > now() then 'account.banned' else 'account.unbanned' end, ban_account.user_id, client_info,
    jsonb_strip_nulls(jsonb_build_object('until', until))
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.ban_account is
  'Ends all sign-ins of the account and refuses new ones until then; null ends a ban. False: no such account.';
--! EndIncluded auth/ban_account.sql
--! Included auth/sign_out.sql
create or replace function auth.sign_out(user_id bigint, session_id uuid, scope text, client_info auth.client_info)
returns void as $$
begin
  perform auth.lock_account(sign_out.user_id);
  if scope = 'global' then
    perform auth.end_sign_ins(sign_out.user_id);
  else
    update auth.refresh_tokens as token set revoked_at = now()
      where token.user_id = sign_out.user_id and token.revoked_at is null
        and (token.family_id = sign_out.session_id) = (scope = 'local');
    delete from auth.sessions where sessions.user_id = sign_out.user_id and scope = 'others';
  end if;
  perform auth.log_event('account.signed_out', sign_out.user_id, client_info, jsonb_build_object('scope', scope));
end;
$$ language plpgsql set search_path = '';
comment on function auth.sign_out is
  'Ends sign-ins of the user: all (global), this one by tokens (local), or all except this one (others).';
--! EndIncluded auth/sign_out.sql
--! Included auth/providers_of.sql
create or replace function auth.providers_of(user_id bigint) returns jsonb
language sql stable
begin atomic
  select coalesce(jsonb_agg(way.name order by way.since, way.name), '[]')
  from (
    select 'email' as name, account.created_at as since from auth.users as account
    where account.user_id = providers_of.user_id and account.email is not null and not account.is_anonymous
      and (account.password_hash is not null or not exists (
        select from auth.identities where identities.user_id = account.user_id
      ))
    union all
    select 'phone', account.phone_confirmed_at from auth.users as account
    where account.user_id = providers_of.user_id and account.phone_confirmed_at is not null
    union all
    select providers.name, min(identities.created_at)
    from auth.identities join auth.providers on providers.issuer = identities.issuer
    where identities.user_id = providers_of.user_id
    group by providers.name
  ) as way;
end;

comment on function auth.providers_of is 'How the user can sign in, the first one first: email, phone, and names of identity providers.';
--! EndIncluded auth/providers_of.sql
--! Included auth/session_claims.sql
-- sub is of the type that auth.uid() has in this database; the claims of an access token of /auth/v1 beside those of every token.
create or replace function auth.session_claims(user_id bigint, session_id uuid) returns jsonb as $$
declare
  v_account auth.users;
  v_session auth.token_sessions;
  v_providers jsonb := auth.providers_of(session_claims.user_id);
begin
  select * into v_account from auth.users as account where account.user_id = session_claims.user_id;
  select * into v_session from auth.token_sessions as session
    where session.id = session_claims.session_id and session.user_id = session_claims.user_id;
  return auth.token_claims(session_claims.user_id) || jsonb_build_object(
    'id', v_account.id,
    'email', coalesce(v_account.email, ''),
    'phone', coalesce(v_account.phone, ''),
    'app_metadata', v_account.raw_app_meta_data || jsonb_strip_nulls(jsonb_build_object(
      'provider', v_providers -> 0, 'providers', v_providers, 'user_id', v_account.user_id
    )),
    'user_metadata', v_account.raw_user_meta_data,
    'session_id', v_session.id,
    'aal', 'aal' || v_session.aal,
    'amr', v_session.amr,
    'is_anonymous', v_account.is_anonymous
  );
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.session_claims is 'The claims of an access token of /auth/v1 issued now, and the id that may become its subject.';
--! EndIncluded auth/session_claims.sql
--! Included auth/ended_token_sessions.sql
-- Those that are unknown are not listed: another issuer that shares the keys may name any session.
create or replace function auth.ended_token_sessions(session_ids uuid[]) returns setof uuid
language sql stable
begin atomic
  select distinct token.family_id from auth.refresh_tokens as token
  where token.family_id = any (ended_token_sessions.session_ids) and token.revoked_at is not null;
end;

comment on function auth.ended_token_sessions is 'Those of these sign-ins by tokens that were ended.';
--! EndIncluded auth/ended_token_sessions.sql
--! Included auth/has_token_session.sql
create or replace function auth.has_token_session(user_id bigint, session_id uuid) returns boolean
language sql stable
return exists (
  select from auth.refresh_tokens as token
  where token.family_id = has_token_session.session_id and token.user_id = has_token_session.user_id
    and token.rotated_at is null and token.revoked_at is null and token.expires_at > now()
);

comment on function auth.has_token_session is 'Whether this sign-in by tokens of the user has not ended.';
--! EndIncluded auth/has_token_session.sql
--! Included auth/add_refresh_token.sql
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
--! EndIncluded auth/add_refresh_token.sql
--! Included auth/rotate_refresh_token.sql
-- The user is read before the account is locked and the rest afterwards: meanwhile another request may have rotated the token or
-- revoked its family.
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
  elsif v_token.rotated_at is null then
    outcome := 'rotated';
    update auth.refresh_tokens as token
      set rotated_at = clock_timestamp() where token.token_hash = v_token.token_hash;
    -- The bearer of this token has received the response that was sealed; others of its sign-in may not, where each may retry.
    update auth.refresh_tokens as earlier
      set idempotency_key_hash = null, sealed_answer = null, sealed_until = null
      where earlier.family_id = v_token.family_id and earlier.sealed_answer is not null
        and (not keeps_answers or earlier.sealed_until < clock_timestamp());
    claims := auth.add_refresh_token(v_user_id, next_hash, v_token.family_id, seconds, client_info);
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

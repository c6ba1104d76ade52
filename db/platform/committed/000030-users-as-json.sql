--! Previous: sha1:de8bd47fdb4f2b25b961581e6735e5c4f3064eb3
--! Hash: sha1:1294d5aa072500c6584eb2f11c2bb7193d000e22
--! Message: users as JSON

-- The user as clients of Supabase Auth read it, and sign-ins that end all others.
alter table auth.token_sessions add column if not exists kept_at timestamptz;
comment on column auth.token_sessions.kept_at is
  'The end of all access tokens of the user (tokens_valid_from) that this sign-in was exempted from; null if there was none.';
drop function if exists auth.end_sign_ins(bigint);
drop function if exists auth.set_password(bigint, text);
drop function if exists auth.change_password(bigint, text, auth.client_info);
--! Included auth/end_sign_ins.sql
create or replace function auth.end_sign_ins(user_id bigint, kept_session uuid default null) returns void as $$
begin
  perform auth.end_access_tokens(end_sign_ins.user_id);
  delete from auth.sessions where sessions.user_id = end_sign_ins.user_id;
  update auth.refresh_tokens as token set revoked_at = now()
    where token.user_id = end_sign_ins.user_id and token.revoked_at is null and token.family_id is distinct from kept_session;
  update auth.token_sessions as session set kept_at = account.tokens_valid_from
    from auth.users as account
    where session.id = kept_session and session.user_id = end_sign_ins.user_id and account.user_id = session.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_sign_ins is
  'Ends all sign-ins of the user, except one by tokens. The caller has locked the account.';
--! EndIncluded auth/end_sign_ins.sql
--! Included auth/kept_token_sessions.sql
create or replace function auth.kept_token_sessions(session_ids uuid[]) returns table (id uuid, kept_at bigint)
language sql stable
begin atomic
  select session.id, extract(epoch from session.kept_at)::bigint from auth.token_sessions as session
  where session.id = any (kept_token_sessions.session_ids) and session.kept_at is not null;
end;

comment on function auth.kept_token_sessions is
  'Those of these sign-ins by tokens that were kept when the others of the user ended, and the moment.';
--! EndIncluded auth/kept_token_sessions.sql
--! Included auth/set_password.sql
-- Also deletes links and codes to sign in, to set another password or another address, and everything in progress: identities being linked,
-- sign-ins that still need a code, and codes for tokens. password_changed_at is later than any identity that was linked before the account was locked.
create or replace function auth.set_password(user_id bigint, new_hash text, kept_session uuid default null) returns void as $$
begin
  update auth.users as account set password_hash = new_hash, password_changed_at = clock_timestamp()
    where account.user_id = set_password.user_id;
  perform auth.end_sign_ins(set_password.user_id, kept_session);
  delete from auth.mail_tokens
    where mail_tokens.user_id = set_password.user_id and purpose not in ('verify', 'signup', 'invite');
  delete from auth.flow_states where flow_states.user_id = set_password.user_id;
  delete from auth.federation_states where federation_states.user_id = set_password.user_id;
  delete from auth.federation_logins where federation_logins.user_id = set_password.user_id;
  delete from auth.federation_codes where federation_codes.user_id = set_password.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_password is
  'Sets the password and ends all sign-ins of the user, except one by tokens. The caller has locked the account.';
--! EndIncluded auth/set_password.sql
--! Included auth/change_password.sql
create or replace function auth.change_password(
  user_id bigint, new_hash text, client_info auth.client_info, kept_session uuid default null
) returns void as $$
begin
  perform auth.set_password(change_password.user_id, new_hash, kept_session);
  perform auth.log_event('password.changed', change_password.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_password is
  'Sets the password of a user who may do that in this transaction, and ends the user''s other sign-ins.';
--! EndIncluded auth/change_password.sql
--! Included auth/sign_out.sql
create or replace function auth.sign_out(user_id bigint, session_id uuid, scope text, client_info auth.client_info)
returns void as $$
begin
  perform auth.lock_account(sign_out.user_id);
  if scope = 'local' then
    update auth.refresh_tokens as token set revoked_at = now()
      where token.user_id = sign_out.user_id and token.revoked_at is null and token.family_id = sign_out.session_id;
  else
    perform auth.end_sign_ins(sign_out.user_id, case scope when 'others' then session_id end);
  end if;
  perform auth.log_event('account.signed_out', sign_out.user_id, client_info, jsonb_build_object('scope', scope));
end;
$$ language plpgsql set search_path = '';
comment on function auth.sign_out is
  'Ends sign-ins of the user: all (global), this one by tokens (local), or all except this one (others).';
--! EndIncluded auth/sign_out.sql
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
    'email', case when v_account.is_anonymous then '' else coalesce(v_account.email, '') end,
    'phone', coalesce(v_account.phone, ''),
    'app_metadata', v_account.raw_app_meta_data || jsonb_strip_nulls(jsonb_build_object(
      'provider', v_providers -> 0, 'providers', v_providers, 'user_id', v_account.user_id
    )),
    'user_metadata', v_account.raw_user_meta_data,
    'session_id', v_session.id,
    'aal', 'aal' || v_session.aal,
    'amr', v_session.amr,
    'is_anonymous', v_account.is_anonymous
  ) || case when v_session.requires_factor then jsonb_build_object('required_aal', 'aal2') else '{}' end;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.session_claims is 'The claims of an access token of /auth/v1 issued now, and the id that may become its subject.';
--! EndIncluded auth/session_claims.sql
--! Included auth/user_identities.sql
-- An account with an address of its own has an identity of provider email, besides those of identity providers. Its id is derived from
-- the account's, so that it stays the same.
create or replace function auth.user_identities(account auth.users) returns jsonb
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'identity_id', identity.identity_id,
    'id', identity.subject,
    'user_id', account.id,
    'identity_data', jsonb_build_object(
      'sub', identity.subject, 'email', account.email, 'email_verified', identity.is_verified, 'phone_verified', false
    ),
    'provider', identity.provider,
    'last_sign_in_at', identity.last_sign_in_at,
    'created_at', identity.created_at,
    'updated_at', coalesce(identity.last_sign_in_at, identity.created_at),
    'email', account.email
  ) order by identity.created_at, identity.provider), '[]')
  from (
    select md5('email ' || account.id)::uuid as identity_id, account.id::text as subject, 'email' as provider,
      account.email_confirmed_at is not null as is_verified, account.last_sign_in_at, account.created_at
    where account.email is not null and not account.is_anonymous
      and (account.password_hash is not null or not exists (
        select from auth.identities as linked where linked.user_id = account.user_id
      ))
    union all
    select md5(linked.issuer || ' ' || linked.subject)::uuid, linked.subject, providers.name,
      linked.is_vouched, linked.last_used_at, linked.created_at
    from auth.identities as linked
    join auth.providers on providers.issuer = linked.issuer
    where linked.user_id = account.user_id
  ) as identity;
$$ language sql stable set search_path = '';
comment on function auth.user_identities is 'How the user can sign in, as clients of Supabase Auth read it.';
--! EndIncluded auth/user_identities.sql
--! Included auth/user_factors.sql
create or replace function auth.user_factors(account auth.users) returns jsonb as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'id', factor.id,
    'friendly_name', factor.friendly_name,
    'factor_type', factor.factor_type,
    'status', case factor.state when 'enabled' then 'verified' else 'unverified' end,
    'created_at', factor.created_at,
    'updated_at', factor.updated_at,
    'last_challenged_at', factor.last_challenged_at
  ) order by factor.created_at, factor.id), '[]')
  from auth.mfa_factors as factor where factor.user_id = account.user_id;
$$ language sql stable set search_path = '';
comment on function auth.user_factors is 'The second factors of the user, as clients of Supabase Auth read them.';
--! EndIncluded auth/user_factors.sql
--! Included auth/user_json.sql
-- Absent values are left out, except in metadata.
create or replace function auth.user_json(user_id bigint) returns jsonb
language sql stable
begin atomic
  select jsonb_strip_nulls(jsonb_build_object(
    'id', account.id,
    'aud', 'authenticated',
    'role', coalesce(
      (select user_roles.role from auth.user_roles where user_roles.user_id = account.user_id), 'authenticated'
    ),
    'email', case when account.is_anonymous then '' else coalesce(account.email, '') end,
    'email_confirmed_at', account.email_confirmed_at,
    'new_email', auth.pending_email(account.user_id),
    'email_change_sent_at', sent.email_change,
    'confirmation_sent_at', sent.confirmation,
    'recovery_sent_at', sent.recovery,
    'phone', coalesce(account.phone, ''),
    'phone_confirmed_at', account.phone_confirmed_at,
    'confirmed_at', least(account.email_confirmed_at, account.phone_confirmed_at),
    'invited_at', account.invited_at,
    'last_sign_in_at', account.last_sign_in_at,
    'created_at', account.created_at,
    'updated_at', account.updated_at,
    'banned_until', account.banned_until,
    'deleted_at', account.deleted_at,
    'is_anonymous', account.is_anonymous,
    'is_sso_user', nullif(account.is_sso_user, false)
  )) || jsonb_build_object(
    'app_metadata', account.raw_app_meta_data || jsonb_strip_nulls(jsonb_build_object(
      'provider', auth.providers_of(account.user_id) -> 0, 'providers', auth.providers_of(account.user_id)
    )),
    'user_metadata', account.raw_user_meta_data,
    'identities', auth.user_identities(account),
    'factors', auth.user_factors(account)
  )
  from auth.users as account
  cross join lateral (
    select max(token.created_at) filter (where token.purpose in ('email_change_new', 'email_change_current')) as email_change,
      max(token.created_at) filter (where token.purpose in ('signup', 'verify')) as confirmation,
      max(token.created_at) filter (where token.purpose in ('recovery', 'reset')) as recovery
    from auth.mail_tokens as token where token.user_id = account.user_id
  ) as sent
  where account.user_id = user_json.user_id;
end;

comment on function auth.user_json is 'The user as clients of Supabase Auth read it; null without such an account.';
--! EndIncluded auth/user_json.sql

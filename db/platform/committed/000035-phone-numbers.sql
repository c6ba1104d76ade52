--! Previous: sha1:2c2f6823ee50d59902cd4ff606e646eb80ea0a45
--! Hash: sha1:1afc488ac07aaddde883fc5ec8db0e1c97bd7491
--! Message: phone numbers

-- Accounts with a phone number, whose codes are sent as text messages.
--! Included auth/own_email.sql
-- Each row of public.users has an address; that of an anonymous user, and of one with a phone number only, receives no mail.
create or replace function auth.own_email(account auth.users) returns text
language sql immutable
return case when not account.is_anonymous and account.email not like '%@phone.invalid' then account.email end;

comment on function auth.own_email is 'The address of the user; null for an account without one.';
--! EndIncluded auth/own_email.sql
--! Included auth/providers_of.sql
create or replace function auth.providers_of(user_id bigint) returns jsonb
language sql stable
begin atomic
  select coalesce(jsonb_agg(way.name order by way.since, way.name), '[]')
  from (
    select 'email' as name, account.created_at as since from auth.users as account
    where account.user_id = providers_of.user_id and auth.own_email(account) is not null
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
      'sub', identity.subject, 'email', coalesce(auth.own_email(account), ''), 'email_verified', identity.is_verified,
      'phone_verified', account.phone_confirmed_at is not null
    ),
    'provider', identity.provider,
    'last_sign_in_at', identity.last_sign_in_at,
    'created_at', identity.created_at,
    'updated_at', coalesce(identity.last_sign_in_at, identity.created_at),
    'email', coalesce(auth.own_email(account), '')
  ) order by identity.created_at, identity.provider), '[]')
  from (
    select md5('email ' || account.id)::uuid as identity_id, account.id::text as subject, 'email' as provider,
      account.email_confirmed_at is not null as is_verified, account.last_sign_in_at, account.created_at
    where auth.own_email(account) is not null
      and (account.password_hash is not null or not exists (
        select from auth.identities as linked where linked.user_id = account.user_id
      ))
    union all
    select md5('phone ' || account.id)::uuid, account.id::text, 'phone', false, account.last_sign_in_at, account.created_at
    where account.phone_confirmed_at is not null
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
    'email', coalesce(auth.own_email(account), ''),
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
    'email', coalesce(auth.own_email(v_account), ''),
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
--! Included auth/set_phone.sql
create or replace function auth.set_phone(user_id bigint, phone text, is_confirmed boolean) returns void as $$
begin
  update auth.users as account set
    phone = set_phone.phone, phone_confirmed_at = case when is_confirmed then clock_timestamp() end
  where account.user_id = set_phone.user_id;
exception when unique_violation then
  raise exception 'This phone number is already registered' using errcode = 'TAKEN', detail = 'phone';
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_phone is 'Sets the phone number of an account.';
--! EndIncluded auth/set_phone.sql
--! Included auth/phone_recipient.sql
create or replace function auth.phone_recipient(phone text, out user_id bigint, out state text, out user_json jsonb) as $$
declare
  v_account auth.users;
begin
  select account.user_id into user_id from auth.users as account where account.phone = phone_recipient.phone;
  v_account := auth.lock_account(user_id);
  user_id := v_account.user_id;
  user_json := auth.user_json(v_account.user_id);
  state := case
    when v_account.user_id is null then 'absent'
    when auth.is_disabled(v_account) then 'disabled'
    else 'found'
  end;
end;
$$ language plpgsql set search_path = '';
comment on function auth.phone_recipient is 'The account with that phone number, which is locked: absent, disabled or found.';
--! EndIncluded auth/phone_recipient.sql
--! Included auth/confirm_mail_code.sql
-- Whoever asks for a link to set a password proves the address. A password, sign-ins and identities from before that belong to whoever
-- registered the address, which may be somebody else.
create or replace function auth.confirm_mail_code(token auth.mail_tokens, account auth.users, client_info auth.client_info)
returns text as $$
begin
  if token.purpose in ('email_change_current', 'email_change_new') then
    update auth.mail_tokens as side set used_at = clock_timestamp(), code_hash = null where side.token_hash = token.token_hash;
    if exists (
      select from auth.mail_tokens as side
      where side.user_id = account.user_id and side.purpose in ('email_change_current', 'email_change_new')
        and side.used_at is null and side.expires_at > now()
    ) then
      return 'half';
    end if;
    perform auth.apply_email_change(account.user_id, token.new_email, client_info);
    return 'passed';
  end if;
  delete from auth.mail_tokens as spent where spent.token_hash = token.token_hash;
  if token.purpose = 'sms' then
    update auth.users as confirmed set phone_confirmed_at = coalesce(confirmed.phone_confirmed_at, clock_timestamp())
      where confirmed.user_id = account.user_id;
    return 'passed';
  end if;
  if token.purpose = 'recovery' and account.email_confirmed_at is null then
    update auth.identities set is_vouched = false where identities.user_id = account.user_id;
    update auth.users as claimed set password_hash = null, password_changed_at = clock_timestamp()
      where claimed.user_id = account.user_id;
    perform auth.end_sign_ins(account.user_id);
  end if;
  update auth.users as confirmed set verified_email = token.email where confirmed.user_id = account.user_id;
  if account.email_confirmed_at is null then
    delete from auth.mail_tokens as spent where spent.user_id = account.user_id and spent.purpose in ('signup', 'verify', 'invite');
    perform auth.log_event('email.verified', account.user_id, client_info);
  end if;
  return 'passed';
end;
$$ language plpgsql set search_path = '';
comment on function auth.confirm_mail_code is
  'Spends a valid link or code: passed, or half if a change of address waits for the other side. The caller has locked the account.';
--! EndIncluded auth/confirm_mail_code.sql

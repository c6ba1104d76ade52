--! Previous: sha1:246d13ee6b4aa39c1f7b00e0899dd9e1fec8bcc3
--! Hash: sha1:1c0e25e50e8c6b81528c20dd6bdd6cc90a2ce403
--! Message: account page

-- What users see and change of their own accounts: where they are signed in, keys, providers, password and address.
alter table auth.refresh_tokens
  add column if not exists signed_in_at timestamptz,
  add column if not exists address inet,
  add column if not exists user_agent text;
alter table auth.refresh_tokens drop constraint if exists refresh_tokens_user_agent_max_length;
alter table auth.refresh_tokens
  add constraint refresh_tokens_user_agent_max_length check (length(user_agent) <= 500) not valid;
comment on column auth.refresh_tokens.signed_in_at is
  'When its family was started; null if it was stored by an earlier version.';
drop function if exists auth.add_refresh_token(bigint, bytea, uuid, integer);
--! Included auth/add_refresh_token.sql
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
--! EndIncluded auth/add_refresh_token.sql
--! Included auth/open_tokens.sql
create or replace function auth.open_tokens(user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info)
returns jsonb as $$
begin
  perform auth.log_event('refresh_token.created', open_tokens.user_id, client_info);
  return auth.add_refresh_token(open_tokens.user_id, open_tokens.token_hash, gen_random_uuid(), seconds, client_info);
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
--! Included auth/list_sign_ins.sql
create or replace function auth.list_sign_ins(user_id bigint, id_hash bytea) returns table (
  family_id uuid, is_current boolean, signed_in_at timestamptz, last_used_at timestamptz, address inet, user_agent text
)
language sql stable
begin atomic
  select null::uuid, sessions.id_hash = list_sign_ins.id_hash, sessions.created_at, sessions.last_used_at,
    sessions.address, sessions.user_agent
  from auth.sessions
  where sessions.user_id = list_sign_ins.user_id and least(sessions.idle_expires_at, sessions.expires_at) > now()
  union all
  (
    select token.family_id, false, coalesce(token.signed_in_at, token.issued_at), token.issued_at, token.address, token.user_agent
    from auth.refresh_tokens as token
    where token.user_id = list_sign_ins.user_id and token.rotated_at is null and token.revoked_at is null
      and token.expires_at > now()
    order by token.issued_at desc
    limit 100
  );
end;

comment on function auth.list_sign_ins is
  'Where a user is signed in: the session of a browser, without family_id, and families of refresh tokens, of which the newest 100.';
--! EndIncluded auth/list_sign_ins.sql
--! Included auth/end_token_family.sql
-- Access tokens name no family, so all of the user's end: other clients refresh theirs.
create or replace function auth.end_token_family(user_id bigint, family_id uuid, client_info auth.client_info)
returns boolean as $$
begin
  perform auth.lock_account(end_token_family.user_id);
  update auth.refresh_tokens as token set revoked_at = now()
    where token.user_id = end_token_family.user_id and token.family_id = end_token_family.family_id
      and token.revoked_at is null;
  if not found then
    return false;
  end if;
  perform auth.end_access_tokens(end_token_family.user_id);
  perform auth.log_event('refresh_token.revoked', end_token_family.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_token_family is
  'Ends one sign-in by tokens of that user. False: the user has no such sign-in.';
--! EndIncluded auth/end_token_family.sql
--! Included auth/end_other_sign_ins.sql
create or replace function auth.end_other_sign_ins(user_id bigint, id_hash bytea, client_info auth.client_info)
returns void as $$
begin
  perform auth.revoke_refresh_tokens(end_other_sign_ins.user_id, client_info);
  perform auth.end_access_tokens(end_other_sign_ins.user_id);
  delete from auth.sessions
    where sessions.user_id = end_other_sign_ins.user_id and sessions.id_hash <> end_other_sign_ins.id_hash;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_other_sign_ins is 'Ends all sign-ins of the user except this session.';
--! EndIncluded auth/end_other_sign_ins.sql

alter table auth.mail_tokens drop constraint mail_tokens_purpose_check;
alter table auth.mail_tokens
  add constraint mail_tokens_purpose_check check (purpose in ('reset', 'verify', 'change'));
comment on table auth.mail_tokens is
  'Links sent by mail, as SHA-256 only: to set a password, to verify the address, or to change it. Each works once.';
comment on column auth.mail_tokens.email is
  'Where it was sent. Unless the purpose is change, the token is invalid when this is no longer the user''s address.';
--! Included auth/set_password.sql
-- Also deletes links to set another password or another address, and everything in progress: identities being linked, sign-ins that still need a code, and
-- codes for tokens. password_changed_at is later than any identity that was linked before the account was locked.
create or replace function auth.set_password(user_id bigint, new_hash text) returns void as $$
begin
  update auth.credentials set password_hash = new_hash, password_changed_at = clock_timestamp()
    where credentials.user_id = set_password.user_id;
  perform auth.end_sign_ins(set_password.user_id);
  delete from auth.mail_tokens where mail_tokens.user_id = set_password.user_id and purpose in ('reset', 'change');
  delete from auth.federation_states where federation_states.user_id = set_password.user_id;
  delete from auth.federation_logins where federation_logins.user_id = set_password.user_id;
  delete from auth.federation_codes where federation_codes.user_id = set_password.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_password is
  'Sets the password and ends all sign-ins of the user. The caller has locked the account.';
--! EndIncluded auth/set_password.sql
--! Included auth/confirm_password.sql
create or replace function auth.confirm_password(
  counted_name text, user_id bigint, password_hash text, client_info auth.client_info
) returns boolean as $$
declare
  v_account constant auth.credentials := auth.lock_account(confirm_password.user_id);
begin
  if v_account.password_hash is distinct from confirm_password.password_hash or v_account.disabled_at is not null then
    perform auth.fail_login(counted_name, v_account.user_id, 'password', client_info);
    return false;
  end if;
  perform auth.end_attempt(counted_name, client_info.address, 'passed');
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.confirm_password is
  'Whether a password that was compared with this hash is still the one of the account, which is locked until the end of the transaction.';
--! EndIncluded auth/confirm_password.sql
drop function if exists auth.change_password(text, bigint, text, text, auth.client_info);
--! Included auth/change_password.sql
create or replace function auth.change_password(user_id bigint, new_hash text, client_info auth.client_info) returns void as $$
begin
  perform auth.set_password(change_password.user_id, new_hash);
  perform auth.log_event('password.changed', change_password.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_password is
  'Sets the password of a user who has confirmed the old one in this transaction, and ends the user''s other sign-ins.';
--! EndIncluded auth/change_password.sql
--! Included auth/begin_email_change.sql
-- Tells that an address is taken, as auth.register does.
create or replace function auth.begin_email_change(
  user_id bigint, email text, token_hash bytea, seconds integer, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.credentials := auth.lock_account(begin_email_change.user_id);
  v_current text;
  v_message text;
begin
  select users.email into v_current from public.users where users.id = v_account.user_id;
  select fault.message into v_message
    from auth.account_faults(null, begin_email_change.email, null, null) as fault where fault.field = 'email' limit 1;
  if v_message is not null then
    raise exception '%', v_message using errcode = 'WRONG', detail = 'email';
  elsif v_current = begin_email_change.email then
    raise exception 'This is your e-mail address already' using errcode = 'WRONG', detail = 'email';
  elsif exists (
    select from public.users
    where lower(users.email) = lower(begin_email_change.email) and users.id <> begin_email_change.user_id
  ) then
    raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
  elsif auth.add_mail_token(token_hash, 'change', v_account.user_id, begin_email_change.email, seconds) is null then
    raise exception 'An e-mail was sent within the last minute' using errcode = 'TOMNY', hint = 'Try again in a minute.';
  end if;
  perform auth.log_event('email.change_requested', v_account.user_id, client_info);
  return v_current;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_email_change is
  'Stores a token to confirm the new address with; returns the current address, for a notice. The user has confirmed the password.';
--! EndIncluded auth/begin_email_change.sql
--! Included auth/change_email.sql
create or replace function auth.change_email(
  token_hash bytea, client_info auth.client_info, out user_id bigint, out previous_email text
) as $$
declare
  v_token auth.mail_tokens;
  v_account auth.credentials;
begin
  select * into v_token from auth.mail_tokens as token
    where token.token_hash = change_email.token_hash and token.purpose = 'change' and token.expires_at > now();
  v_account := auth.lock_account(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = v_token.token_hash;
  if not found or v_account.user_id is null or v_account.disabled_at is not null then
    return;
  end if;
  select users.email into previous_email from public.users where users.id = v_account.user_id;
  begin
    update public.users set email = v_token.email where users.id = v_account.user_id;
  exception when unique_violation then
    raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
  end;
  update auth.credentials set verified_email = v_token.email where credentials.user_id = v_account.user_id;
  delete from auth.mail_tokens as token where token.user_id = v_account.user_id;
  perform auth.log_event('email.changed', v_account.user_id, client_info);
  user_id := v_account.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_email is
  'Spends the token and changes the address, which is verified by that. Null: the token is invalid.';
--! EndIncluded auth/change_email.sql

--! Included auth/account_of.sql
create or replace function auth.account_of(user_id bigint) returns table (
  name text, email text, username text, role text, is_verified boolean, has_password boolean,
  factor_enabled_at timestamptz, backup_codes integer
) as $$
begin
  return query
    select users.name, users.email, credentials.username, auth.claims_of(users.id) ->> 'role',
      coalesce(lower(credentials.verified_email) = lower(users.email), false), credentials.password_hash is not null,
      factor.enabled_at,
      (select count(*)::integer from auth.mfa_backup_codes as codes where codes.user_id = users.id and codes.used_at is null)
    from public.users
    join auth.credentials on credentials.user_id = users.id
    left join auth.mfa_factors as factor on factor.user_id = users.id and factor.state = 'enabled'
    where users.id = account_of.user_id;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.account_of is 'What a user sees of the own account.';
--! EndIncluded auth/account_of.sql
--! Included auth/rename_user.sql
create or replace function auth.rename_user(user_id bigint, name text) returns void as $$
declare
  v_constraint text;
  v_fault public.field_error;
begin
  update public.users set name = rename_user.name where users.id = rename_user.user_id;
exception when check_violation then
  get stacked diagnostics v_constraint = constraint_name;
  v_fault := api.field_error('public.users', v_constraint);
  raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
end;
$$ language plpgsql set search_path = '';
comment on function auth.rename_user is 'Changes the name of the user who is signed in.';
--! EndIncluded auth/rename_user.sql
--! Included auth/create_own_api_key.sql
create or replace function auth.create_own_api_key(
  key_hash bytea, prefix text, user_id bigint, name text, expires_at timestamptz, client_info auth.client_info
) returns bigint as $$
declare
  v_max constant integer := 50;
begin
  -- No role can be assigned between reading it and the insert.
  perform auth.lock_account(create_own_api_key.user_id);
  if (
    select count(*) from auth.api_keys
    where api_keys.owner_id = create_own_api_key.user_id and api_keys.revoked_at is null
      and (api_keys.expires_at is null or api_keys.expires_at > now())
  ) >= v_max then
    raise exception 'You have % keys already', v_max using errcode = 'WRONG', detail = 'name', hint = 'Revoke keys that you no longer use.';
  elsif length(create_own_api_key.name) > 200 then
    raise exception 'A name has at most 200 characters' using errcode = 'WRONG', detail = 'name';
  end if;
  return auth.create_api_key(
    create_own_api_key.key_hash, create_own_api_key.prefix, auth.claims_of(create_own_api_key.user_id) ->> 'role',
    create_own_api_key.user_id, create_own_api_key.name, create_own_api_key.expires_at, client_info
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.create_own_api_key is
  'Stores an API key of a user, in the role that the user has. The user has confirmed the password.';
--! EndIncluded auth/create_own_api_key.sql
--! Included auth/list_linked_providers.sql
create or replace function auth.list_linked_providers(user_id bigint)
returns table (name text, title text, linked_at timestamptz, last_used_at timestamptz)
language sql stable
begin atomic
  select providers.name, coalesce(providers.title, initcap(providers.name)), min(identities.created_at), max(identities.last_used_at)
  from auth.identities join auth.providers on providers.issuer = identities.issuer
  where identities.user_id = list_linked_providers.user_id
  group by providers.name
  order by providers.name;
end;

comment on function auth.list_linked_providers is 'The providers through which a user can sign in.';
--! EndIncluded auth/list_linked_providers.sql
--! Included auth/unlink_provider.sql
create or replace function auth.unlink_provider(user_id bigint, provider text, client_info auth.client_info)
returns boolean as $$
declare
  v_account constant auth.credentials := auth.lock_account(unlink_provider.user_id);
begin
  if v_account.password_hash is null and not exists (
    select from auth.identities join auth.providers on providers.issuer = identities.issuer
    where identities.user_id = unlink_provider.user_id and providers.name <> unlink_provider.provider and providers.enabled
  ) then
    raise exception 'This is your only way to sign in' using errcode = 'WRONG', hint = 'Set a password first.';
  end if;
  delete from auth.identities using auth.providers
    where identities.user_id = unlink_provider.user_id and identities.issuer = providers.issuer
      and providers.name = unlink_provider.provider;
  if not found then
    return false;
  end if;
  -- A link that is in progress would be completed after this.
  delete from auth.federation_states as state
    where state.user_id = unlink_provider.user_id and state.provider = unlink_provider.provider;
  perform auth.log_event(
    'identity.unlinked', unlink_provider.user_id, client_info, jsonb_build_object('provider', unlink_provider.provider)
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.unlink_provider is
  'Removes the identities of a user at that provider, unless the user could not sign in then. False: there are none.';
--! EndIncluded auth/unlink_provider.sql

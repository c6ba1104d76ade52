--! Previous: sha1:c79dca753bfd5672f5d34feb4bc2866c32935827
--! Hash: sha1:e63d8c96879336d4dacbcfb628bd3fca642fad99
--! Message: factors and passkeys

-- Several second factors for a user, challenges that are stored so that any gateway can verify them, and passkeys.
drop table if exists auth.passkeys, auth.mfa_challenges cascade;
alter table auth.token_sessions drop constraint if exists token_sessions_factor_id_fkey;
alter table auth.mfa_backup_codes drop constraint if exists mfa_backup_codes_user_id_fkey;
alter table auth.mfa_factors drop constraint if exists mfa_factors_pkey;
alter table auth.mfa_factors
  add column if not exists id uuid not null default gen_random_uuid(),
  add column if not exists factor_type text not null default 'totp',
  add column if not exists friendly_name text not null default '',
  add column if not exists updated_at timestamptz not null default now(),
  add column if not exists last_challenged_at timestamptz;
alter table auth.mfa_factors
  alter column factor_type drop default,
  alter column secret drop not null,
  drop constraint if exists mfa_factors_factor_type_check,
  drop constraint if exists mfa_factors_friendly_name_max_length,
  drop constraint if exists mfa_factors_secret;
alter table auth.mfa_factors
  add constraint mfa_factors_pkey primary key (id),
  add constraint mfa_factors_factor_type_check check (factor_type in ('totp', 'webauthn')),
  add constraint mfa_factors_friendly_name_max_length check (length(friendly_name) <= 200) not valid,
  add constraint mfa_factors_secret check ((factor_type = 'totp') = (secret is not null));
create index if not exists mfa_factors_of_user on auth.mfa_factors (user_id);
create unique index if not exists mfa_factors_user_friendly_name_unique
  on auth.mfa_factors (user_id, friendly_name) where friendly_name <> '';
alter table auth.mfa_backup_codes
  add constraint mfa_backup_codes_user_id_fkey foreign key (user_id) references auth.users on delete cascade;

comment on table auth.mfa_factors is 'The second factors of users: authenticator apps (TOTP) and security keys (WebAuthn).';
comment on column auth.mfa_factors.state is 'pending until it was verified for the first time; then enabled.';
comment on column auth.mfa_factors.secret is
  'The TOTP secret in base32. It cannot be a hash: codes are computed from it. The key of a security key is in auth.passkeys.';
comment on column auth.mfa_factors.friendly_name is 'The user''s name for it; empty if it has none.';
comment on index auth.mfa_factors_user_friendly_name_unique is 'A factor with this name already exists.';

create table auth.mfa_challenges (
  id         uuid primary key default gen_random_uuid(),
  purpose    text not null check (purpose in ('factor', 'passkey_registration', 'passkey_sign_in')),
  factor_id  uuid references auth.mfa_factors on delete cascade,
  user_id    bigint references auth.users on delete cascade,
  -- Base64url; what a security key or passkey signs.
  challenge  text check (length(challenge) <= 200),
  address    inet,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint mfa_challenges_purpose check (
    (purpose = 'factor') = (factor_id is not null) and (purpose = 'passkey_sign_in') = (user_id is null)
  )
);
create index on auth.mfa_challenges (expires_at);
create index on auth.mfa_challenges (factor_id);
create index on auth.mfa_challenges (user_id);
alter table auth.mfa_challenges enable row level security;
comment on table auth.mfa_challenges is
  'What a client has been asked to prove: a second factor, or a passkey at its registration or at a sign-in. Each is used once.';
comment on column auth.mfa_challenges.user_id is 'Null for a sign-in with a passkey: nobody is known yet.';
comment on column auth.mfa_challenges.challenge is 'Null for an authenticator app.';

create table auth.passkeys (
  id                 uuid primary key default gen_random_uuid(),
  user_id            bigint not null references auth.users on delete cascade,
  factor_id          uuid references auth.mfa_factors on delete cascade,
  friendly_name      text not null default '',
  -- Base64url, as browsers send it.
  credential_id      text not null unique check (length(credential_id) <= 1400),
  public_key         bytea not null,
  counter            bigint not null default 0 check (counter >= 0),
  transports         text[] not null default '{}',
  aaguid             uuid,
  is_backup_eligible boolean not null default false,
  is_backed_up       boolean not null default false,
  created_at         timestamptz not null default now(),
  updated_at         timestamptz not null default now(),
  last_used_at       timestamptz
);
alter table auth.passkeys
  add constraint passkeys_friendly_name_max_length check (length(friendly_name) <= 200) not valid,
  add constraint passkeys_public_key_max_length check (octet_length(public_key) <= 4096) not valid;
create index on auth.passkeys (user_id);
create index on auth.passkeys (factor_id);
alter table auth.passkeys enable row level security;
comment on table auth.passkeys is 'The public keys of passkeys and security keys (WebAuthn).';
comment on column auth.passkeys.factor_id is 'The second factor that it is; null for a passkey that users sign in with.';
comment on column auth.passkeys.counter is 'Uses, as the passkey counts them; 0 if it does not.';
comment on column auth.passkeys.aaguid is 'The model of the authenticator, as far as it tells.';
comment on column auth.passkeys.is_backed_up is 'Whether it was stored in a cloud account at the last use.';

alter table auth.token_sessions
  add column if not exists factor_id uuid,
  add column if not exists requires_factor boolean not null default false;
alter table auth.token_sessions
  add constraint token_sessions_factor_id_fkey foreign key (factor_id) references auth.mfa_factors on delete set null;
create index if not exists token_sessions_of_factor on auth.token_sessions (factor_id);
comment on column auth.token_sessions.factor_id is 'The second factor that was proved.';
comment on column auth.token_sessions.requires_factor is
  'The account requires a second factor that this sign-in has not proved yet: until then, its tokens act at /auth/v1 only.';

--! Included auth/has_factor.sql
create or replace function auth.has_factor(user_id bigint) returns boolean
language sql stable
begin atomic
  select exists (
    select from auth.mfa_factors as factor where factor.user_id = has_factor.user_id and factor.state = 'enabled'
  );
end;
comment on function auth.has_factor is 'Whether signing in requires a second factor.';
--! EndIncluded auth/has_factor.sql
--! Included auth/has_second_factor_session.sql
create or replace function auth.has_second_factor_session(user_id bigint, session_id uuid) returns boolean
language sql stable
begin atomic
  select exists (
    select from auth.token_sessions as session
    where session.id = has_second_factor_session.session_id and session.user_id = has_second_factor_session.user_id
      and session.aal >= 2
  );
end;
comment on function auth.has_second_factor_session is 'Whether this sign-in by tokens has proved a second factor.';
--! EndIncluded auth/has_second_factor_session.sql
--! Included auth/use_factor.sql
-- RFC 6238 §5.2: a code is accepted once. The row of an accepted step or backup code stays locked until the transaction ends.
create or replace function auth.use_factor(
  user_id bigint, factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info
) returns text as $$
begin
  if not auth.has_factor(use_factor.user_id) then
    return 'none';
  elsif step is null and backup_code_hash is null then
    return 'missing';
  elsif step is not null then
    update auth.mfa_factors set last_used_step = step
      where mfa_factors.user_id = use_factor.user_id and state = 'enabled' and secret = factor_secret
        and coalesce(last_used_step < step, true);
  else
    update auth.mfa_backup_codes set used_at = now()
      where mfa_backup_codes.user_id = use_factor.user_id and code_hash = backup_code_hash and used_at is null;
    if found then
      perform auth.log_event('backup_code.used', use_factor.user_id, client_info);
    end if;
  end if;
  return case when found then 'used' else 'wrong' end;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_factor is
  'Spends a code: used; wrong when it was used before; missing when one is required; none without a factor.';
--! EndIncluded auth/use_factor.sql
drop function if exists auth.begin_login(text, auth.client_info);
--! Included auth/begin_login.sql
-- Runs the same queries whether or not the user exists. counted_name is the name that attempts are counted by: an account has one,
-- although it can be named by user name or by e-mail address.
create or replace function auth.begin_login(name text, client_info auth.client_info, out wait integer, out counted_name text,
  out user_id bigint, out password_hash text, out has_factor boolean, out factor_secrets text[], out backup_code_hash text
) as $$
declare
  v_account constant auth.users := auth.find_account(name);
begin
  counted_name := coalesce(v_account.username, name);
  wait := auth.count_attempt(counted_name, client_info.address);
  if wait = 0 then
    user_id := v_account.user_id;
    password_hash := v_account.password_hash;
    has_factor := auth.has_factor(v_account.user_id);
    select coalesce(array_agg(secret order by enabled_at), '{}') into factor_secrets
      from auth.mfa_factors as factor
      where factor.user_id = v_account.user_id and factor.state = 'enabled' and factor.factor_type = 'totp';
    select code_hash into backup_code_hash
      from auth.mfa_backup_codes where mfa_backup_codes.user_id = v_account.user_id and used_at is null limit 1;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_login is
  'Takes an attempt and returns what the user has to prove. One backup code is enough: all have its salt.';
--! EndIncluded auth/begin_login.sql
--! Included auth/pass_federation.sql
-- The result is a value, not an exception: the record that the message was used must be kept even when the sign-in is refused.
create or replace function auth.pass_federation(
  provider text, subject text, claims jsonb, linking bigint, left_at timestamptz, client_info auth.client_info,
  out outcome text, out user_id bigint
) as $$
declare
  v_provider auth.providers;
begin
  select * into v_provider from auth.providers where providers.name = pass_federation.provider and enabled for key share;
  if not found then
    outcome := 'gone';
    return;
  end if;

  if claims ? 'message_id' and not auth.use_message(
    v_provider.issuer, claims ->> 'message_id', (claims ->> 'message_expires_at')::timestamptz
  ) then
    outcome := 'replayed';
    return;
  end if;

  if linking is not null then
    outcome := auth.link_identity(linking, v_provider, subject, left_at, client_info);
    user_id := linking;
    return;
  end if;

  select * into outcome, user_id from auth.federated_user(v_provider, subject, claims, client_info);
  if user_id is null or outcome = 'conflict' then
    return;
  end if;
  if exists (
    select from auth.users as account where account.user_id = pass_federation.user_id and auth.is_disabled(account)
  ) then
    outcome := 'disabled';
    return;
  end if;
  update auth.identities set last_used_at = now()
    where identities.issuer = v_provider.issuer and identities.subject = pass_federation.subject;
  outcome := case
    when v_provider.trusts_factor and coalesce((claims ->> 'second_factor')::boolean, false) then 'passed'
    when auth.has_factor(pass_federation.user_id) then 'code_missing'
    else 'passed'
  end;
  if outcome = 'passed' then
    perform auth.log_event(
      'federation.signed_in', pass_federation.user_id, client_info, jsonb_build_object('provider', v_provider.name)
    );
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_federation is
  'The result of a sign-in through a provider: passed, linked, code_missing; or why it is refused.';
--! EndIncluded auth/pass_federation.sql
--! Included auth/account_of.sql
create or replace function auth.account_of(user_id bigint) returns table (
  name text, email text, username text, role text, is_verified boolean, has_password boolean,
  factor_enabled_at timestamptz, backup_codes integer
) as $$
begin
  return query
    select users.name, users.email, account.username, auth.claims_of(users.id) ->> 'role',
      coalesce(lower(account.verified_email) = lower(users.email), false), account.password_hash is not null,
      (
        select min(factor.enabled_at) from auth.mfa_factors as factor
        where factor.user_id = users.id and factor.factor_type = 'totp'
      ),
      (select count(*)::integer from auth.mfa_backup_codes as codes where codes.user_id = users.id and codes.used_at is null)
    from public.users
    join auth.users as account on account.user_id = users.id
    where users.id = account_of.user_id;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.account_of is 'What a user sees of the own account.';
--! EndIncluded auth/account_of.sql
--! Included auth/replace_backup_codes.sql
create or replace function auth.replace_backup_codes(user_id bigint, code_hashes text[]) returns void as $$
begin
  delete from auth.mfa_backup_codes as code where code.user_id = replace_backup_codes.user_id;
  insert into auth.mfa_backup_codes (user_id, code_hash)
    select replace_backup_codes.user_id, code_hash from unnest(code_hashes) as code_hash;
end;
$$ language plpgsql set search_path = '';
comment on function auth.replace_backup_codes is 'Replaces all backup codes of the user. The caller has locked the account.';
--! EndIncluded auth/replace_backup_codes.sql
--! Included auth/renew_backup_codes.sql
create or replace function auth.renew_backup_codes(
  counted_name text, user_id bigint, factor_secret text, step bigint, backup_code_hash text,
  new_hashes text[], client_info auth.client_info
) returns text as $$
declare
  v_outcome text;
begin
  perform auth.lock_account(renew_backup_codes.user_id);
  v_outcome := auth.use_factor(renew_backup_codes.user_id, factor_secret, step, backup_code_hash, client_info);
  if v_outcome = 'wrong' then
    perform auth.fail_login(counted_name, renew_backup_codes.user_id, 'code', client_info);
    return v_outcome;
  end if;
  perform auth.end_attempt(counted_name, client_info.address, 'undecided');
  if v_outcome = 'used' then
    perform auth.replace_backup_codes(renew_backup_codes.user_id, new_hashes);
    perform auth.log_event('backup_codes.renewed', renew_backup_codes.user_id, client_info);
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.renew_backup_codes is
  'Replaces all backup codes, given a valid code; returns the result of use_factor.';
--! EndIncluded auth/renew_backup_codes.sql
--! Included auth/delete_factor.sql
-- The sign-ins that proved this factor continue without it. Backup codes end with the last factor.
create or replace function auth.delete_factor(factor auth.mfa_factors, client_info auth.client_info) returns void as $$
begin
  update auth.token_sessions as session set
      aal = 1, factor_id = null,
      amr = (
        select coalesce(jsonb_agg(entry), '[]') from jsonb_array_elements(session.amr) as entry
        where entry ->> 'method' not in ('totp', 'mfa/webauthn')
      )
    where session.factor_id = factor.id;
  delete from auth.mfa_factors as deleted where deleted.id = factor.id;
  if not auth.has_factor(factor.user_id) then
    delete from auth.mfa_backup_codes as code where code.user_id = factor.user_id;
    update auth.token_sessions as session set requires_factor = false
      where session.user_id = factor.user_id and session.requires_factor;
  end if;
  perform auth.log_event(
    'factor.disabled', factor.user_id, client_info, jsonb_build_object('factor', factor.id, 'type', factor.factor_type)
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.delete_factor is 'Deletes a factor. The caller has locked the account.';
--! EndIncluded auth/delete_factor.sql
--! Included auth/disable_factor.sql
create or replace function auth.disable_factor(
  counted_name text, user_id bigint, factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info
) returns text as $$
declare
  v_outcome text;
begin
  perform auth.lock_account(disable_factor.user_id);
  v_outcome := auth.use_factor(disable_factor.user_id, factor_secret, step, backup_code_hash, client_info);
  if v_outcome = 'wrong' then
    perform auth.fail_login(counted_name, disable_factor.user_id, 'code', client_info);
    return v_outcome;
  end if;
  perform auth.end_attempt(counted_name, client_info.address, 'undecided');
  if v_outcome = 'used' then
    perform auth.delete_factor(factor, client_info) from auth.mfa_factors as factor
      where factor.user_id = disable_factor.user_id and factor.factor_type = 'totp';
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.disable_factor is
  'enabled -> not enrolled, for each authenticator app, given a valid code; returns the result of use_factor.';
--! EndIncluded auth/disable_factor.sql
--! Included auth/enroll_factor.sql
-- The documented route knows one authenticator app. Starting again replaces the secrets that no app has confirmed.
create or replace function auth.enroll_factor(user_id bigint, secret text, client_info auth.client_info) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(enroll_factor.user_id);
begin
  if v_account.user_id is null then
    raise exception 'There is no account to protect' using errcode = 'NTFND';
  end if;
  delete from auth.mfa_factors as pending
    where pending.user_id = v_account.user_id and pending.factor_type = 'totp' and pending.state = 'pending';
  if exists (
    select from auth.mfa_factors as factor where factor.user_id = v_account.user_id and factor.factor_type = 'totp'
  ) then
    raise exception 'An authenticator app is enabled already'
      using errcode = 'TAKEN', hint = 'Disable it with one of its codes before you enrol another one.';
  end if;
  insert into auth.mfa_factors (user_id, factor_type, secret) values (v_account.user_id, 'totp', enroll_factor.secret);
  perform auth.log_event('factor.enrolled', v_account.user_id, client_info);
  return v_account.username;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enroll_factor is
  'not enrolled or pending -> pending. Returns the user name that the app displays.';
--! EndIncluded auth/enroll_factor.sql
--! Included auth/enable_factor.sql
create or replace function auth.enable_factor(
  user_id bigint, secret text, step bigint, backup_code_hashes text[], client_info auth.client_info
) returns boolean as $$
begin
  perform auth.lock_account(enable_factor.user_id);
  update auth.mfa_factors as factor
    set state = 'enabled', enabled_at = now(), updated_at = now(), last_used_step = step
    where factor.user_id = enable_factor.user_id and factor.secret = enable_factor.secret and factor.state = 'pending';
  if not found then
    return false;
  end if;
  perform auth.replace_backup_codes(enable_factor.user_id, backup_code_hashes);
  perform auth.log_event('factor.enabled', enable_factor.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enable_factor is
  'pending -> enabled, given a valid code of that secret. False: no such secret is pending.';
--! EndIncluded auth/enable_factor.sql
--! Included auth/add_factor.sql
-- Several factors per user. The limits and outcomes are those of Supabase Auth, which its clients know. An unverified factor that
-- nobody has challenged for five minutes was abandoned.
create or replace function auth.add_factor(
  user_id bigint, factor_type text, friendly_name text, secret text, session_id uuid, client_info auth.client_info,
  out outcome text, out factor auth.mfa_factors
) as $$
declare
  v_most constant integer := 10;
  v_account constant auth.users := auth.lock_account(add_factor.user_id);
begin
  if v_account.user_id is null then
    outcome := 'no_account';
    return;
  end if;
  delete from auth.mfa_factors as abandoned
    where abandoned.user_id = v_account.user_id and abandoned.state = 'pending'
      and greatest(abandoned.created_at, abandoned.last_challenged_at) < now() - interval '5 minutes';
  outcome := case
    when exists (
      select from auth.mfa_factors as other
      where other.user_id = v_account.user_id and other.friendly_name = add_factor.friendly_name
    ) then 'name_taken'
    when (select count(*) from auth.mfa_factors as other where other.user_id = v_account.user_id) >= v_most then 'too_many'
    when auth.has_factor(v_account.user_id) and not auth.has_second_factor_session(v_account.user_id, session_id) then 'level'
    else 'added'
  end;
  if outcome <> 'added' then
    return;
  end if;
  insert into auth.mfa_factors as added (user_id, factor_type, friendly_name, secret)
    values (v_account.user_id, add_factor.factor_type, add_factor.friendly_name, add_factor.secret)
    returning * into factor;
  perform auth.log_event(
    'factor.enrolled', v_account.user_id, client_info,
    jsonb_build_object('factor', factor.id, 'type', factor.factor_type)
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_factor is
  'Adds a pending factor: added; or name_taken, too_many, level when the sign-in must prove a second factor first, no_account.';
--! EndIncluded auth/add_factor.sql
--! Included auth/delete_expired_challenges.sql
-- Expired ones are kept for a while, so that a late answer is told that its challenge has expired.
create or replace function auth.delete_expired_challenges() returns void as $$
  delete from auth.mfa_challenges where id in (
    select id from auth.mfa_challenges where expires_at < now() - interval '10 minutes'
    order by expires_at limit 10 for update skip locked
  );
$$ language sql set search_path = '';
comment on function auth.delete_expired_challenges is 'Deletes a few challenges that have expired.';
--! EndIncluded auth/delete_expired_challenges.sql
--! Included auth/add_factor_challenge.sql
-- Each call deletes a few expired challenges.
create or replace function auth.add_factor_challenge(
  user_id bigint, factor_id uuid, challenge text, seconds integer, client_info auth.client_info
) returns auth.mfa_challenges as $$
declare
  v_challenge auth.mfa_challenges;
begin
  update auth.mfa_factors as factor set last_challenged_at = now()
    where factor.id = factor_id and factor.user_id = add_factor_challenge.user_id;
  if not found then
    return null;
  end if;
  insert into auth.mfa_challenges (purpose, factor_id, user_id, challenge, address, expires_at)
    values (
      'factor', add_factor_challenge.factor_id, add_factor_challenge.user_id, add_factor_challenge.challenge,
      client_info.address, now() + make_interval(secs => seconds)
    )
    returning * into v_challenge;
  perform auth.delete_expired_challenges();
  return v_challenge;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_factor_challenge is 'Starts to verify a factor of that user; null if there is no such factor.';
--! EndIncluded auth/add_factor_challenge.sql
drop function if exists auth.open_tokens(bigint, bytea, integer, auth.client_info, text[], smallint);
--! Included auth/open_tokens.sql
create or replace function auth.open_tokens(
  user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info,
  methods text[] default '{}', aal smallint default 1, is_complete boolean default false
) returns jsonb as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_session_id constant uuid := gen_random_uuid();
begin
  perform auth.log_event('refresh_token.created', open_tokens.user_id, client_info);
  insert into auth.token_sessions (id, user_id, created_at, aal, amr, requires_factor)
    values (v_session_id, open_tokens.user_id, v_now, open_tokens.aal, (
      select coalesce(jsonb_agg(auth.amr_entry(method, v_now)), '[]') from unnest(open_tokens.methods) as method
    ), open_tokens.aal < 2 and not is_complete and auth.has_factor(open_tokens.user_id));
  update auth.users as account set last_sign_in_at = v_now where account.user_id = open_tokens.user_id;
  return auth.add_refresh_token(open_tokens.user_id, open_tokens.token_hash, v_session_id, seconds, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.open_tokens is
  'Starts a sign-in by tokens and returns the claims of its first access token. The caller has locked the account.';
--! EndIncluded auth/open_tokens.sql
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
  ) || case when v_session.requires_factor then jsonb_build_object('required_aal', 'aal2') else '{}' end;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.session_claims is 'The claims of an access token of /auth/v1 issued now, and the id that may become its subject.';
--! EndIncluded auth/session_claims.sql
--! Included auth/continue_tokens.sql
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
--! EndIncluded auth/continue_tokens.sql
--! Included auth/raise_session.sql
-- Sign-ins by tokens that proved the password alone end: they may be those of somebody who knows no more.
create or replace function auth.raise_session(user_id bigint, session_id uuid, factor auth.mfa_factors) returns boolean as $$
begin
  if not auth.add_session_method(
    raise_session.user_id, raise_session.session_id,
    case factor.factor_type when 'webauthn' then 'mfa/webauthn' else factor.factor_type end, 2::smallint
  ) then
    return false;
  end if;
  update auth.token_sessions as session set factor_id = factor.id, requires_factor = false
    where session.id = raise_session.session_id;
  update auth.refresh_tokens as token set revoked_at = now()
    from auth.token_sessions as session
    where session.user_id = raise_session.user_id and session.aal < 2
      and token.family_id = session.id and token.revoked_at is null;
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.raise_session is
  'Raises a sign-in by tokens to level 2 and ends those of level 1. False: it has ended. The caller has locked the account.';
--! EndIncluded auth/raise_session.sql
--! Included auth/pass_factor.sql
-- The service has verified the code or the signature. The lock of the account serializes the rest: a challenge verifies one request,
-- and a code's time step must be new (RFC 6238 §5.2).
create or replace function auth.pass_factor(
  counted_name text, user_id bigint, session_id uuid, factor_id uuid, challenge_id uuid, step bigint,
  passkey_id uuid, counter bigint, is_backed_up boolean, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(pass_factor.user_id);
  v_factor auth.mfa_factors;
  v_challenge auth.mfa_challenges;
  v_outcome text;
begin
  select * into v_factor from auth.mfa_factors as factor
    where factor.id = pass_factor.factor_id and factor.user_id = v_account.user_id;
  select * into v_challenge from auth.mfa_challenges as challenge
    where challenge.id = challenge_id and challenge.factor_id = v_factor.id;
  v_outcome := case
    when v_factor.id is null or v_challenge.id is null then 'challenge'
    when v_challenge.expires_at <= clock_timestamp() then 'expired'
    when v_challenge.address is distinct from client_info.address then 'address'
    when auth.is_disabled(v_account) then 'disabled'
    when v_factor.last_used_step >= step then 'code'
    when passkey_id is not null and not auth.use_passkey(passkey_id, counter, is_backed_up) then 'code'
    when not auth.raise_session(v_account.user_id, session_id, v_factor) then 'session'
    else 'passed'
  end;
  if v_outcome = 'code' then
    perform auth.fail_login(counted_name, v_account.user_id, v_outcome, client_info);
  elsif v_outcome <> 'passed' then
    perform auth.end_attempt(counted_name, client_info.address, 'undecided');
  else
    perform auth.end_attempt(counted_name, client_info.address, 'passed');
    delete from auth.mfa_challenges as challenge where challenge.id = v_challenge.id;
    update auth.mfa_factors as factor
      set state = 'enabled', enabled_at = coalesce(factor.enabled_at, now()), updated_at = now(),
        last_used_step = coalesce(step, factor.last_used_step)
      where factor.id = v_factor.id;
    delete from auth.mfa_factors as pending
      where pending.user_id = v_account.user_id and pending.state = 'pending' and pending.factor_type = v_factor.factor_type;
    perform auth.log_event(
      'factor.verified', v_account.user_id, client_info,
      jsonb_build_object('factor', v_factor.id, 'type', v_factor.factor_type)
    );
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_factor is
  'Verifies a factor for a sign-in by tokens, which rises to level 2: passed, or why it is refused. A pending factor is enabled.';
--! EndIncluded auth/pass_factor.sql
--! Included auth/remove_factor.sql
create or replace function auth.remove_factor(user_id bigint, factor_id uuid, session_id uuid, client_info auth.client_info)
returns text as $$
declare
  v_account constant auth.users := auth.lock_account(remove_factor.user_id);
  v_factor auth.mfa_factors;
begin
  select * into v_factor from auth.mfa_factors as factor
    where factor.id = remove_factor.factor_id and factor.user_id = v_account.user_id;
  if v_factor.id is null then
    return 'missing';
  elsif v_factor.state = 'enabled' and not auth.has_second_factor_session(v_account.user_id, session_id) then
    return 'level';
  end if;
  perform auth.delete_factor(v_factor, client_info);
  return 'removed';
end;
$$ language plpgsql set search_path = '';
comment on function auth.remove_factor is
  'Removes a factor of that user: removed; missing; or level, when the sign-in must prove a second factor first.';
--! EndIncluded auth/remove_factor.sql
--! Included auth/add_passkey_challenge.sql
create or replace function auth.add_passkey_challenge(purpose text, user_id bigint, challenge text, seconds integer)
returns auth.mfa_challenges as $$
declare
  v_challenge auth.mfa_challenges;
begin
  insert into auth.mfa_challenges (purpose, user_id, challenge, expires_at)
    values (
      add_passkey_challenge.purpose, add_passkey_challenge.user_id, add_passkey_challenge.challenge,
      now() + make_interval(secs => seconds)
    )
    returning * into v_challenge;
  perform auth.delete_expired_challenges();
  return v_challenge;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_passkey_challenge is
  'Starts to register a passkey of that user, or to sign in with one, before it is known whose.';
--! EndIncluded auth/add_passkey_challenge.sql
--! Included auth/take_passkey_challenge.sql
create or replace function auth.take_passkey_challenge(purpose text, user_id bigint, id uuid) returns auth.mfa_challenges as $$
  delete from auth.mfa_challenges as challenge
  where challenge.id = take_passkey_challenge.id and challenge.purpose = take_passkey_challenge.purpose
    and challenge.user_id is not distinct from take_passkey_challenge.user_id
  returning challenge.*;
$$ language sql set search_path = '';
comment on function auth.take_passkey_challenge is 'Returns a challenge once, also an expired one; null if there is none, or it was used.';
--! EndIncluded auth/take_passkey_challenge.sql
--! Included auth/use_passkey.sql
-- A counter that does not increase means that the passkey was copied. Most passkeys of today have none: theirs is always 0.
create or replace function auth.use_passkey(passkey_id uuid, counter bigint, is_backed_up boolean) returns boolean as $$
begin
  update auth.passkeys as passkey
    set counter = use_passkey.counter, is_backed_up = use_passkey.is_backed_up, last_used_at = now()
    where passkey.id = passkey_id
      and (passkey.counter < use_passkey.counter or (passkey.counter = 0 and use_passkey.counter = 0));
  return found;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_passkey is 'Records a use of the passkey. False: its counter has not increased, or it was removed.';
--! EndIncluded auth/use_passkey.sql
--! Included auth/add_passkey.sql
-- The columns of the passkey are those of the row; the rest is set here.
create or replace function auth.add_passkey(
  user_id bigint, passkey jsonb, client_info auth.client_info, out outcome text, out added auth.passkeys
) as $$
declare
  v_most constant integer := 10;
  v_account constant auth.users := auth.lock_account(add_passkey.user_id);
  v_row constant auth.passkeys := jsonb_populate_record(null::auth.passkeys, passkey);
begin
  outcome := case
    when v_account.user_id is null then 'no_account'
    when exists (select from auth.passkeys as other where other.credential_id = v_row.credential_id) then 'exists'
    when v_row.factor_id is null and (
      select count(*) from auth.passkeys as other where other.user_id = v_account.user_id and other.factor_id is null
    ) >= v_most then 'too_many'
    else 'added'
  end;
  if outcome <> 'added' then
    return;
  end if;
  insert into auth.passkeys (
    user_id, factor_id, friendly_name, credential_id, public_key, counter, transports, aaguid, is_backup_eligible, is_backed_up
  ) values (
    v_account.user_id, v_row.factor_id, coalesce(v_row.friendly_name, ''), v_row.credential_id, v_row.public_key, v_row.counter,
    v_row.transports, v_row.aaguid, v_row.is_backup_eligible, v_row.is_backed_up
  )
  returning * into added;
  perform auth.log_event('passkey.added', v_account.user_id, client_info, jsonb_build_object('passkey', added.id));
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_passkey is
  'Stores a passkey whose registration the service has verified: added; exists, too_many or no_account.';
--! EndIncluded auth/add_passkey.sql
--! Included auth/pass_passkey.sql
create or replace function auth.pass_passkey(
  user_id bigint, passkey_id uuid, counter bigint, is_backed_up boolean, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(pass_passkey.user_id);
  v_outcome text;
begin
  v_outcome := case
    when v_account.user_id is null then 'missing'
    when auth.is_disabled(v_account) then 'disabled'
    when not auth.use_passkey(passkey_id, counter, is_backed_up) then 'counter'
    else 'passed'
  end;
  if v_outcome = 'passed' then
    perform auth.log_event('passkey.signed_in', v_account.user_id, client_info, jsonb_build_object('passkey', passkey_id));
  else
    perform auth.log_event('login.refused', v_account.user_id, client_info, jsonb_build_object('reason', v_outcome));
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_passkey is
  'The result of a sign-in with a passkey whose signature the service has verified: passed, or why it is refused.';
--! EndIncluded auth/pass_passkey.sql
--! Included auth/rename_passkey.sql
create or replace function auth.rename_passkey(user_id bigint, passkey_id uuid, friendly_name text) returns auth.passkeys as $$
  update auth.passkeys as passkey set friendly_name = rename_passkey.friendly_name, updated_at = now()
  where passkey.id = passkey_id and passkey.user_id = rename_passkey.user_id and passkey.factor_id is null
  returning passkey.*;
$$ language sql set search_path = '';
comment on function auth.rename_passkey is 'Names a passkey of that user; null if there is no such passkey.';
--! EndIncluded auth/rename_passkey.sql
--! Included auth/remove_passkey.sql
create or replace function auth.remove_passkey(user_id bigint, passkey_id uuid, client_info auth.client_info)
returns boolean as $$
begin
  perform auth.lock_account(remove_passkey.user_id);
  delete from auth.passkeys as passkey
    where passkey.id = passkey_id and passkey.user_id = remove_passkey.user_id and passkey.factor_id is null;
  if not found then
    return false;
  end if;
  perform auth.log_event('passkey.removed', remove_passkey.user_id, client_info, jsonb_build_object('passkey', passkey_id));
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.remove_passkey is 'Removes a passkey of that user. False: there is no such passkey.';
--! EndIncluded auth/remove_passkey.sql

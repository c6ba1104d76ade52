--! Previous: sha1:78e0713b252846d891a277981a7987eb8058dad9
--! Hash: sha1:740a88b48ee81056f4553281f44739463568717b

-- Second factors: authenticator apps (TOTP) and security keys (WebAuthn), each pending until it was verified for the first time, then
-- enabled. Challenges are stored so that any gateway can verify them.
create table auth.mfa_factors (
  user_id            bigint not null references auth.users on delete cascade,
  state              text not null default 'pending' check (state in ('pending', 'enabled')),
  secret             text,
  -- RFC 6238 §5.2: a code is accepted once, so neither its time step nor an earlier one is accepted again.
  last_used_step     bigint,
  created_at         timestamptz not null default now(),
  enabled_at         timestamptz,
  id                 uuid primary key default gen_random_uuid(),
  factor_type        text not null check (factor_type in ('totp', 'webauthn')),
  friendly_name      text not null default '',
  updated_at         timestamptz not null default now(),
  last_challenged_at timestamptz,
  constraint mfa_factors_enabled check ((state = 'enabled') = (enabled_at is not null)),
  constraint mfa_factors_secret check ((factor_type = 'totp') = (secret is not null))
);
alter table auth.mfa_factors add constraint mfa_factors_friendly_name_max_length check (length(friendly_name) <= 200) not valid;
create index mfa_factors_of_user on auth.mfa_factors (user_id);
create unique index mfa_factors_user_friendly_name_unique on auth.mfa_factors (user_id, friendly_name) where friendly_name <> '';
alter table auth.mfa_factors enable row level security;
comment on table auth.mfa_factors is 'The second factors of users: authenticator apps (TOTP) and security keys (WebAuthn).';
comment on column auth.mfa_factors.state is 'pending until it was verified for the first time; then enabled.';
comment on column auth.mfa_factors.secret is 'The TOTP secret in base32. It cannot be a hash: codes are computed from it. The key of a security key is in auth.passkeys.';
comment on column auth.mfa_factors.friendly_name is 'The user''s name for it; empty if it has none.';
comment on index auth.mfa_factors_user_friendly_name_unique is 'A factor with this name already exists.';

create table auth.mfa_backup_codes (
  user_id    bigint not null references auth.users on delete cascade,
  code_hash  text not null,
  created_at timestamptz not null default now(),
  used_at    timestamptz,
  primary key (user_id, code_hash)
);
alter table auth.mfa_backup_codes enable row level security;
comment on table auth.mfa_backup_codes is 'Codes for users who lost the app. Each works once.';
comment on column auth.mfa_backup_codes.code_hash is 'A PHC string. The codes of a user share its salt, so that one hash finds the code among them.';

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
  constraint mfa_challenges_purpose check ((purpose = 'factor') = (factor_id is not null) and (purpose = 'passkey_sign_in') = (user_id is null))
);
create index on auth.mfa_challenges (expires_at);
create index on auth.mfa_challenges (factor_id);
create index on auth.mfa_challenges (user_id);
alter table auth.mfa_challenges enable row level security;
comment on table auth.mfa_challenges is 'What a client has been asked to prove: a second factor, or a passkey at its registration or at a sign-in. Each is used once.';
comment on column auth.mfa_challenges.user_id is 'Null for a sign-in with a passkey: nobody is known yet.';
comment on column auth.mfa_challenges.challenge is 'Null for an authenticator app.';

create function auth.has_factor(user_id bigint) returns boolean
language sql stable
begin atomic
  select exists (select from auth.mfa_factors as factor where factor.user_id = has_factor.user_id and factor.state = 'enabled');
end;
comment on function auth.has_factor is 'Whether signing in requires a second factor.';

create function auth.user_factors(account auth.users) returns jsonb as $$
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

-- RFC 6238 §5.2: a code is accepted once. The row of an accepted step or backup code stays locked until the transaction ends.
create function auth.use_factor(user_id bigint, factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info) returns text as $$
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
comment on function auth.use_factor is 'Spends a code: used; wrong when it was used before; missing when one is required; none without a factor.';

create function auth.replace_backup_codes(user_id bigint, code_hashes text[]) returns void as $$
begin
  delete from auth.mfa_backup_codes as code where code.user_id = replace_backup_codes.user_id;
  insert into auth.mfa_backup_codes (user_id, code_hash)
    select replace_backup_codes.user_id, code_hash from unnest(code_hashes) as code_hash;
end;
$$ language plpgsql set search_path = '';
comment on function auth.replace_backup_codes is 'Replaces all backup codes of the user. The caller has locked the account.';

create function auth.renew_backup_codes(
  counted_name text, user_id bigint, factor_secret text, step bigint, backup_code_hash text, new_hashes text[], client_info auth.client_info
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
comment on function auth.renew_backup_codes is 'Replaces all backup codes, given a valid code; returns the result of use_factor.';

-- The sign-ins that proved this factor continue without it. Backup codes end with the last factor.
create function auth.delete_factor(factor auth.mfa_factors, client_info auth.client_info) returns void as $$
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

create function auth.delete_factor_of(user_id bigint, factor_id uuid, client_info auth.client_info) returns boolean as $$
declare
  v_account constant auth.users := auth.lock_account(delete_factor_of.user_id);
  v_factor auth.mfa_factors;
begin
  select * into v_factor from auth.mfa_factors as factor
    where factor.id = delete_factor_of.factor_id and factor.user_id = v_account.user_id;
  if v_factor.id is null then
    return false;
  end if;
  perform auth.delete_factor(v_factor, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.delete_factor_of is 'Deletes a factor of that user as an administrator. False: the user has no such factor.';

create function auth.disable_factor(
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
comment on function auth.disable_factor is 'enabled -> not enrolled, for each authenticator app, given a valid code; returns the result of use_factor.';

create function auth.remove_factor(user_id bigint, factor_id uuid, session_id uuid, client_info auth.client_info) returns text as $$
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
comment on function auth.remove_factor is 'Removes a factor of that user: removed; missing; or level, when the sign-in must prove a second factor first.';

-- The documented route knows one authenticator app. Starting again replaces the secrets that no app has confirmed.
create function auth.enroll_factor(user_id bigint, secret text, client_info auth.client_info) returns text as $$
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
comment on function auth.enroll_factor is 'not enrolled or pending -> pending. Returns the user name that the app displays.';

create function auth.enable_factor(user_id bigint, secret text, step bigint, backup_code_hashes text[], client_info auth.client_info) returns boolean as $$
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
comment on function auth.enable_factor is 'pending -> enabled, given a valid code of that secret. False: no such secret is pending.';

-- Several factors per user. The limits and outcomes are those of Supabase Auth, which its clients know. An unverified factor that
-- nobody has challenged for five minutes was abandoned.
create function auth.add_factor(
  user_id bigint, factor_type text, friendly_name text, secret text, session_id uuid, client_info auth.client_info, out outcome text, out factor auth.mfa_factors
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
comment on function auth.add_factor is 'Adds a pending factor: added; or name_taken, too_many, level when the sign-in must prove a second factor first, no_account.';

-- Expired ones are kept for a while, so that a late answer is told that its challenge has expired.
create function auth.delete_expired_challenges() returns void as $$
  delete from auth.mfa_challenges where id in (
    select id from auth.mfa_challenges where expires_at < now() - interval '10 minutes'
    order by expires_at limit 10 for update skip locked
  );
$$ language sql set search_path = '';
comment on function auth.delete_expired_challenges is 'Deletes a few challenges that have expired.';

-- Each call deletes a few expired challenges.
create function auth.add_factor_challenge(
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

-- The service has verified the code or the signature. The lock of the account serializes the rest: a challenge verifies one request,
-- and a code's time step must be new (RFC 6238 §5.2).
create function auth.pass_factor(
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
    -- Whoever has added this factor before the first one was verified may know the password alone.
    when v_factor.state = 'pending' and auth.has_factor(v_account.user_id)
      and not auth.has_second_factor_session(v_account.user_id, session_id) then 'level'
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
comment on function auth.pass_factor is 'Verifies a factor for a sign-in by tokens, which rises to level 2: passed, or why it is refused. A pending factor is enabled.';

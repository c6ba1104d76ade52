--! Previous: sha1:3a00ea23caa065cbb70aceb7d18984cb6380b25e
--! Hash: sha1:1d3320c3d72e79871dc5de44d67354ef5d3343b1
--! Message: mfa

-- Authenticator apps (TOTP): not enrolled -> pending -> enabled -> not enrolled. Each code works once.
create table auth.mfa_factors (
  user_id        bigint primary key,
  state          text not null default 'pending' check (state in ('pending', 'enabled')),
  secret         text not null,
  -- RFC 6238 §5.2: a code is accepted once, so neither its time step nor an earlier one is accepted again.
  last_used_step bigint,
  created_at     timestamptz not null default now(),
  enabled_at     timestamptz,
  constraint mfa_factors_enabled check ((state = 'enabled') = (enabled_at is not null))
);
alter table auth.mfa_factors enable row level security;

comment on table auth.mfa_factors is 'The authenticator app of a user. Not enrolled: no row.';
comment on column auth.mfa_factors.state is
  'pending until a first code proved that the app has the secret; then enabled.';
comment on column auth.mfa_factors.secret is
  'The TOTP secret in base32. It cannot be a hash: codes are computed from it.';

create table auth.mfa_backup_codes (
  user_id    bigint not null references auth.mfa_factors on delete cascade,
  code_hash  text not null,
  created_at timestamptz not null default now(),
  used_at    timestamptz,
  primary key (user_id, code_hash)
);
alter table auth.mfa_backup_codes enable row level security;
comment on table auth.mfa_backup_codes is 'Codes for users who lost the app. Each works once.';
comment on column auth.mfa_backup_codes.code_hash is
  'A PHC string. The codes of a user share its salt, so that one hash finds the code among them.';

--! Included auth/enroll_factor.sql
-- Starting again replaces a secret that no app has confirmed.
create or replace function auth.enroll_factor(user_id bigint, secret text, client_info auth.client_info) returns text as $$
declare
  v_account constant auth.credentials := auth.lock_account(enroll_factor.user_id);
begin
  if v_account.user_id is null then
    raise exception 'There is no account to protect' using errcode = 'NTFND';
  end if;
  insert into auth.mfa_factors as factor (user_id, secret) values (enroll_factor.user_id, enroll_factor.secret)
    on conflict on constraint mfa_factors_pkey do update
      set secret = excluded.secret, last_used_step = null, created_at = now() where factor.state = 'pending';
  if not found then
    raise exception 'An authenticator app is enabled already'
      using errcode = 'TAKEN', hint = 'Disable it with one of its codes before you enrol another one.';
  end if;
  perform auth.log_event('factor.enrolled', enroll_factor.user_id, client_info);
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
  update auth.mfa_factors as factor set state = 'enabled', enabled_at = now(), last_used_step = step
    where factor.user_id = enable_factor.user_id and factor.secret = enable_factor.secret and factor.state = 'pending';
  if not found then
    return false;
  end if;
  insert into auth.mfa_backup_codes (user_id, code_hash)
    select enable_factor.user_id, code_hash from unnest(backup_code_hashes) as code_hash;
  perform auth.log_event('factor.enabled', enable_factor.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enable_factor is
  'pending -> enabled, given a valid code of that secret. False: no such secret is pending.';
--! EndIncluded auth/enable_factor.sql
--! Included auth/use_factor.sql
-- RFC 6238 §5.2: a code is accepted once. The row of an accepted step or backup code stays locked until the transaction ends.
create or replace function auth.use_factor(
  user_id bigint, factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info
) returns text as $$
begin
  if not exists (
    select from auth.mfa_factors where mfa_factors.user_id = use_factor.user_id and state = 'enabled'
  ) then
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
    delete from auth.mfa_factors where mfa_factors.user_id = disable_factor.user_id;
    perform auth.log_event('factor.disabled', disable_factor.user_id, client_info);
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.disable_factor is
  'enabled -> not enrolled, given a valid code; returns the result of use_factor.';
--! EndIncluded auth/disable_factor.sql
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
    delete from auth.mfa_backup_codes where mfa_backup_codes.user_id = renew_backup_codes.user_id;
    insert into auth.mfa_backup_codes (user_id, code_hash)
      select renew_backup_codes.user_id, code_hash from unnest(new_hashes) as code_hash;
    perform auth.log_event('backup_codes.renewed', renew_backup_codes.user_id, client_info);
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.renew_backup_codes is
  'Replaces all backup codes, given a valid code; returns the result of use_factor.';
--! EndIncluded auth/renew_backup_codes.sql

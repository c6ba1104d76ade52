--! Previous: sha1:3b15c491b579859363edd18d821133c85a8cc44c
--! Hash: sha1:e4b5ee6dba251f7fca03c38b6ebd0a935298992f
--! Message: mfa_rules

--! split: 0050-mfa.sql
-- not enrolled -> pending -> enabled -> not enrolled. Each code works once.
--! Included auth/enroll_factor.sql
-- Whoever begins anew throws the secret away that no app has proved to have.
create or replace function auth.enroll_factor(user_id bigint, secret text, sender auth.sender) returns text as $$
declare
  v_account constant auth.credentials := auth.hold_account(enroll_factor.user_id);
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
  perform auth.log_event('factor.enrolled', enroll_factor.user_id, sender);
  return v_account.username;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enroll_factor is
  'not enrolled or pending -> pending. Gives the user name, by which the app is to show the account.';
--! EndIncluded auth/enroll_factor.sql
--! Included auth/enable_factor.sql
create or replace function auth.enable_factor(
  user_id bigint, secret text, step bigint, backup_code_hashes text[], sender auth.sender
) returns boolean as $$
begin
  perform auth.hold_account(enable_factor.user_id);
  update auth.mfa_factors as factor set state = 'enabled', enabled_at = now(), last_used_step = step
    where factor.user_id = enable_factor.user_id and factor.secret = enable_factor.secret and factor.state = 'pending';
  if not found then
    return false;
  end if;
  insert into auth.mfa_backup_codes (user_id, code_hash)
    select enable_factor.user_id, code_hash from unnest(backup_code_hashes) as code_hash;
  perform auth.log_event('factor.enabled', enable_factor.user_id, sender);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enable_factor is
  'pending -> enabled, for who has shown a code of that secret. False: no such secret is pending.';
--! EndIncluded auth/enable_factor.sql
--! Included auth/disable_factor.sql
create or replace function auth.disable_factor(
  counted_name text, user_id bigint, factor_secret text, step bigint, backup_code_hash text, sender auth.sender
) returns text as $$
declare
  v_outcome text;
begin
  perform auth.hold_account(disable_factor.user_id);
  v_outcome := auth.use_factor(disable_factor.user_id, factor_secret, step, backup_code_hash, sender);
  if v_outcome = 'wrong' then
    perform auth.fail_login(counted_name, disable_factor.user_id, 'code', sender);
    return v_outcome;
  end if;
  perform auth.end_attempt(counted_name, sender.address, 'undecided');
  if v_outcome = 'used' then
    delete from auth.mfa_factors where mfa_factors.user_id = disable_factor.user_id;
    perform auth.log_event('factor.disabled', disable_factor.user_id, sender);
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.disable_factor is 'enabled -> not enrolled, for who shows a code; what use_factor says of it.';
--! EndIncluded auth/disable_factor.sql
--! Included auth/renew_backup_codes.sql
create or replace function auth.renew_backup_codes(
  counted_name text, user_id bigint, factor_secret text, step bigint, backup_code_hash text,
  new_hashes text[], sender auth.sender
) returns text as $$
declare
  v_outcome text;
begin
  perform auth.hold_account(renew_backup_codes.user_id);
  v_outcome := auth.use_factor(renew_backup_codes.user_id, factor_secret, step, backup_code_hash, sender);
  if v_outcome = 'wrong' then
    perform auth.fail_login(counted_name, renew_backup_codes.user_id, 'code', sender);
    return v_outcome;
  end if;
  perform auth.end_attempt(counted_name, sender.address, 'undecided');
  if v_outcome = 'used' then
    delete from auth.mfa_backup_codes where mfa_backup_codes.user_id = renew_backup_codes.user_id;
    insert into auth.mfa_backup_codes (user_id, code_hash)
      select renew_backup_codes.user_id, code_hash from unnest(new_hashes) as code_hash;
    perform auth.log_event('backup_codes.renewed', renew_backup_codes.user_id, sender);
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.renew_backup_codes is
  'Other backup codes in the place of all there were, for who shows a code; what use_factor says of it.';
--! EndIncluded auth/renew_backup_codes.sql
comment on column auth.mfa_backup_codes.code_hash is
  'A PHC string. The codes of a user share its salt, so that one hash finds the code among them.';

--! Previous: sha1:8e16df88db5ea017f937f8151beb082d4ab4e196
--! Hash: sha1:7322ef6f7a0a80dc4cfc7380fe803ebc38b0ee9c
--! Message: sign_in

--! split: 0020-sign_in.sql
-- An attempt takes its place in the counters before the password is looked at, and gives it back when it turns out to be
-- no failure: so many at once are no more than so many in a row, and one whose gateway died is a failure.
alter table auth.login_throttle
  add column pending integer not null default 0,
  drop constraint login_throttle_failures_check,
  add constraint login_throttle_counts check (failures >= pending and pending >= 0);
comment on column auth.login_throttle.failures is 'Attempts that failed, and those that are being made.';
comment on column auth.login_throttle.pending is 'Attempts that are being made.';
comment on column auth.login_throttle.window_started_at is 'When the first of them was made; they count for 15 minutes.';

--! Included auth/login_counters.sql
-- A spray over many users meets the counter of its address, one from many addresses that of its user. Whoever has one
-- address of IPv6 has the 2^64 of its network.
create or replace function auth.login_counters(name text, address inet)
returns table (scope text, key text, most integer)
language sql immutable parallel safe
begin atomic
  select counters.scope, counters.key, counters.most
  from coalesce(
    host(network(set_masklen(login_counters.address, case family(login_counters.address) when 4 then 32 else 64 end))),
    'unknown'
  ) as place
  cross join lateral (values
    ('address', place, 50),
    ('pair', lower(login_counters.name) || ' ' || place, 5),
    ('user', lower(login_counters.name), 100)
  ) as counters (scope, key, most)
  order by counters.scope;
end;

comment on function auth.login_counters is
  'Where a sign-in counts, and how many failures each counter bears in 15 minutes; in the order in which they are locked.';
--! EndIncluded auth/login_counters.sql
--! Included auth/take_attempt.sql
create or replace function auth.take_attempt(name text, address inet) returns integer as $$
declare
  v_window constant interval := '15 minutes';
  v_now constant timestamptz := clock_timestamp();
  v_wait integer;
begin
  -- Whether it counts already or not, each counter is locked from here on.
  insert into auth.login_throttle as counter (scope, key, failures, window_started_at)
    select scope, key, 0, v_now from auth.login_counters(name, address)
    on conflict on constraint login_throttle_pkey do update set
      failures = case when counter.window_started_at > v_now - v_window then counter.failures else 0 end,
      pending = case when counter.window_started_at > v_now - v_window then counter.pending else 0 end,
      window_started_at =
        case when counter.window_started_at > v_now - v_window then counter.window_started_at else v_now end;

  -- Those that are being made may yet succeed: where they alone fill the counter, it is worth asking again soon.
  select max(case
    when counter.failures - counter.pending < counters.most then 1
    else greatest(1, ceil(extract(epoch from counter.window_started_at + v_window - v_now))::integer)
  end) into v_wait
    from auth.login_throttle as counter join auth.login_counters(name, address) as counters using (scope, key)
    where counter.failures >= counters.most;

  if v_wait is null then
    update auth.login_throttle as counter set failures = failures + 1, pending = pending + 1
      from auth.login_counters(name, address) as counters
      where counter.scope = counters.scope and counter.key = counters.key;
  else
    delete from auth.login_throttle as counter using auth.login_counters(name, address) as counters
      where counter.scope = counters.scope and counter.key = counters.key and counter.failures = 0;
  end if;
  delete from auth.login_throttle where (scope, key) in (
    select scope, key from auth.login_throttle where window_started_at < v_now - v_window
    order by window_started_at limit 10 for update skip locked
  );
  return coalesce(v_wait, 0);
end;
$$ language plpgsql set search_path = '';
comment on function auth.take_attempt is
  'Counts an attempt to sign in before it is made. Otherwise: in how many seconds there may be one again.';
--! EndIncluded auth/take_attempt.sql
--! Included auth/end_attempt.sql
create or replace function auth.end_attempt(name text, address inet, outcome text) returns void as $$
declare
  v_counter record;
begin
  for v_counter in select * from auth.login_counters(name, address) loop
    update auth.login_throttle set
      pending = greatest(pending - 1, 0),
      failures = case
        when outcome = 'failed' then failures
        -- A success forgives this user at this address all but those that are still being made.
        when outcome = 'passed' and scope = 'pair' then greatest(pending - 1, 0)
        else greatest(failures - 1, 0)
      end
      where scope = v_counter.scope and key = v_counter.key;
    delete from auth.login_throttle where scope = v_counter.scope and key = v_counter.key and failures = 0;
  end loop;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_attempt is 'An attempt passed, failed, or was given up undecided.';
--! EndIncluded auth/end_attempt.sql
--! Included auth/begin_login.sql
-- Asks the same of whoever is named, user or not. The name that is given back is the one that counts: an account has one,
-- though it can be called by two.
create or replace function auth.begin_login(name text, sender auth.sender, out wait integer, out counted_name text,
  out user_id bigint, out password_hash text, out factor_secret text, out backup_code_hash text
) as $$
declare
  v_account constant auth.credentials := auth.find_account(name);
begin
  counted_name := coalesce(v_account.username, name);
  wait := auth.take_attempt(counted_name, sender.address);
  if wait = 0 then
    user_id := v_account.user_id;
    password_hash := v_account.password_hash;
    select secret into factor_secret
      from auth.mfa_factors where mfa_factors.user_id = v_account.user_id and state = 'enabled';
    select code_hash into backup_code_hash
      from auth.mfa_backup_codes where mfa_backup_codes.user_id = v_account.user_id and used_at is null limit 1;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_login is
  'Takes an attempt, and tells by what the user proves to be that user. Of the backup codes one: all have its salt.';
--! EndIncluded auth/begin_login.sql
--! Included auth/fail_login.sql
create or replace function auth.fail_login(counted_name text, user_id bigint, reason text, sender auth.sender)
returns void as $$
begin
  perform auth.end_attempt(counted_name, sender.address, 'failed');
  perform auth.log_event('login.failed', user_id, sender, jsonb_build_object('reason', reason));
end;
$$ language plpgsql set search_path = '';
comment on function auth.fail_login is 'The attempt was a failure. The log does not tell the name: people type passwords there.';
--! EndIncluded auth/fail_login.sql
--! Included auth/use_factor.sql
-- RFC 6238 §5.2: a code is accepted once. Whose step was accepted, or whose backup code, holds the row until it commits.
create or replace function auth.use_factor(
  user_id bigint, factor_secret text, step bigint, backup_code_hash text, sender auth.sender
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
      perform auth.log_event('backup_code.used', use_factor.user_id, sender);
    end if;
  end if;
  return case when found then 'used' else 'wrong' end;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_factor is
  'Spends a code: used, or wrong when it was used before; missing when there is one to be given; none without a factor.';
--! EndIncluded auth/use_factor.sql
--! Included auth/pass_login.sql
-- The engine has compared the password with the hash; here it counts that the hash is still the account's.
create or replace function auth.pass_login(
  counted_name text, user_id bigint, password_hash text,
  factor_secret text, step bigint, backup_code_hash text, sender auth.sender
) returns text as $$
declare
  v_account constant auth.credentials := auth.hold_account(pass_login.user_id);
  v_outcome text;
begin
  v_outcome := case
    when v_account.password_hash is distinct from pass_login.password_hash then 'password'
    when v_account.disabled_at is not null then 'disabled'
    else case auth.use_factor(pass_login.user_id, factor_secret, step, backup_code_hash, sender)
      when 'missing' then 'code_missing'
      when 'wrong' then 'code'
      else 'passed'
    end
  end;
  if v_outcome in ('password', 'code') then
    perform auth.fail_login(counted_name, v_account.user_id, v_outcome, sender);
  elsif v_outcome = 'passed' then
    perform auth.end_attempt(counted_name, sender.address, 'passed');
  else
    perform auth.end_attempt(counted_name, sender.address, 'undecided');
    if v_outcome = 'disabled' then
      perform auth.log_event('login.refused', v_account.user_id, sender, '{"reason":"disabled"}');
    end if;
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_login is
  'What becomes of an attempt whose password is right: passed, or what is missing or wrong besides.';
--! EndIncluded auth/pass_login.sql
--! Included auth/renew_password_hash.sql
create or replace function auth.renew_password_hash(user_id bigint, old_hash text, new_hash text) returns void as $$
  update auth.credentials set password_hash = new_hash
  where credentials.user_id = renew_password_hash.user_id and password_hash = old_hash;
$$ language sql set search_path = '';
comment on function auth.renew_password_hash is 'The same password, hashed by today''s parameters.';
--! EndIncluded auth/renew_password_hash.sql

--! Previous: sha1:9cc108155c57997c866bd36f9dfce768fa136370
--! Hash: sha1:f3a4b60e25bf2a519f44edd8cb47c7e871655917

-- Sign-in by password, and failed sign-ins, counted in Postgres so that all processes count together. A failure counts in four scopes: this user from this
-- address, this address, its site, this user. Each has its own limit, so that trying many users, or from many addresses, is limited too.
--
-- An attempt is counted before the password is checked, and subtracted when it did not fail: concurrent attempts are limited like
-- consecutive ones, and an attempt whose process died counts as a failure.
create table auth.login_throttle (
  scope             text not null,
  key               text not null,
  failures          integer not null default 1,
  window_started_at timestamptz not null default now(),
  pending           integer not null default 0,
  primary key (scope, key),
  constraint login_throttle_counts check (failures >= pending and pending >= 0)
);
alter table auth.login_throttle
  add constraint login_throttle_scope_check check (scope in ('pair', 'address', 'site', 'user')) not valid,
  -- A user name, a space and an address.
  add constraint login_throttle_key_max_length check (length(key) <= 600) not valid;
create index on auth.login_throttle (window_started_at);
alter table auth.login_throttle enable row level security;
comment on table auth.login_throttle is 'Failed sign-ins of the current window.';
comment on column auth.login_throttle.key is 'User name and address, address, site (IPv6 /48), or user name; names in lower case.';
comment on column auth.login_throttle.failures is 'Attempts that failed, and those in progress.';
comment on column auth.login_throttle.pending is 'Attempts in progress.';
comment on column auth.login_throttle.window_started_at is 'When the first of them was made; they count for 15 minutes.';

-- Trying many users meets the counter of the address, trying from many addresses that of the user. An IPv6 address counts as its /64
-- network, and as its /48 network, of which a provider gives all /64 networks to one site.
create function auth.login_counters(name text, address inet) returns table (scope text, key text, most integer)
language sql immutable parallel safe
begin atomic
  select counters.scope, counters.key, counters.most
  from coalesce(host(auth.network_of(login_counters.address)), 'unknown') as place
  cross join lateral (values
    ('address', place, 50),
    ('pair', lower(login_counters.name) || ' ' || place, 5),
    ('site', case family(login_counters.address) when 6 then host(network(set_masklen(login_counters.address, 48))) end, 200),
    ('user', lower(login_counters.name), 100)
  ) as counters (scope, key, most)
  where counters.key is not null
  order by counters.scope;
end;
comment on function auth.login_counters is 'The counters of a sign-in and their limits in 15 minutes, in the order in which they are locked.';

-- Whoever fails for a user from many networks does not lock out the user, who has signed in from this network before: there, the limits of the
-- network hold alone. All attempts count.
create function auth.count_attempt(name text, address inet, is_known_network boolean default false) returns integer as $$
declare
  v_window constant interval := '15 minutes';
  v_now constant timestamptz := clock_timestamp();
  v_wait integer;
begin
  -- From here on each counter is locked, whether or not it existed.
  insert into auth.login_throttle as counter (scope, key, failures, window_started_at)
    select scope, key, 0, v_now from auth.login_counters(name, address)
    on conflict on constraint login_throttle_pkey do update set
      failures = case when counter.window_started_at > v_now - v_window then counter.failures else 0 end,
      pending = case when counter.window_started_at > v_now - v_window then counter.pending else 0 end,
      window_started_at =
        case when counter.window_started_at > v_now - v_window then counter.window_started_at else v_now end;

  -- Attempts in progress may succeed: where they alone fill the counter, retrying soon is worthwhile.
  select max(case
    when counter.failures - counter.pending < counters.most then 1
    else greatest(1, ceil(extract(epoch from counter.window_started_at + v_window - v_now))::integer)
  end) into v_wait
    from auth.login_throttle as counter join auth.login_counters(name, address) as counters using (scope, key)
    where counter.failures >= counters.most and not (counters.scope = 'user' and is_known_network);

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
comment on function auth.count_attempt is 'Counts an attempt before it is made; returns 0, or the seconds until the next one is allowed.';

create function auth.end_attempt(name text, address inet, outcome text) returns void as $$
declare
  v_counter record;
begin
  for v_counter in select * from auth.login_counters(name, address) loop
    update auth.login_throttle set
      pending = greatest(pending - 1, 0),
      failures = case
        when outcome = 'failed' then failures
        -- A success clears the failures of this user at this address, except attempts in progress.
        when outcome = 'passed' and scope = 'pair' then greatest(pending - 1, 0)
        else greatest(failures - 1, 0)
      end
      where scope = v_counter.scope and key = v_counter.key;
    delete from auth.login_throttle where scope = v_counter.scope and key = v_counter.key and failures = 0;
  end loop;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_attempt is 'Records that an attempt passed, failed, or was abandoned.';

-- Runs the same queries whether or not the user exists. counted_name is the name that attempts are counted by: an account has one,
-- although it can be named by user name or by e-mail address.
create function auth.begin_login(name text, client_info auth.client_info, out wait integer, out counted_name text,
  out user_id bigint, out password_hash text, out has_factor boolean, out factor_secrets text[], out backup_code_hash text
) as $$
declare
  v_account constant auth.users := auth.find_account(name);
begin
  counted_name := coalesce(v_account.username, name);
  wait := auth.count_attempt(
    counted_name, client_info.address, auth.is_known_network(v_account.user_id, client_info.address)
  );
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
comment on function auth.begin_login is 'Takes an attempt and returns what the user has to prove. One backup code is enough: all have its salt.';

create function auth.fail_login(counted_name text, user_id bigint, reason text, client_info auth.client_info) returns void as $$
begin
  perform auth.end_attempt(counted_name, client_info.address, 'failed');
  perform auth.log_event('login.failed', user_id, client_info, jsonb_build_object('reason', reason));
end;
$$ language plpgsql set search_path = '';
comment on function auth.fail_login is 'Records a failed attempt. The log does not contain the name: people type passwords there.';

-- The service has compared the password with the hash; here the hash must still be the account's.
create function auth.pass_login(
  counted_name text, user_id bigint, password_hash text, factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(pass_login.user_id);
  v_outcome text;
begin
  v_outcome := case
    when v_account.password_hash is distinct from pass_login.password_hash then 'password'
    when auth.is_disabled(v_account) then 'disabled'
    else case auth.use_factor(pass_login.user_id, factor_secret, step, backup_code_hash, client_info)
      when 'missing' then 'code_missing'
      when 'wrong' then 'code'
      else 'passed'
    end
  end;
  if v_outcome in ('password', 'code') then
    perform auth.fail_login(counted_name, v_account.user_id, v_outcome, client_info);
  elsif v_outcome = 'passed' then
    perform auth.end_attempt(counted_name, client_info.address, 'passed');
  else
    perform auth.end_attempt(counted_name, client_info.address, 'undecided');
    if v_outcome = 'disabled' then
      perform auth.log_event('login.refused', v_account.user_id, client_info, '{"reason":"disabled"}');
    end if;
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_login is 'The result of an attempt with the right password: passed, or what is missing or wrong.';

--! Previous: sha1:90afbbe4ed848556c30ec46b7996a9bcffc634d5
--! Hash: sha1:1a57da9d68c8bce5ce27fab931d9e2a10b64534b
--! Message: known networks of users

create index if not exists audit_log_sign_ins on auth.audit_log (user_id, at)
  where event in ('session.created', 'refresh_token.created');

--! Included auth/network_of.sql
create or replace function auth.network_of(address inet) returns inet
language sql immutable parallel safe
return network(set_masklen(address, case family(address) when 4 then 32 else 64 end));

comment on function auth.network_of is 'The network that counts as one client: an IPv4 address, or an IPv6 address''s /64.';
--! EndIncluded auth/network_of.sql
--! Included auth/is_known_network.sql
-- By the audit log, which keeps sign-ins after they have ended. The index audit_log_sign_ins has no failures, which others can cause at will.
create or replace function auth.is_known_network(user_id bigint, address inet) returns boolean
language sql stable
begin atomic
  select exists (
    select from auth.audit_log as entry
    where entry.user_id = is_known_network.user_id and entry.event in ('session.created', 'refresh_token.created')
      and entry.at > now() - interval '30 days'
      and auth.network_of(entry.address) = auth.network_of(is_known_network.address)
  );
end;

comment on function auth.is_known_network is 'Whether the user has signed in from this network within 30 days.';
--! EndIncluded auth/is_known_network.sql
--! Included auth/login_counters.sql
-- Trying many users meets the counter of the address, trying from many addresses that of the user. An IPv6 address counts as its /64
-- network, and as its /48 network, of which a provider gives all /64 networks to one site.
create or replace function auth.login_counters(name text, address inet)
returns table (scope text, key text, most integer)
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

comment on function auth.login_counters is
  'The counters of a sign-in and their limits in 15 minutes, in the order in which they are locked.';
--! EndIncluded auth/login_counters.sql
drop function if exists auth.count_attempt(text, inet);
--! Included auth/count_attempt.sql
-- Whoever fails for a user from many networks does not lock out the user, who has signed in from this network before: there, the limits of the
-- network hold alone. All attempts count.
create or replace function auth.count_attempt(name text, address inet, is_known_network boolean default false) returns integer as $$
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
comment on function auth.count_attempt is
  'Counts an attempt before it is made; returns 0, or the seconds until the next one is allowed.';
--! EndIncluded auth/count_attempt.sql
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
comment on function auth.begin_login is
  'Takes an attempt and returns what the user has to prove. One backup code is enough: all have its salt.';
--! EndIncluded auth/begin_login.sql
--! Included auth/use_mail_code.sql
-- Counts as an attempt to sign in, by the address that the client names and by where it is. Runs the same queries whether or not the
-- account exists.
create or replace function auth.use_mail_code(
  email text, code_hash bytea, purposes text[], client_info auth.client_info,
  out outcome text, out user_id bigint, out purpose text, out wait integer
) as $$
declare
  v_max_attempts constant integer := 5;
  v_counted_name constant text := 'code ' || left(email, 254);
  v_account auth.users;
  v_token auth.mail_tokens;
begin
  -- A pending change names the new address. Of several accounts that change to it, the one whose code this is counts.
  select token.user_id into v_account.user_id from auth.mail_tokens as token
    where lower(token.email) = lower(use_mail_code.email) and token.purpose in ('email_change_new', 'phone_change')
      and token.purpose = any (purposes) and token.used_at is null
    order by token.code_hash is not distinct from use_mail_code.code_hash desc, token.created_at desc
    limit 1;
  if not found then
    select account.user_id into v_account.user_id from auth.users as account
      where case when 'sms' = any (purposes) then account.phone = use_mail_code.email else lower(account.email) = lower(use_mail_code.email) end;
  end if;
  v_account := case
    when purposes && '{email_change_current,email_change_new}' then auth.lock_address(v_account.user_id)
    else auth.lock_account(v_account.user_id)
  end;
  wait := auth.count_attempt(
    v_counted_name, client_info.address, auth.is_known_network(v_account.user_id, client_info.address)
  );
  if wait > 0 then
    outcome := 'wait';
    return;
  end if;
  select * into v_token from auth.mail_tokens as token
    where token.user_id = v_account.user_id and token.purpose = any (purposes) and token.used_at is null
      and token.expires_at > clock_timestamp() and token.attempts < v_max_attempts
      and token.code_hash = use_mail_code.code_hash and auth.is_current_address(v_account, token)
    limit 1;
  if v_token.user_id is null then
    update auth.mail_tokens as token set attempts = token.attempts + 1
      where token.user_id = v_account.user_id and token.purpose = any (purposes) and token.used_at is null
        and token.attempts < v_max_attempts;
    perform auth.end_attempt(v_counted_name, client_info.address, 'failed');
    outcome := 'expired';
    return;
  end if;
  perform auth.end_attempt(v_counted_name, client_info.address, 'passed');
  if auth.is_disabled(v_account) then
    outcome := 'disabled';
    return;
  end if;
  outcome := auth.confirm_mail_code(v_token, v_account, client_info);
  user_id := v_token.user_id;
  purpose := v_token.purpose;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_mail_code is
  'Spends a code of six digits and locks the account: passed, half, or why not: expired, disabled, or wait for some seconds.';
--! EndIncluded auth/use_mail_code.sql

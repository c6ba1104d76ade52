--! Previous: sha1:448f996a470b0b4d758de779502def212a4756ee
--! Hash: sha1:5c893eba3943b48aeaf3bb5143f82a544fa73d46
--! Message: second factors

-- Second factors: the first one ends what was signed in without it, and only a sign-in that has proved one adds another.

-- All sign-ins that are kept are named by the caller.
drop function auth.end_sign_ins(bigint, uuid);
create or replace function auth.end_sign_ins(user_id bigint, kept_session uuid default null, kept_browser bytea default null) returns void as $$
begin
  perform auth.end_access_tokens(end_sign_ins.user_id);
  delete from auth.sessions where sessions.user_id = end_sign_ins.user_id and sessions.id_hash is distinct from kept_browser;
  update auth.refresh_tokens as token set revoked_at = now()
    where token.user_id = end_sign_ins.user_id and token.revoked_at is null and token.family_id is distinct from kept_session;
  update auth.token_sessions as session set kept_at = account.tokens_valid_from
    from auth.users as account
    where session.id = kept_session and session.user_id = end_sign_ins.user_id and account.user_id = session.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_sign_ins is 'Ends all sign-ins of the user, except one by tokens, and one of a browser. The caller has locked the account.';

-- Sign-ins in progress end, too: they were begun without the factor, and some would be completed without asking for one.
create function auth.end_sign_ins_without_factor(user_id bigint, kept_session uuid, kept_browser bytea) returns void as $$
begin
  update auth.token_sessions as session set requires_factor = true
    where session.user_id = end_sign_ins_without_factor.user_id and session.aal < 2 and session.id is distinct from kept_session;
  delete from auth.flow_states as flow where flow.user_id = end_sign_ins_without_factor.user_id;
  delete from auth.federation_states as state where state.user_id = end_sign_ins_without_factor.user_id;
  delete from auth.federation_codes as code where code.user_id = end_sign_ins_without_factor.user_id;
  -- It would open a session. That of an address that nobody has proved stays: its proof ends this factor.
  delete from auth.mail_tokens as token using auth.users as account
    where token.user_id = end_sign_ins_without_factor.user_id and token.purpose = 'invitation'
      and account.user_id = token.user_id and account.verified_email is not null;
  perform auth.end_sign_ins(end_sign_ins_without_factor.user_id, kept_session, kept_browser);
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_sign_ins_without_factor is 'Ends all sign-ins of before the first second factor, except the one that verified it. The caller has locked the account.';

-- A passkey, or a provider that is trusted with it, stands for both factors: such a sign-in is of level 1, and lacks nothing.
create function auth.lacks_second_factor(user_id bigint, session_id uuid) returns boolean
language sql stable
begin atomic
  select auth.has_factor(lacks_second_factor.user_id) and not exists (
    select from auth.token_sessions as session
    where session.id = lacks_second_factor.session_id and session.user_id = lacks_second_factor.user_id
      and (session.aal >= 2 or not session.requires_factor)
  );
end;
comment on function auth.lacks_second_factor is 'Whether the account has a second factor that this sign-in by tokens has not proved.';

-- The documented route knows one authenticator app. Starting again replaces the secrets that no app has confirmed.
drop function auth.enroll_factor(bigint, text, auth.client_info);
create or replace function auth.enroll_factor(user_id bigint, secret text, client_info auth.client_info, session_id uuid default null) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(enroll_factor.user_id);
begin
  if v_account.user_id is null then
    raise exception 'There is no account to protect' using errcode = 'NTFND';
  end if;
  if exists (
    select from auth.mfa_factors as factor
    where factor.user_id = v_account.user_id and factor.factor_type = 'totp' and factor.state = 'enabled'
  ) then
    raise exception 'An authenticator app is enabled already'
      using errcode = 'TAKEN', hint = 'Disable it with one of its codes before you enrol another one.';
  end if;
  if auth.has_factor(v_account.user_id) and not auth.has_second_factor_session(v_account.user_id, session_id) then
    return null;
  end if;
  delete from auth.mfa_factors as pending
    where pending.user_id = v_account.user_id and pending.factor_type = 'totp' and pending.state = 'pending';
  insert into auth.mfa_factors (user_id, factor_type, secret) values (v_account.user_id, 'totp', enroll_factor.secret);
  perform auth.log_event('factor.enrolled', v_account.user_id, client_info);
  return v_account.username;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enroll_factor is 'not enrolled or pending -> pending. Returns the user name that the app displays; null when the sign-in must prove another factor first.';

drop function auth.enable_factor(bigint, text, bigint, text[], auth.client_info);
create or replace function auth.enable_factor(
  user_id bigint, secret text, step bigint, backup_code_hashes text[], client_info auth.client_info,
  session_id uuid default null, browser bytea default null
) returns boolean as $$
declare
  v_account constant auth.users := auth.lock_account(enable_factor.user_id);
  v_is_first constant boolean := not auth.has_factor(v_account.user_id);
  v_factor auth.mfa_factors;
begin
  select * into v_factor from auth.mfa_factors as factor
    where factor.user_id = v_account.user_id and factor.secret = enable_factor.secret and factor.state = 'pending';
  if not found then
    return false;
  elsif not v_is_first and not auth.has_second_factor_session(v_account.user_id, session_id) then
    return null;
  end if;
  update auth.mfa_factors as factor
    set state = 'enabled', enabled_at = now(), updated_at = now(), last_used_step = step
    where factor.id = v_factor.id;
  perform auth.raise_session(v_account.user_id, session_id, v_factor);
  if v_is_first then
    perform auth.end_sign_ins_without_factor(v_account.user_id, session_id, browser);
  end if;
  perform auth.replace_backup_codes(v_account.user_id, backup_code_hashes);
  perform auth.log_event('factor.enabled', v_account.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enable_factor is 'pending -> enabled, given a valid code of that secret, for a sign-in by tokens or of a browser, which goes on. False: no such secret is pending. Null: the sign-in must prove another factor first.';

-- The service has verified the code or the signature. The lock of the account serializes the rest: a challenge verifies one request,
-- and a code's time step must be new (RFC 6238 §5.2).
create or replace function auth.pass_factor(
  counted_name text, user_id bigint, session_id uuid, factor_id uuid, challenge_id uuid, step bigint,
  passkey_id uuid, counter bigint, is_backed_up boolean, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(pass_factor.user_id);
  v_is_first constant boolean := not auth.has_factor(v_account.user_id);
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
    when v_factor.state = 'pending' and not v_is_first
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
    if v_is_first then
      perform auth.end_sign_ins_without_factor(v_account.user_id, session_id, null);
    end if;
    perform auth.log_event(
      'factor.verified', v_account.user_id, client_info,
      jsonb_build_object('factor', v_factor.id, 'type', v_factor.factor_type)
    );
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';

-- Failures of an account count together, except where its user is known. Whoever knows the password alone is not: otherwise each network of
-- an attacker who signs in by it could guess codes without that limit.
create or replace function auth.is_known_network(user_id bigint, address inet) returns boolean
language sql stable
begin atomic
  select exists (
    select from auth.audit_log as entry
    where entry.user_id = is_known_network.user_id and entry.event in ('session.created', 'refresh_token.created')
      and entry.at > now() - interval '30 days' and not entry.details ? 'lacks_factor'
      and auth.network_of(entry.address) = auth.network_of(is_known_network.address)
  );
end;

create or replace function auth.open_tokens(
  user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info,
  methods text[] default '{}', aal smallint default 1, is_complete boolean default false
) returns jsonb as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_session_id constant uuid := gen_random_uuid();
  v_lacks_factor constant boolean := open_tokens.aal < 2 and not is_complete and auth.has_factor(open_tokens.user_id);
begin
  perform auth.log_event(
    'refresh_token.created', open_tokens.user_id, client_info, case when v_lacks_factor then '{"lacks_factor": true}' else '{}' end::jsonb
  );
  insert into auth.token_sessions (id, user_id, created_at, aal, amr, requires_factor)
    values (v_session_id, open_tokens.user_id, v_now, open_tokens.aal, (
      select coalesce(jsonb_agg(auth.amr_entry(method, v_now)), '[]') from unnest(open_tokens.methods) as method
    ), v_lacks_factor);
  update auth.users as account set last_sign_in_at = v_now where account.user_id = open_tokens.user_id;
  return auth.add_refresh_token(open_tokens.user_id, open_tokens.token_hash, v_session_id, seconds, client_info);
end;
$$ language plpgsql set search_path = '';

-- Not a reuse: the client, which has proved more by its access token, gets the next pair without presenting its refresh token.
create or replace function auth.continue_tokens(user_id bigint, session_id uuid, token_hash bytea, seconds integer, client_info auth.client_info) returns jsonb as $$
begin
  update auth.refresh_tokens as token set rotated_at = clock_timestamp()
    where token.user_id = continue_tokens.user_id and token.family_id = session_id
      and token.rotated_at is null and token.revoked_at is null;
  if not found then
    return null;
  end if;
  perform auth.log_event('refresh_token.created', continue_tokens.user_id, client_info);
  return auth.add_refresh_token(
    continue_tokens.user_id, continue_tokens.token_hash, session_id, continue_tokens.seconds, client_info
  );
end;
$$ language plpgsql set search_path = '';

-- Sign-ins of before the first factor, of releases that did not end them.
update auth.token_sessions as session set requires_factor = true
  where session.aal < 2 and not session.requires_factor and session.created_at < (
    select min(factor.enabled_at) from auth.mfa_factors as factor where factor.user_id = session.user_id and factor.state = 'enabled'
  );
delete from auth.sessions as session where session.created_at < (
  select min(factor.enabled_at) from auth.mfa_factors as factor where factor.user_id = session.user_id and factor.state = 'enabled'
);

-- Anonymous accounts that become permanent: by the proof of an address or a number, and by an identity of a provider.

-- email_confirmed_at follows verified_email. Statements written for Supabase set email_confirmed_at alone: verified_email follows that.
create or replace function auth.tg_users__follow_changes() returns trigger as $$
begin
  if NEW.email_confirmed_at is not null and (TG_OP = 'INSERT' or OLD.email_confirmed_at is null) then
    NEW.verified_email := NEW.email;
  end if;
  NEW.email_confirmed_at := case
    when lower(NEW.verified_email) = lower(NEW.email) then coalesce(NEW.email_confirmed_at, clock_timestamp())
  end;
  if TG_OP = 'UPDATE' and num_nulls(NEW.email_confirmed_at, NEW.phone_confirmed_at) < num_nulls(OLD.email_confirmed_at, OLD.phone_confirmed_at) then
    NEW.is_anonymous := false;
  end if;
  NEW.updated_at := clock_timestamp();
  return NEW;
end;
$$ language plpgsql set search_path = '';

-- Each row of public.users has an address; that of a user who began anonymously, and of one with a phone number only, receives no mail.
create or replace function auth.own_email(account auth.users) returns text as $$
  select case when not account.is_anonymous and account.email !~ '@(phone|anonymous)\.invalid$' then account.email end;
$$ language sql immutable set search_path = '';

-- The address is the account's if the provider sends one and vouches for it, and nobody else has it.
create function auth.keep_anonymous_account(user_id bigint, provider auth.providers, claims jsonb, client_info auth.client_info) returns void as $$
declare
  v_account constant auth.users := auth.lock_account(keep_anonymous_account.user_id);
  v_email constant text := nullif(btrim(claims ->> 'email'), '');
begin
  if not v_account.is_anonymous then
    return;
  end if;
  if v_email is not null
    and (provider.trusts_email or coalesce((claims ->> 'email_verified')::boolean, false))
    and not exists (select from auth.account_faults(null, v_email, null, null) as fault where fault.field = 'email')
    and auth.find_user(v_email) is null
  then
    perform auth.set_confirmed_email(v_account.user_id, v_email, client_info);
  end if;
  update auth.users as account set is_anonymous = false where account.user_id = v_account.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.keep_anonymous_account is 'Makes an anonymous account, to which an identity was linked, permanent, with the address that the provider has verified. The caller has locked the address.';

update auth.users as account set is_anonymous = false
  where account.is_anonymous and (
    num_nonnulls(account.email_confirmed_at, account.phone_confirmed_at) > 0
    or exists (select from auth.identities as identity where identity.user_id = account.user_id)
  );

-- The result is a value, not an exception: the record that the message was used must be kept even when the sign-in is refused.
create or replace function auth.pass_federation(
  provider text, subject text, claims jsonb, linking bigint, left_at timestamptz, client_info auth.client_info, out outcome text, out user_id bigint
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
    -- Before the account: the link of an anonymous one may change its address.
    perform auth.lock_address(linking);
    outcome := auth.link_identity(linking, v_provider, subject, left_at, client_info);
    user_id := linking;
    if outcome = 'linked' then
      perform auth.keep_anonymous_account(linking, v_provider, claims, client_info);
    end if;
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

--! Previous: sha1:9c1363ac0e75fe85d6ab72e552ddbda011821451
--! Hash: sha1:1497ac15b09c7cc0f9ac6544cf9ad50741a58e61

-- The rules of signing in through another provider. The service verifies what the provider says; these functions decide which account it
-- is, and whether it may sign in.
create function auth.begin_federation(state_hash bytea, browser_hash bytea, state jsonb, seconds integer) returns void as $$
begin
  insert into auth.federation_states (
    state_hash, browser_hash, provider, purpose, mode, redirect_to, code_challenge, user_id,
    nonce, code_verifier, request_id, expires_at
  )
    select begin_federation.state_hash, begin_federation.browser_hash, given.provider, given.purpose, given.mode,
      given.redirect_to, given.code_challenge, given.user_id, given.nonce, given.code_verifier, given.request_id,
      now() + make_interval(secs => seconds)
    from jsonb_populate_record(null::auth.federation_states, begin_federation.state) as given;
  delete from auth.federation_states as expired where expired.state_hash in (
    select federation_states.state_hash from auth.federation_states where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_federation is 'Stores the state of a browser that is redirected to a provider.';

create function auth.end_federation(state_hash bytea, browser_hash bytea, provider text, purpose text) returns setof auth.federation_states as $$
begin
  return query
    delete from auth.federation_states as state
      where state.state_hash = end_federation.state_hash
        and (state.browser_hash = end_federation.browser_hash or state.mode in ('code', 'fragment'))
        and state.provider = end_federation.provider and state.purpose = end_federation.purpose
        and state.expires_at > now()
      returning state.*;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_federation is 'Deletes and returns the state of a browser that comes back from a provider. No row for a second use.';

create function auth.link_identity(user_id bigint, provider auth.providers, subject text, left_at timestamptz, client_info auth.client_info) returns text as $$
declare
  v_most constant integer := 50;
  v_account constant auth.users := auth.lock_account(link_identity.user_id);
begin
  if v_account.user_id is null or auth.is_disabled(v_account) then
    return 'disabled';
  end if;
  -- The link may have been started by whoever knew the previous password.
  if v_account.password_changed_at > link_identity.left_at then
    return 'ended';
  end if;
  -- A provider may give one person as many subjects as the person registers there.
  if (select count(*) from auth.identities as own where own.user_id = v_account.user_id) >= v_most and not exists (
    select from auth.identities as own
    where own.user_id = v_account.user_id and own.issuer = provider.issuer and own.subject = link_identity.subject
  ) then
    return 'too_many';
  end if;
  insert into auth.identities as known (issuer, subject, user_id, is_vouched)
    values (provider.issuer, link_identity.subject, v_account.user_id, true)
    on conflict on constraint identities_pkey do update set is_vouched = true where known.user_id = EXCLUDED.user_id;
  if not found then
    return 'taken';
  end if;
  perform auth.log_event('identity.linked', v_account.user_id, client_info, jsonb_build_object('provider', provider.name));
  return 'linked';
end;
$$ language plpgsql set search_path = '';
comment on function auth.link_identity is 'Links an identity to the user who is signed in: linked, taken (it is another user''s), too_many, or ended (the password was changed meanwhile).';

create function auth.use_message(issuer text, message_id text, expires_at timestamptz) returns boolean as $$
begin
  delete from auth.federation_replays as expired where (expired.issuer, expired.message_id) in (
    select replays.issuer, replays.message_id from auth.federation_replays as replays where replays.expires_at < now()
    order by replays.expires_at limit 10 for update skip locked
  );
  insert into auth.federation_replays (issuer, message_id, expires_at)
    values (use_message.issuer, use_message.message_id, use_message.expires_at)
    on conflict on constraint federation_replays_pkey do nothing;
  return found;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_message is 'Whether this message of a provider is used for the first time.';

-- An identity is found by issuer and subject, and by e-mail address only where the provider has verified the address. Where nobody has proved
-- it here, this sign-in is the first proof: who entered the address before has no part in the account.
create function auth.federated_user(provider auth.providers, subject text, claims jsonb, client_info auth.client_info, out outcome text, out user_id bigint) as $$
declare
  v_email constant text := nullif(btrim(claims ->> 'email'), '');
  v_local_part constant text := split_part(v_email, '@', 1);
  v_is_vouched constant boolean := provider.trusts_email or coalesce((claims ->> 'email_verified')::boolean, false);
  v_identity auth.identities;
  v_account auth.users;
  v_current text;
begin
  -- Serializes concurrent first sign-ins of the same identity.
  perform pg_advisory_xact_lock(hashtextextended(provider.issuer || ' ' || subject, 0));
  select * into v_identity from auth.identities
    where identities.issuer = provider.issuer and identities.subject = federated_user.subject;
  if found then
    v_account := auth.lock_account(v_identity.user_id);
    -- Read again: the transaction that held the account may have changed it.
    select * into v_identity from auth.identities
      where identities.issuer = provider.issuer and identities.subject = federated_user.subject;
    user_id := v_account.user_id;
    -- A password was set by mail after the identity was linked: the identity only counts if the provider vouches for that address.
    outcome := case
      when v_identity.is_vouched or v_account.password_changed_at <= v_identity.created_at
        or v_is_vouched and lower(v_email collate "C") = lower(v_account.verified_email collate "C")
      then 'found'
      else 'conflict'
    end;
    return;
  end if;

  user_id := auth.find_user(v_email);
  v_account := auth.lock_account(user_id);
  select profile.email into v_current from auth.profile_of(user_id) as profile;
  if v_current is not null then
    -- Case-insensitive within ASCII only, as for mail servers: the Kelvin sign is not a k.
    if not v_is_vouched or lower(v_email collate "C") <> lower(v_current collate "C")
      or lower(v_account.verified_email collate "C") <> lower(v_current collate "C")
    then
      outcome := 'conflict';
      user_id := null;
      return;
    end if;
    if v_account.user_id is not null and v_account.verified_email is null and not auth.is_disabled(v_account) then
      perform auth.claim_account(user_id, null, client_info);
      update auth.users as account set verified_email = v_current where account.user_id = federated_user.user_id;
    end if;
    -- A user row without an account.
    insert into auth.users (user_id, username, verified_email) values (federated_user.user_id, v_current, v_current)
      on conflict on constraint users_pkey do nothing;
    outcome := 'linked';
  elsif not (provider.sign_ups and auth.accepts_sign_ups()) then
    outcome := 'closed';
    return;
  elsif v_email is null then
    outcome := 'nameless';
    return;
  else
    begin
      user_id := auth.register(left(coalesce(btrim(claims ->> 'name'), v_local_part), 200), v_email, null, null, null, client_info) ->> 'id';
    exception when sqlstate 'WRONG' then
      -- The provider's name is not acceptable: use the local part. If the address is not acceptable, this raises.
      user_id := auth.register(left(v_local_part, 200), v_email, null, null, null, client_info) ->> 'id';
    end;
    update auth.users as account set
        is_self_registered = true, verified_email = case when v_is_vouched then account.email end
      where account.user_id = federated_user.user_id;
    outcome := 'registered';
  end if;
  insert into auth.identities (issuer, subject, user_id, is_vouched)
    values (provider.issuer, federated_user.subject, federated_user.user_id, v_is_vouched);
  perform auth.log_event('identity.linked', user_id, client_info, jsonb_build_object('provider', provider.name));
end;
$$ language plpgsql set search_path = '';
comment on function auth.federated_user is 'The user of an identity: found, linked or registered; or why there is none: conflict, closed, nameless. Locks the account.';

-- The result is a value, not an exception: the record that the message was used must be kept even when the sign-in is refused.
create function auth.pass_federation(
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
comment on function auth.pass_federation is 'The result of a sign-in through a provider: passed, linked, code_missing; or why it is refused.';

create function auth.save_federation_login(login jsonb, browser_hash bytea, seconds integer) returns void as $$
begin
  delete from auth.federation_logins as gone
    where gone.browser_hash = save_federation_login.browser_hash or gone.browser_hash in (
      select logins.browser_hash from auth.federation_logins as logins where expires_at < now()
      order by expires_at limit 10 for update skip locked
    );
  insert into auth.federation_logins (
    browser_hash, provider, user_id, mode, redirect_to, code_challenge, sign_out_hint, expires_at
  )
    select save_federation_login.browser_hash, given.provider, given.user_id, given.mode, given.redirect_to,
      given.code_challenge, given.sign_out_hint, now() + make_interval(secs => seconds)
    from jsonb_populate_record(null::auth.federation_logins, save_federation_login.login) as given;
end;
$$ language plpgsql set search_path = '';
comment on function auth.save_federation_login is 'Stores a user who has come back from a provider until that browser shows a code. One per browser.';

create function auth.pass_federated_factor(
  browser_hash bytea, counted_name text, user_id bigint, factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(pass_federated_factor.user_id);
  v_outcome text;
begin
  v_outcome := case
    when not exists (
      select from auth.federation_logins as login
      where login.browser_hash = pass_federated_factor.browser_hash and login.user_id = v_account.user_id
        and login.expires_at > now()
    ) then 'ended'
    when auth.is_disabled(v_account) then 'disabled'
    when auth.use_factor(v_account.user_id, factor_secret, step, backup_code_hash, client_info) in ('used', 'none') then 'passed'
    else 'code'
  end;
  if v_outcome = 'passed' then
    delete from auth.federation_logins as login where login.browser_hash = pass_federated_factor.browser_hash;
    perform auth.end_attempt(counted_name, client_info.address, 'passed');
    perform auth.log_event('federation.signed_in', v_account.user_id, client_info);
  elsif v_outcome = 'code' then
    perform auth.fail_login(counted_name, v_account.user_id, 'code', client_info);
  else
    perform auth.end_attempt(counted_name, client_info.address, 'undecided');
    perform auth.log_event('login.refused', v_account.user_id, client_info, jsonb_build_object('reason', v_outcome));
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_federated_factor is 'Spends the code that a sign-in through a provider requires: passed, or what is wrong.';

create function auth.add_federation_code(code_hash bytea, user_id bigint, code_challenge text, seconds integer) returns void as $$
begin
  delete from auth.federation_codes as expired where expired.code_hash in (
    select codes.code_hash from auth.federation_codes as codes where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  insert into auth.federation_codes (code_hash, user_id, code_challenge, expires_at)
    values (
      add_federation_code.code_hash, add_federation_code.user_id, add_federation_code.code_challenge,
      now() + make_interval(secs => seconds)
    );
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_federation_code is 'Stores a code that its bearer exchanges for a pair of tokens.';

-- Spent by whoever shows it: a code without the right verifier has been seen by somebody else. The account is locked first, as when its
-- password is set, which deletes the code.
create function auth.use_federation_code(code_hash bytea, code_challenge text, client_info auth.client_info, out outcome text, out user_id bigint) as $$
declare
  v_account auth.users;
  v_code auth.federation_codes;
begin
  v_account := auth.lock_account((
    select codes.user_id from auth.federation_codes as codes where codes.code_hash = use_federation_code.code_hash
  ));
  delete from auth.federation_codes as code
    where code.code_hash = use_federation_code.code_hash
    returning * into v_code;
  if v_code.user_id is null or v_code.expires_at < now()
    or v_code.code_challenge is distinct from use_federation_code.code_challenge
  then
    perform auth.log_event('federation.refused', v_code.user_id, client_info, '{"reason":"code"}');
    outcome := 'wrong';
  elsif auth.is_disabled(v_account) then
    perform auth.log_event('login.refused', v_code.user_id, client_info, '{"reason":"disabled"}');
    outcome := 'disabled';
  else
    outcome := 'passed';
    user_id := v_code.user_id;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_federation_code is 'The user of a code for tokens. Locks the account.';

create function auth.save_federation_session(session_hash bytea, provider text, subject text, session_index text, sign_out_hint text) returns void as $$
  insert into auth.federation_sessions (session_hash, provider, subject, session_index, sign_out_hint)
  values (
    save_federation_session.session_hash, save_federation_session.provider, save_federation_session.subject,
    save_federation_session.session_index, save_federation_session.sign_out_hint
  );
$$ language sql set search_path = '';
comment on function auth.save_federation_session is 'Stores the provider through which a session was opened.';

create function auth.end_federation_sessions(
  provider text, subject text, session_index text, message_id text, message_expires_at timestamptz, client_info auth.client_info
) returns integer as $$
declare
  v_issuer constant text := (select issuer from auth.providers where name = end_federation_sessions.provider);
  v_user_id bigint;
  v_ended integer := 0;
begin
  if not auth.use_message(v_issuer, message_id, message_expires_at) then
    return null;
  end if;
  for v_user_id in
    delete from auth.sessions as session using auth.federation_sessions as federated
      where federated.session_hash = session.id_hash and federated.provider = end_federation_sessions.provider
        and federated.subject = end_federation_sessions.subject
        and coalesce(federated.session_index = end_federation_sessions.session_index, true)
      returning session.user_id
  loop
    v_ended := v_ended + 1;
    perform auth.log_event('session.closed', v_user_id, client_info, jsonb_build_object('provider', provider));
  end loop;
  return v_ended;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_federation_sessions is 'Ends the sessions that a provider asks to end, and returns their number. Null: a replayed message.';

-- The id is the one of auth.user_identities. A password counts as an identity, as the one of provider email does there.
create function auth.unlink_identity(user_id bigint, identity_id uuid, client_info auth.client_info) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(unlink_identity.user_id);
  v_identity auth.identities;
  v_provider text;
begin
  select identities.* into v_identity from auth.identities
    where identities.user_id = v_account.user_id
      and md5(identities.issuer || ' ' || identities.subject)::uuid = unlink_identity.identity_id;
  if not found then
    return 'absent';
  end if;
  select providers.name into v_provider from auth.providers where providers.issuer = v_identity.issuer;
  if v_account.password_hash is null and not exists (
    select from auth.identities join auth.providers on providers.issuer = identities.issuer
    where identities.user_id = v_account.user_id and providers.enabled
      and (identities.issuer, identities.subject) <> (v_identity.issuer, v_identity.subject)
  ) then
    return 'last';
  end if;
  delete from auth.identities
    where identities.issuer = v_identity.issuer and identities.subject = v_identity.subject;
  -- A link that is in progress would be completed after this.
  delete from auth.federation_states as state where state.user_id = v_account.user_id and state.provider = v_provider;
  perform auth.log_event(
    'identity.unlinked', v_account.user_id, client_info, jsonb_build_object('provider', v_provider)
  );
  return 'unlinked';
end;
$$ language plpgsql set search_path = '';
comment on function auth.unlink_identity is 'Removes one identity of a user: unlinked; absent: it is not the user''s; last: the user could not sign in then.';

create function auth.unlink_provider(user_id bigint, provider text, client_info auth.client_info) returns boolean as $$
declare
  v_account constant auth.users := auth.lock_account(unlink_provider.user_id);
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
comment on function auth.unlink_provider is 'Removes the identities of a user at that provider, unless the user could not sign in then. False: there are none.';

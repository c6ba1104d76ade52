--! Previous: sha1:23b9a39625080add3058aaf737268ea7626dbf9f
--! Hash: sha1:b15e2ec98e02aea21d0abf5f427b764533f56e8b
--! Message: federation_rules

--! split: 0010-federation.sql
-- The rules of signing in through another provider. What it said of somebody was verified by the engine; whose account
-- that is, and whether they may, is decided here.
alter table auth.providers
  add column title text check (btrim(title) <> ''),
  add column sign_ups boolean not null default true,
  add column trusts_email boolean not null default false,
  add column trusts_factor boolean not null default false,
  add constraint providers_settings check (
    case kind
      when 'oauth2' then settings ?& '{authorization_endpoint,token_endpoint,userinfo_endpoint}'
      when 'saml' then settings ? 'entry_point' and jsonb_typeof(settings -> 'certificates') = 'array'
      else true
    end
  );
comment on column auth.providers.title is 'What people read on the button; the name without one.';
comment on column auth.providers.client_id is 'What the provider knows this service by. Of SAML the entity id, else the address of its metadata.';
comment on column auth.providers.client_secret is
  'Sealed by the service (sealed:…), or as it stands when written in SQL. Of SAML the private key that signs requests.';
comment on column auth.providers.sign_ups is 'Whether who has no account is given one.';
comment on column auth.providers.trusts_email is 'Whether every address that it tells counts as verified.';
comment on column auth.providers.trusts_factor is
  'Whether its word that a second factor was asked for is taken instead of a code of ours.';
comment on column auth.providers.settings is
  'oidc: scope, private_network. oauth2: authorization_endpoint, token_endpoint, userinfo_endpoint, scope, claims, private_network. saml: entry_point, logout_url, certificates, certificate, name_id_format, claims. claims says where subject, email, email_verified and name are found.';
comment on constraint providers_settings on auth.providers is
  'An oauth2 provider has its three endpoints in settings, a saml provider its entry_point and its certificates.';

alter table auth.identities add column is_vouched boolean not null default false;
comment on column auth.identities.is_vouched is
  'Whether the provider vouched for the address, or the user was signed in when it was linked.';

delete from auth.federation_states;
alter table auth.federation_states
  add column purpose text not null check (purpose in ('sign-in', 'sign-out')),
  add column browser_hash bytea not null check (octet_length(browser_hash) = 32),
  add column mode text not null check (mode in ('session', 'token')),
  add column code_challenge text,
  add column user_id bigint references public.users on delete cascade;
create index on auth.federation_states (user_id);
comment on column auth.federation_states.browser_hash is 'Digest of the cookie of the browser that left: nobody else may come back.';
comment on column auth.federation_states.mode is 'What is opened: a session, or a pair of tokens.';
comment on column auth.federation_states.code_challenge is
  'What the program that asked for tokens will show the verifier of, as in RFC 7636.';
comment on column auth.federation_states.user_id is 'Who is signed in already, and links an identity.';

create table auth.federation_logins (
  browser_hash   bytea primary key check (octet_length(browser_hash) = 32),
  provider       text not null references auth.providers on update cascade on delete cascade,
  user_id        bigint not null references public.users on delete cascade,
  mode           text not null check (mode in ('session', 'token')),
  redirect_to    text,
  code_challenge text,
  sign_out_hint  text,
  expires_at     timestamptz not null
);
create index on auth.federation_logins (provider);
create index on auth.federation_logins (user_id);
create index on auth.federation_logins (expires_at);
alter table auth.federation_logins enable row level security;
comment on table auth.federation_logins is
  'Who has come back from a provider and still owes a code of the authenticator app.';
comment on column auth.federation_logins.sign_out_hint is 'Sealed by the browser''s cookie.';

create table auth.federation_codes (
  code_hash      bytea primary key check (octet_length(code_hash) = 32),
  user_id        bigint not null references public.users on delete cascade,
  code_challenge text,
  expires_at     timestamptz not null
);
create index on auth.federation_codes (user_id);
create index on auth.federation_codes (expires_at);
alter table auth.federation_codes enable row level security;
comment on table auth.federation_codes is 'What a program exchanges for its first pair of tokens, once and within a minute.';

create table auth.federation_sessions (
  session_hash  bytea primary key references auth.sessions on delete cascade,
  provider      text not null references auth.providers on update cascade on delete cascade,
  subject       text not null,
  session_index text,
  sign_out_hint text
);
create index on auth.federation_sessions (provider, subject);
alter table auth.federation_sessions enable row level security;
comment on table auth.federation_sessions is 'Through which provider a session was opened, so that both can be ended together.';
comment on column auth.federation_sessions.subject is 'What the provider names in a request to sign the user out.';
comment on column auth.federation_sessions.sign_out_hint is
  'What the provider wants to be shown at the end: sealed by the session''s id, which only the browser has.';

--! Included auth/add_provider.sql
create or replace function auth.add_provider(provider jsonb, sender auth.sender) returns void as $$
begin
  insert into auth.providers (
    name, kind, issuer, client_id, client_secret, title, sign_ups, trusts_email, trusts_factor, settings
  )
    select given.name, given.kind, given.issuer, given.client_id, given.client_secret, given.title,
      coalesce(given.sign_ups, true), coalesce(given.trusts_email, false), coalesce(given.trusts_factor, false),
      coalesce(given.settings, '{}')
    from jsonb_populate_record(null::auth.providers, add_provider.provider) as given;
  perform auth.log_event('provider.added', null, sender, jsonb_build_object('provider', provider ->> 'name'));
exception
  when unique_violation then
    raise exception 'There is a provider of that name, or of that issuer, already' using errcode = 'TAKEN', detail = 'name';
  when check_violation or not_null_violation then
    raise exception 'This is no provider of that kind: %', sqlerrm
      using errcode = 'WRONG', detail = 'settings', hint = 'See docs/federation.md for what each kind wants.';
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_provider is 'Adds an identity provider, from the columns of its row.';
--! EndIncluded auth/add_provider.sql
--! Included auth/remove_provider.sql
create or replace function auth.remove_provider(name text, sender auth.sender) returns boolean as $$
begin
  delete from auth.providers where providers.name = remove_provider.name;
  if not found then
    return false;
  end if;
  perform auth.log_event('provider.removed', null, sender, jsonb_build_object('provider', remove_provider.name));
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.remove_provider is
  'Removes a provider and the identities that it gave; the accounts stay. False: there is none of that name.';
--! EndIncluded auth/remove_provider.sql
--! Included auth/enable_provider.sql
create or replace function auth.enable_provider(name text, enabled boolean, sender auth.sender) returns boolean as $$
begin
  update auth.providers set enabled = enable_provider.enabled where providers.name = enable_provider.name;
  if not found then
    return false;
  end if;
  perform auth.log_event(
    case when enable_provider.enabled then 'provider.enabled' else 'provider.disabled' end, null, sender,
    jsonb_build_object('provider', enable_provider.name)
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enable_provider is
  'Lets users sign in through a provider, or no longer; who is signed in stays so. False: there is none of that name.';
--! EndIncluded auth/enable_provider.sql
--! Included auth/list_providers.sql
create or replace function auth.list_providers()
returns table (name text, kind text, title text, issuer text, client_id text, enabled boolean, sign_ups boolean, identities bigint)
language sql stable
begin atomic
  select providers.name, providers.kind, coalesce(providers.title, initcap(providers.name)), providers.issuer,
    providers.client_id, providers.enabled, providers.sign_ups,
    (select count(*) from auth.identities where identities.issuer = providers.issuer)
  from auth.providers order by providers.name;
end;

comment on function auth.list_providers is 'The identity providers: what can be told about them.';
--! EndIncluded auth/list_providers.sql
--! Included auth/begin_federation.sql
create or replace function auth.begin_federation(state_hash bytea, browser_hash bytea, state jsonb, seconds integer)
returns void as $$
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
comment on function auth.begin_federation is 'Remembers a browser that leaves for a provider.';
--! EndIncluded auth/begin_federation.sql
--! Included auth/end_federation.sql
create or replace function auth.end_federation(state_hash bytea, browser_hash bytea, provider text, purpose text)
returns setof auth.federation_states
language sql
begin atomic
  delete from auth.federation_states as state
  where state.state_hash = end_federation.state_hash and state.browser_hash = end_federation.browser_hash
    and state.provider = end_federation.provider and state.purpose = end_federation.purpose and state.expires_at > now()
  returning state;
end;

comment on function auth.end_federation is
  'What was remembered of a browser that comes back from that provider. Once: no row to whoever comes with the same.';
--! EndIncluded auth/end_federation.sql
--! Included auth/federated_user.sql
-- An identity is found by issuer and subject. By e-mail address only where both the provider and we have verified it:
-- else whoever enters somebody's address there, or here before them, would share the account.
create or replace function auth.federated_user(
  provider auth.providers, subject text, claims jsonb, sender auth.sender, out outcome text, out user_id bigint
) as $$
declare
  v_email constant text := nullif(btrim(claims ->> 'email'), '');
  v_is_vouched constant boolean := provider.trusts_email or coalesce((claims ->> 'email_verified')::boolean, false);
  v_identity auth.identities;
  v_account auth.credentials;
  v_user public.users;
begin
  -- Two who come for the first time at once are one.
  perform pg_advisory_xact_lock(hashtextextended(provider.issuer || ' ' || subject, 0));
  select * into v_identity from auth.identities
    where identities.issuer = provider.issuer and identities.subject = federated_user.subject;
  if found then
    v_account := auth.hold_account(v_identity.user_id);
    user_id := v_identity.user_id;
    -- Somebody has since shown to read the mail of an address that nobody vouched for then: it is theirs alone.
    outcome := case when v_identity.is_vouched or v_account.password_changed_at <= v_identity.created_at then 'found'
      else 'conflict' end;
    return;
  end if;

  select * into v_user from public.users where lower(users.email) = lower(v_email) for key share;
  if found then
    v_account := auth.hold_account(v_user.id);
    if not v_is_vouched
      or v_account.user_id is not null and lower(v_account.verified_email) is distinct from lower(v_user.email)
    then
      outcome := 'conflict';
      return;
    end if;
    -- A user whom somebody has entered, and who could not sign in until now.
    insert into auth.credentials (user_id, username, verified_email) values (v_user.id, v_user.email, v_user.email)
      on conflict on constraint credentials_pkey do nothing;
    outcome := 'linked';
  elsif not provider.sign_ups then
    outcome := 'closed';
    return;
  elsif v_email is null then
    outcome := 'nameless';
    return;
  else
    v_user := auth.register(
      coalesce(nullif(btrim(claims ->> 'name'), ''), split_part(v_email, '@', 1)), v_email, null, null, null, sender
    );
    update auth.credentials set verified_email = v_user.email where credentials.user_id = v_user.id and v_is_vouched;
    outcome := 'registered';
  end if;
  user_id := v_user.id;
  insert into auth.identities (issuer, subject, user_id, is_vouched)
    values (provider.issuer, federated_user.subject, v_user.id, v_is_vouched);
  perform auth.log_event('identity.linked', v_user.id, sender, jsonb_build_object('provider', provider.name));
end;
$$ language plpgsql set search_path = '';
comment on function auth.federated_user is
  'Whose account that is: found, linked or registered; or why it is nobody''s: conflict, closed, nameless. The account is held.';
--! EndIncluded auth/federated_user.sql
--! Included auth/link_identity.sql
create or replace function auth.link_identity(
  user_id bigint, provider auth.providers, subject text, sender auth.sender
) returns text as $$
declare
  v_account constant auth.credentials := auth.hold_account(link_identity.user_id);
begin
  if v_account.user_id is null or v_account.disabled_at is not null then
    return 'disabled';
  end if;
  insert into auth.identities as known (issuer, subject, user_id, is_vouched)
    values (provider.issuer, link_identity.subject, v_account.user_id, true)
    on conflict on constraint identities_pkey do update set is_vouched = true where known.user_id = EXCLUDED.user_id;
  if not found then
    return 'taken';
  end if;
  perform auth.log_event('identity.linked', v_account.user_id, sender, jsonb_build_object('provider', provider.name));
  return 'linked';
end;
$$ language plpgsql set search_path = '';
comment on function auth.link_identity is
  'Lets who is signed in sign in through the provider too: linked, or taken when it is another user''s identity.';
--! EndIncluded auth/link_identity.sql
--! Included auth/take_message.sql
create or replace function auth.take_message(issuer text, message_id text, expires_at timestamptz) returns boolean as $$
begin
  delete from auth.federation_replays as expired where (expired.issuer, expired.message_id) in (
    select replays.issuer, replays.message_id from auth.federation_replays as replays where replays.expires_at < now()
    order by replays.expires_at limit 10 for update skip locked
  );
  insert into auth.federation_replays (issuer, message_id, expires_at)
    values (take_message.issuer, take_message.message_id, take_message.expires_at)
    on conflict on constraint federation_replays_pkey do nothing;
  return found;
end;
$$ language plpgsql set search_path = '';
comment on function auth.take_message is 'Whether this message of a provider is shown for the first time.';
--! EndIncluded auth/take_message.sql
--! Included auth/pass_federation.sql
-- An outcome is a value, not an exception: that a message was shown is to be remembered though its bearer is refused.
create or replace function auth.pass_federation(
  provider text, subject text, claims jsonb, linking bigint, sender auth.sender, out outcome text, out user_id bigint
) as $$
declare
  v_provider auth.providers;
begin
  select * into v_provider from auth.providers where providers.name = pass_federation.provider and enabled for key share;
  if not found then
    outcome := 'gone';
    return;
  end if;

  if claims ? 'message_id' and not auth.take_message(
    v_provider.issuer, claims ->> 'message_id', (claims ->> 'message_expires_at')::timestamptz
  ) then
    outcome := 'replayed';
    return;
  end if;

  if linking is not null then
    outcome := auth.link_identity(linking, v_provider, subject, sender);
    user_id := linking;
    return;
  end if;

  select * into outcome, user_id from auth.federated_user(v_provider, subject, claims, sender);
  if user_id is null or outcome = 'conflict' then
    return;
  end if;
  if exists (
    select from auth.credentials where credentials.user_id = pass_federation.user_id and disabled_at is not null
  ) then
    outcome := 'disabled';
    return;
  end if;
  update auth.identities set last_used_at = now()
    where identities.issuer = v_provider.issuer and identities.subject = pass_federation.subject;
  outcome := case
    when v_provider.trusts_factor and coalesce((claims ->> 'second_factor')::boolean, false) then 'passed'
    when exists (
      select from auth.mfa_factors where mfa_factors.user_id = pass_federation.user_id and state = 'enabled'
    ) then 'code_missing'
    else 'passed'
  end;
  if outcome = 'passed' then
    perform auth.log_event(
      'federation.signed_in', pass_federation.user_id, sender, jsonb_build_object('provider', v_provider.name)
    );
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_federation is
  'What becomes of somebody whom a provider has vouched for: passed, linked, code_missing; or why not.';
--! EndIncluded auth/pass_federation.sql
--! Included auth/hold_federation.sql
create or replace function auth.hold_federation(login jsonb, browser_hash bytea, seconds integer) returns void as $$
begin
  delete from auth.federation_logins as gone
    where gone.browser_hash = hold_federation.browser_hash or gone.browser_hash in (
      select logins.browser_hash from auth.federation_logins as logins where expires_at < now()
      order by expires_at limit 10 for update skip locked
    );
  insert into auth.federation_logins (
    browser_hash, provider, user_id, mode, redirect_to, code_challenge, sign_out_hint, expires_at
  )
    select hold_federation.browser_hash, given.provider, given.user_id, given.mode, given.redirect_to,
      given.code_challenge, given.sign_out_hint, now() + make_interval(secs => seconds)
    from jsonb_populate_record(null::auth.federation_logins, hold_federation.login) as given;
end;
$$ language plpgsql set search_path = '';
comment on function auth.hold_federation is
  'Remembers who has come back from a provider, until that browser shows a code. One at a time.';
--! EndIncluded auth/hold_federation.sql
--! Included auth/pass_federated_factor.sql
create or replace function auth.pass_federated_factor(
  browser_hash bytea, counted_name text, user_id bigint,
  factor_secret text, step bigint, backup_code_hash text, sender auth.sender
) returns text as $$
declare
  v_account constant auth.credentials := auth.hold_account(pass_federated_factor.user_id);
  v_outcome text;
begin
  v_outcome := case
    when not exists (
      select from auth.federation_logins as login
      where login.browser_hash = pass_federated_factor.browser_hash and login.user_id = v_account.user_id
        and login.expires_at > now()
    ) then 'ended'
    when v_account.disabled_at is not null then 'disabled'
    when auth.use_factor(v_account.user_id, factor_secret, step, backup_code_hash, sender) in ('used', 'none') then 'passed'
    else 'code'
  end;
  if v_outcome = 'passed' then
    delete from auth.federation_logins as login where login.browser_hash = pass_federated_factor.browser_hash;
    perform auth.end_attempt(counted_name, sender.address, 'passed');
    perform auth.log_event('federation.signed_in', v_account.user_id, sender);
  elsif v_outcome = 'code' then
    perform auth.fail_login(counted_name, v_account.user_id, 'code', sender);
  else
    perform auth.end_attempt(counted_name, sender.address, 'undecided');
    perform auth.log_event('login.refused', v_account.user_id, sender, jsonb_build_object('reason', v_outcome));
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_federated_factor is
  'Spends the code that somebody owed who came back from a provider: passed, or what is wrong.';
--! EndIncluded auth/pass_federated_factor.sql
--! Included auth/add_federation_code.sql
create or replace function auth.add_federation_code(
  code_hash bytea, user_id bigint, code_challenge text, seconds integer
) returns void as $$
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
comment on function auth.add_federation_code is 'A code that its bearer exchanges for a pair of tokens.';
--! EndIncluded auth/add_federation_code.sql
--! Included auth/use_federation_code.sql
-- Spent by whoever shows it: one that came without the right verifier has been seen by somebody else.
create or replace function auth.use_federation_code(
  code_hash bytea, code_challenge text, sender auth.sender, out outcome text, out user_id bigint
) as $$
declare
  v_code auth.federation_codes;
begin
  delete from auth.federation_codes as code
    where code.code_hash = use_federation_code.code_hash
    returning * into v_code;
  if v_code.user_id is null or v_code.expires_at < now()
    or v_code.code_challenge is distinct from use_federation_code.code_challenge
  then
    perform auth.log_event('federation.refused', v_code.user_id, sender, '{"reason":"code"}');
    outcome := 'wrong';
  elsif (auth.hold_account(v_code.user_id)).disabled_at is not null then
    perform auth.log_event('login.refused', v_code.user_id, sender, '{"reason":"disabled"}');
    outcome := 'disabled';
  else
    outcome := 'passed';
    user_id := v_code.user_id;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_federation_code is 'Whose tokens a code is exchanged for. The account is held.';
--! EndIncluded auth/use_federation_code.sql
--! Included auth/keep_federation_session.sql
create or replace function auth.keep_federation_session(
  session_hash bytea, provider text, subject text, session_index text, sign_out_hint text
) returns void as $$
  insert into auth.federation_sessions (session_hash, provider, subject, session_index, sign_out_hint)
  values (
    keep_federation_session.session_hash, keep_federation_session.provider, keep_federation_session.subject,
    keep_federation_session.session_index, keep_federation_session.sign_out_hint
  );
$$ language sql set search_path = '';
comment on function auth.keep_federation_session is 'Remembers through which provider a session was opened.';
--! EndIncluded auth/keep_federation_session.sql
--! Included auth/end_federation_sessions.sql
create or replace function auth.end_federation_sessions(
  provider text, subject text, session_index text, message_id text, message_expires_at timestamptz, sender auth.sender
) returns integer as $$
declare
  v_issuer constant text := (select issuer from auth.providers where name = end_federation_sessions.provider);
  v_user_id bigint;
  v_ended integer := 0;
begin
  if not auth.take_message(v_issuer, message_id, message_expires_at) then
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
    perform auth.log_event('session.closed', v_user_id, sender, jsonb_build_object('provider', provider));
  end loop;
  return v_ended;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_federation_sessions is
  'Ends the sessions that a provider asks to end, and says how many. Null: the same message was obeyed before.';
--! EndIncluded auth/end_federation_sessions.sql

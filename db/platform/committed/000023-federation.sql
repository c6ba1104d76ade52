--! Previous: sha1:2825ae7899223aa7426125c6bf6703ae85897357
--! Hash: sha1:246d13ee6b4aa39c1f7b00e0899dd9e1fec8bcc3
--! Message: federation

-- Signing in through another provider. The service verifies what the provider says; these functions decide which account it is, and
-- whether it may sign in.
create table auth.providers (
  name          text primary key check (name ~ '^[a-z][a-z0-9-]*$'),
  kind          text not null check (kind in ('oidc', 'oauth2', 'saml')),
  issuer        text not null unique,
  client_id     text,
  client_secret text,
  settings      jsonb not null default '{}' check (jsonb_typeof(settings) = 'object'),
  enabled       boolean not null default true,
  created_at    timestamptz not null default now(),
  title         text check (btrim(title) <> ''),
  sign_ups      boolean not null default true,
  trusts_email  boolean not null default false,
  trusts_factor boolean not null default false,
  constraint providers_client check (kind = 'saml' or client_id is not null),
  constraint providers_settings check (
    case kind
      when 'oauth2' then settings ?& '{authorization_endpoint,token_endpoint,userinfo_endpoint}'
      when 'saml' then settings ? 'entry_point' and jsonb_typeof(settings -> 'certificates') = 'array'
      else true
    end
  )
);
alter table auth.providers enable row level security;
comment on table auth.providers is 'Identity providers that users may sign in through.';
comment on column auth.providers.issuer is 'The provider''s identifier, compared exactly with the one in its responses.';
comment on column auth.providers.title is 'The label of the sign-in button; without one the name.';
comment on column auth.providers.client_id is
  'This service''s identifier at the provider. SAML: the entity id; without one the address of the metadata.';
comment on column auth.providers.client_secret is
  'Encrypted by the service (sealed:…), or in plain text when written in SQL. SAML: the private key that signs requests.';
comment on column auth.providers.sign_ups is 'Whether a user without an account gets one.';
comment on column auth.providers.trusts_email is 'Whether every e-mail address from this provider counts as verified.';
comment on column auth.providers.trusts_factor is
  'Whether a second factor at the provider is accepted instead of a code of this service.';
comment on column auth.providers.settings is
  'oidc: scope, private_network. oauth2: authorization_endpoint, token_endpoint, userinfo_endpoint, scope, claims, private_network. saml: entry_point, logout_url, certificates, certificate, name_id_format, claims. claims says where subject, email, email_verified and name are found.';
comment on constraint providers_settings on auth.providers is
  'An oauth2 provider has its three endpoints in settings, a saml provider its entry_point and its certificates.';

-- Linked by issuer and subject. An e-mail address proves nothing: otherwise whoever registers it at some provider first would own
-- the account.
create table auth.identities (
  issuer       text not null references auth.providers (issuer) on update cascade on delete cascade,
  subject      text not null,
  user_id      bigint not null,
  created_at   timestamptz not null default now(),
  last_used_at timestamptz,
  is_vouched   boolean not null default false,
  primary key (issuer, subject)
);
alter table auth.identities add constraint identities_subject_max_length check (octet_length(subject) <= 1024) not valid;
create index on auth.identities (user_id);
alter table auth.identities enable row level security;
comment on table auth.identities is 'Maps a subject of an issuer to a user.';
comment on column auth.identities.is_vouched is
  'Whether the provider verified the address, or the user was signed in when it was linked. Reset when a password is set by mail.';

create table auth.federation_states (
  state_hash     bytea primary key check (octet_length(state_hash) = 32),
  provider       text not null references auth.providers on update cascade on delete cascade,
  nonce          text,
  code_verifier  text,
  request_id     text,
  redirect_to    text,
  created_at     timestamptz not null default now(),
  expires_at     timestamptz not null,
  purpose        text not null check (purpose in ('sign-in', 'sign-out')),
  browser_hash   bytea not null check (octet_length(browser_hash) = 32),
  mode           text not null check (mode in ('session', 'token')),
  code_challenge text,
  user_id        bigint
);
alter table auth.federation_states
  add constraint federation_states_redirect_to_max_length check (length(redirect_to) <= 4096) not valid,
  add constraint federation_states_code_challenge_max_length check (length(code_challenge) <= 128) not valid;
create index on auth.federation_states (provider);
create index on auth.federation_states (expires_at);
create index on auth.federation_states (user_id);
alter table auth.federation_states enable row level security;
comment on table auth.federation_states is
  'Sign-ins in progress: inserted when the browser is sent to the provider, deleted when it returns.';
comment on column auth.federation_states.code_verifier is 'PKCE, RFC 7636.';
comment on column auth.federation_states.request_id is 'The id of a SAML request, which the response must name.';
comment on column auth.federation_states.browser_hash is 'SHA-256 of the browser''s cookie: no other browser may return.';
comment on column auth.federation_states.mode is 'What is opened: a session, or a pair of tokens.';
comment on column auth.federation_states.code_challenge is
  'The PKCE challenge (RFC 7636) of the program that requested tokens.';
comment on column auth.federation_states.user_id is 'The user who is signed in already and links an identity.';

create table auth.federation_logins (
  browser_hash   bytea primary key check (octet_length(browser_hash) = 32),
  provider       text not null references auth.providers on update cascade on delete cascade,
  user_id        bigint not null,
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
  'Users who returned from a provider and still have to enter a code of the authenticator app.';
comment on column auth.federation_logins.sign_out_hint is 'Encrypted with the browser''s cookie.';

create table auth.federation_codes (
  code_hash      bytea primary key check (octet_length(code_hash) = 32),
  user_id        bigint not null,
  code_challenge text,
  expires_at     timestamptz not null
);
create index on auth.federation_codes (user_id);
create index on auth.federation_codes (expires_at);
alter table auth.federation_codes enable row level security;
comment on table auth.federation_codes is 'Codes that a program exchanges for its first pair of tokens, once and within a minute.';

create table auth.federation_sessions (
  session_hash  bytea primary key references auth.sessions on delete cascade,
  provider      text not null references auth.providers on update cascade on delete cascade,
  subject       text not null,
  session_index text,
  sign_out_hint text
);
create index on auth.federation_sessions (provider, subject);
alter table auth.federation_sessions enable row level security;
comment on table auth.federation_sessions is 'The provider through which a session was opened, so that both can be ended together.';
comment on column auth.federation_sessions.subject is 'The subject that the provider names in a logout request.';
comment on column auth.federation_sessions.sign_out_hint is
  'Sent to the provider at logout; encrypted with the session''s id, which only the browser has.';

create table auth.federation_replays (
  issuer     text not null references auth.providers (issuer) on update cascade on delete cascade,
  message_id text not null,
  expires_at timestamptz not null,
  primary key (issuer, message_id)
);
create index on auth.federation_replays (expires_at);
alter table auth.federation_replays enable row level security;
comment on table auth.federation_replays is
  'Assertions that were accepted, kept until they expire: each is accepted once.';

--! Included auth/add_provider.sql
create or replace function auth.add_provider(provider jsonb, client_info auth.client_info) returns void as $$
begin
  insert into auth.providers (
    name, kind, issuer, client_id, client_secret, title, sign_ups, trusts_email, trusts_factor, settings
  )
    select given.name, given.kind, given.issuer, given.client_id, given.client_secret, given.title,
      coalesce(given.sign_ups, true), coalesce(given.trusts_email, false), coalesce(given.trusts_factor, false),
      coalesce(given.settings, '{}')
    from jsonb_populate_record(null::auth.providers, add_provider.provider) as given;
  perform auth.log_event('provider.added', null, client_info, jsonb_build_object('provider', provider ->> 'name'));
exception
  when unique_violation then
    raise exception 'There is a provider of that name, or of that issuer, already' using errcode = 'TAKEN', detail = 'name';
  when check_violation or not_null_violation then
    raise exception 'This is no provider of that kind: %', sqlerrm
      using errcode = 'WRONG', detail = 'settings', hint = 'See docs/federation.md for what each kind wants.';
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_provider is 'Adds an identity provider from the columns of its row.';
--! EndIncluded auth/add_provider.sql
--! Included auth/remove_provider.sql
create or replace function auth.remove_provider(name text, client_info auth.client_info) returns boolean as $$
begin
  delete from auth.providers where providers.name = remove_provider.name;
  if not found then
    return false;
  end if;
  perform auth.log_event('provider.removed', null, client_info, jsonb_build_object('provider', remove_provider.name));
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.remove_provider is
  'Removes a provider and its identities; accounts stay. False: no such provider.';
--! EndIncluded auth/remove_provider.sql
--! Included auth/enable_provider.sql
create or replace function auth.enable_provider(name text, enabled boolean, client_info auth.client_info) returns boolean as $$
begin
  update auth.providers set enabled = enable_provider.enabled where providers.name = enable_provider.name;
  if not found then
    return false;
  end if;
  perform auth.log_event(
    case when enable_provider.enabled then 'provider.enabled' else 'provider.disabled' end, null, client_info,
    jsonb_build_object('provider', enable_provider.name)
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enable_provider is
  'Enables or disables sign-in through a provider; users who are signed in stay so. False: no such provider.';
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

comment on function auth.list_providers is 'The identity providers, without secrets.';
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
comment on function auth.begin_federation is 'Stores the state of a browser that is redirected to a provider.';
--! EndIncluded auth/begin_federation.sql
--! Included auth/end_federation.sql
create or replace function auth.end_federation(state_hash bytea, browser_hash bytea, provider text, purpose text)
returns setof auth.federation_states as $$
begin
  return query
    delete from auth.federation_states as state
      where state.state_hash = end_federation.state_hash and state.browser_hash = end_federation.browser_hash
        and state.provider = end_federation.provider and state.purpose = end_federation.purpose
        and state.expires_at > now()
      returning state.*;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_federation is
  'Deletes and returns the state of a browser that comes back from a provider. No row for a second use.';
--! EndIncluded auth/end_federation.sql
--! Included auth/link_identity.sql
create or replace function auth.link_identity(
  user_id bigint, provider auth.providers, subject text, left_at timestamptz, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.credentials := auth.lock_account(link_identity.user_id);
begin
  if v_account.user_id is null or v_account.disabled_at is not null then
    return 'disabled';
  end if;
  -- The link may have been started by whoever knew the previous password.
  if v_account.password_changed_at > link_identity.left_at then
    return 'ended';
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
comment on function auth.link_identity is
  'Links an identity to the user who is signed in: linked, taken (it is another user''s), or ended (the password was changed meanwhile).';
--! EndIncluded auth/link_identity.sql
--! Included auth/use_message.sql
create or replace function auth.use_message(issuer text, message_id text, expires_at timestamptz) returns boolean as $$
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
--! EndIncluded auth/use_message.sql
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
      'federation.signed_in', pass_federation.user_id, client_info, jsonb_build_object('provider', v_provider.name)
    );
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_federation is
  'The result of a sign-in through a provider: passed, linked, code_missing; or why it is refused.';
--! EndIncluded auth/pass_federation.sql
--! Included auth/save_federation_login.sql
create or replace function auth.save_federation_login(login jsonb, browser_hash bytea, seconds integer) returns void as $$
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
comment on function auth.save_federation_login is
  'Stores a user who has come back from a provider until that browser shows a code. One per browser.';
--! EndIncluded auth/save_federation_login.sql
--! Included auth/pass_federated_factor.sql
create or replace function auth.pass_federated_factor(
  browser_hash bytea, counted_name text, user_id bigint,
  factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.credentials := auth.lock_account(pass_federated_factor.user_id);
  v_outcome text;
begin
  v_outcome := case
    when not exists (
      select from auth.federation_logins as login
      where login.browser_hash = pass_federated_factor.browser_hash and login.user_id = v_account.user_id
        and login.expires_at > now()
    ) then 'ended'
    when v_account.disabled_at is not null then 'disabled'
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
comment on function auth.pass_federated_factor is
  'Spends the code that a sign-in through a provider requires: passed, or what is wrong.';
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
comment on function auth.add_federation_code is 'Stores a code that its bearer exchanges for a pair of tokens.';
--! EndIncluded auth/add_federation_code.sql
--! Included auth/use_federation_code.sql
-- Spent by whoever shows it: a code without the right verifier has been seen by somebody else. The account is locked first, as when its
-- password is set, which deletes the code.
create or replace function auth.use_federation_code(
  code_hash bytea, code_challenge text, client_info auth.client_info, out outcome text, out user_id bigint
) as $$
declare
  v_account auth.credentials;
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
  elsif v_account.disabled_at is not null then
    perform auth.log_event('login.refused', v_code.user_id, client_info, '{"reason":"disabled"}');
    outcome := 'disabled';
  else
    outcome := 'passed';
    user_id := v_code.user_id;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_federation_code is 'The user of a code for tokens. Locks the account.';
--! EndIncluded auth/use_federation_code.sql
--! Included auth/save_federation_session.sql
create or replace function auth.save_federation_session(
  session_hash bytea, provider text, subject text, session_index text, sign_out_hint text
) returns void as $$
  insert into auth.federation_sessions (session_hash, provider, subject, session_index, sign_out_hint)
  values (
    save_federation_session.session_hash, save_federation_session.provider, save_federation_session.subject,
    save_federation_session.session_index, save_federation_session.sign_out_hint
  );
$$ language sql set search_path = '';
comment on function auth.save_federation_session is 'Stores the provider through which a session was opened.';
--! EndIncluded auth/save_federation_session.sql
--! Included auth/end_federation_sessions.sql
create or replace function auth.end_federation_sessions(
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
comment on function auth.end_federation_sessions is
  'Ends the sessions that a provider asks to end, and returns their number. Null: a replayed message.';
--! EndIncluded auth/end_federation_sessions.sql

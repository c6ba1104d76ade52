--! Previous: sha1:e0d7fd94b567ba6e7289b6f8ebf7c98744757b4e
--! Hash: sha1:9c1363ac0e75fe85d6ab72e552ddbda011821451

-- Signing in through another provider: the providers, the identities of users there, and sign-ins in progress. The service verifies what a provider says.
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
comment on column auth.providers.client_id is 'This service''s identifier at the provider. SAML: the entity id; without one the address of the metadata.';
comment on column auth.providers.client_secret is 'Encrypted by the service (sealed:…), or in plain text when written in SQL. SAML: the private key that signs requests.';
comment on column auth.providers.sign_ups is 'Whether a user without an account gets one.';
comment on column auth.providers.trusts_email is 'Whether every e-mail address from this provider counts as verified.';
comment on column auth.providers.trusts_factor is 'Whether a second factor at the provider is accepted instead of a code of this service.';
comment on column auth.providers.settings is
  'oidc: scope, private_network. oauth2: authorization_endpoint, token_endpoint, userinfo_endpoint, scope, claims, private_network. saml: entry_point, logout_url, certificates, certificate, name_id_format, claims. claims says where subject, email, email_verified and name are found.';
comment on constraint providers_settings on auth.providers is 'An oauth2 provider has its three endpoints in settings, a saml provider its entry_point and its certificates.';

-- Linked by issuer and subject. An e-mail address proves nothing: otherwise whoever registers it at some provider first would own the account.
create table auth.identities (
  issuer       text not null references auth.providers (issuer) on update cascade on delete cascade,
  subject      text not null,
  user_id      bigint not null references auth.users on delete cascade,
  created_at   timestamptz not null default now(),
  last_used_at timestamptz,
  is_vouched   boolean not null default false,
  primary key (issuer, subject)
);
alter table auth.identities add constraint identities_subject_max_length check (octet_length(subject) <= 1024) not valid;
create index on auth.identities (user_id);
alter table auth.identities enable row level security;
comment on table auth.identities is 'Maps a subject of an issuer to a user.';
comment on column auth.identities.is_vouched is 'Whether the provider verified the address, or the user was signed in when it was linked. Reset when a password is set by mail.';

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
  mode           text not null check (mode in ('session', 'token', 'code', 'fragment')),
  code_challenge text,
  user_id        bigint references auth.users on delete cascade
);
alter table auth.federation_states
  add constraint federation_states_redirect_to_max_length check (length(redirect_to) <= 4096) not valid,
  add constraint federation_states_code_challenge_max_length check (length(code_challenge) <= 128) not valid;
create index on auth.federation_states (provider);
create index on auth.federation_states (expires_at);
create index on auth.federation_states (user_id);
alter table auth.federation_states enable row level security;
comment on table auth.federation_states is 'Sign-ins in progress: inserted when the browser is sent to the provider, deleted when it returns.';
comment on column auth.federation_states.code_verifier is 'PKCE, RFC 7636.';
comment on column auth.federation_states.request_id is 'The id of a SAML request, which the response must name.';
comment on column auth.federation_states.browser_hash is 'SHA-256 of the browser''s cookie: no other browser may return.';
comment on column auth.federation_states.mode is 'What is opened: a session, or a pair of tokens; for clients of Supabase Auth by a code (PKCE), or in the fragment of the redirect.';
comment on column auth.federation_states.code_challenge is 'The PKCE challenge (RFC 7636) of the program that requested tokens.';
comment on column auth.federation_states.user_id is 'The user who is signed in already and links an identity.';

create table auth.federation_logins (
  browser_hash   bytea primary key check (octet_length(browser_hash) = 32),
  provider       text not null references auth.providers on update cascade on delete cascade,
  user_id        bigint not null references auth.users on delete cascade,
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
comment on table auth.federation_logins is 'Users who returned from a provider and still have to enter a code of the authenticator app.';
comment on column auth.federation_logins.sign_out_hint is 'Encrypted with the browser''s cookie.';

create table auth.federation_codes (
  code_hash      bytea primary key check (octet_length(code_hash) = 32),
  user_id        bigint not null references auth.users on delete cascade,
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
comment on column auth.federation_sessions.sign_out_hint is 'Sent to the provider at logout; encrypted with the session''s id, which only the browser has.';

create table auth.federation_replays (
  issuer     text not null references auth.providers (issuer) on update cascade on delete cascade,
  message_id text not null,
  expires_at timestamptz not null,
  primary key (issuer, message_id)
);
create index on auth.federation_replays (expires_at);
alter table auth.federation_replays enable row level security;
comment on table auth.federation_replays is 'Assertions that were accepted, kept until they expire: each is accepted once.';

create function auth.add_provider(provider jsonb, client_info auth.client_info) returns void as $$
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

create function auth.remove_provider(name text, client_info auth.client_info) returns boolean as $$
begin
  delete from auth.providers where providers.name = remove_provider.name;
  if not found then
    return false;
  end if;
  perform auth.log_event('provider.removed', null, client_info, jsonb_build_object('provider', remove_provider.name));
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.remove_provider is 'Removes a provider and its identities; accounts stay. False: no such provider.';

create function auth.enable_provider(name text, enabled boolean, client_info auth.client_info) returns boolean as $$
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
comment on function auth.enable_provider is 'Enables or disables sign-in through a provider; users who are signed in stay so. False: no such provider.';

create function auth.list_providers()
returns table (name text, kind text, title text, issuer text, client_id text, enabled boolean, sign_ups boolean, identities bigint)
language sql stable
begin atomic
  select providers.name, providers.kind, coalesce(providers.title, initcap(providers.name)), providers.issuer,
    providers.client_id, providers.enabled, providers.sign_ups,
    (select count(*) from auth.identities where identities.issuer = providers.issuer)
  from auth.providers order by providers.name;
end;
comment on function auth.list_providers is 'The identity providers, without secrets.';

create function auth.list_linked_providers(user_id bigint) returns table (name text, title text, linked_at timestamptz, last_used_at timestamptz)
language sql stable
begin atomic
  select providers.name, coalesce(providers.title, initcap(providers.name)), min(identities.created_at), max(identities.last_used_at)
  from auth.identities join auth.providers on providers.issuer = identities.issuer
  where identities.user_id = list_linked_providers.user_id
  group by providers.name
  order by providers.name;
end;
comment on function auth.list_linked_providers is 'The providers through which a user can sign in.';

--! Previous: sha1:bbf9cade78c4bcc267a096d9b89e09e43730f611
--! Hash: sha1:52a04fec67e49fc1373614c9f65555707a0b6f66
--! Message: oauth applications

-- Applications that act for users (OAuth 2.1). An application is granted access by a user; each authorization begins a sign-in by tokens
-- (auth.token_sessions), which ends as the user's own: with the account, a new password, and a refresh token that is used twice.
insert into content_service.bounds (name, bound) values
  ('registered clients', 10000), ('rows of auth.oauth_authorizations', 10000), ('grants of a user', 100), ('sign-ins of a grant', 20);

create table auth.oauth_clients (
  id            text primary key constraint oauth_clients_id_length check (length(id) between 1 and 2000),
  name          text not null constraint oauth_clients_name_length check (length(name) between 1 and 200),
  uri           text constraint oauth_clients_uri_length check (length(uri) <= 2000),
  logo_uri      text constraint oauth_clients_logo_uri_length check (length(logo_uri) <= 2000),
  redirect_uris text[] not null constraint oauth_clients_redirect_uris_number check (cardinality(redirect_uris) between 1 and 20),
  grant_types   text[] not null constraint oauth_clients_grant_types_known check (grant_types <@ array['authorization_code', 'refresh_token']),
  scope         text constraint oauth_clients_scope_length check (length(scope) <= 2000),
  auth_method   text not null check (auth_method in ('none', 'client_secret_basic', 'client_secret_post')),
  secret_hash   bytea check (octet_length(secret_hash) = 32),
  registration  text not null check (registration in ('manual', 'dynamic', 'document')),
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now(),
  fresh_until   timestamptz,
  constraint oauth_clients_secret check ((secret_hash is null) = (auth_method = 'none')),
  constraint oauth_clients_document check ((fresh_until is null) = (registration <> 'document'))
);
alter table auth.oauth_clients add constraint oauth_clients_redirect_uris_length
  check (length(array_to_string(redirect_uris, ' ')) <= 20000);
create index oauth_clients_newest_first on auth.oauth_clients (created_at desc, id);
create index oauth_clients_registered on auth.oauth_clients (created_at) where registration <> 'manual';
alter table auth.oauth_clients enable row level security;
comment on table auth.oauth_clients is 'Applications that may ask users for access.';
comment on column auth.oauth_clients.id is 'The client_id: a uuid, or the address of the document that describes the application.';
comment on column auth.oauth_clients.scope is 'The scopes that it may ask for, separated by spaces; null: all.';
comment on column auth.oauth_clients.secret_hash is 'SHA-256 of the secret; null for an application that cannot keep one.';
comment on column auth.oauth_clients.registration is 'Who registered it: an administrator, the application itself, or its document.';
comment on column auth.oauth_clients.fresh_until is 'Until when the document need not be read again.';

create table auth.oauth_grants (
  id         uuid primary key default gen_random_uuid(),
  user_id    bigint not null references auth.users on delete cascade,
  client_id  text not null references auth.oauth_clients on delete cascade,
  scopes     text[] not null constraint oauth_grants_scopes_number check (cardinality(scopes) between 1 and 100),
  resource   text not null constraint oauth_grants_resource_length check (length(resource) <= 2000),
  granted_at timestamptz not null default now(),
  expires_at timestamptz not null check (expires_at > granted_at),
  constraint oauth_grants_user_id_client_id_key unique (user_id, client_id)
);
create index on auth.oauth_grants (client_id);
create index on auth.oauth_grants (expires_at);
alter table auth.oauth_grants enable row level security;
comment on table auth.oauth_grants is 'What users have granted to applications: the latest consent of each user and application.';
comment on column auth.oauth_grants.resource is 'The address of the resource (RFC 8707) that the latest consent is about.';
comment on column auth.oauth_grants.expires_at is 'When the application has to ask again.';

create table auth.oauth_sessions (
  session_id uuid primary key references auth.token_sessions on delete cascade,
  grant_id   uuid not null references auth.oauth_grants on delete cascade,
  scopes     text[] not null,
  resource   text not null
);
create index on auth.oauth_sessions (grant_id);
alter table auth.oauth_sessions enable row level security;
comment on table auth.oauth_sessions is 'Sign-ins by tokens that applications hold, with what their tokens allow.';
comment on column auth.oauth_sessions.session_id is 'The sign-in by tokens, whose refresh tokens are the application''s.';

create table auth.oauth_authorizations (
  id             uuid primary key default gen_random_uuid(),
  client_id      text not null references auth.oauth_clients on delete cascade,
  redirect_uri   text not null constraint oauth_authorizations_redirect_uri_length check (length(redirect_uri) <= 2000),
  scopes         text[] not null constraint oauth_authorizations_scopes_number check (cardinality(scopes) between 1 and 100),
  resource       text not null constraint oauth_authorizations_resource_length check (length(resource) <= 2000),
  challenge      text not null check (challenge ~ '^[A-Za-z0-9_-]{43}$'),
  state          text constraint oauth_authorizations_state_length check (length(state) <= 4000),
  nonce          text constraint oauth_authorizations_nonce_length check (length(nonce) <= 1000),
  asks_always    boolean not null default false,
  created_at     timestamptz not null default now(),
  expires_at     timestamptz not null check (expires_at > created_at),
  user_id        bigint references auth.users on delete cascade,
  code_hash      bytea constraint oauth_authorizations_code_hash_key unique check (octet_length(code_hash) = 32),
  signed_in_at   timestamptz,
  session_id     uuid references auth.token_sessions on delete set null,
  used_at        timestamptz
);
create index on auth.oauth_authorizations (client_id);
create index on auth.oauth_authorizations (user_id);
create index on auth.oauth_authorizations (session_id);
create index on auth.oauth_authorizations (expires_at);
create index oauth_authorizations_of_nobody on auth.oauth_authorizations (created_at desc) where user_id is null;
alter table auth.oauth_authorizations enable row level security;
comment on table auth.oauth_authorizations is 'Requests of applications for access, for some minutes.';
comment on column auth.oauth_authorizations.challenge is 'SHA-256 of what only the application knows (PKCE, RFC 7636).';
comment on column auth.oauth_authorizations.asks_always is 'Whether the user is asked even if the same was granted before.';
comment on column auth.oauth_authorizations.user_id is 'The first user who has opened it: nobody else may decide.';
comment on column auth.oauth_authorizations.code_hash is 'SHA-256 of the code; null until the user has approved.';
comment on column auth.oauth_authorizations.signed_in_at is 'When the user who approved had signed in.';
comment on column auth.oauth_authorizations.session_id is 'The sign-in by tokens that the code was exchanged for.';
comment on column auth.oauth_authorizations.used_at is 'When the code was exchanged; another use of it ends that sign-in.';

-- Registered by themselves, and used by nobody: after a day, and beyond the bound.
create function auth.trim_oauth_clients() returns void as $$
begin
  delete from auth.oauth_clients where id in (
    select client.id from auth.oauth_clients as client
    where client.registration <> 'manual' and client.created_at < now() - interval '1 day'
      and not exists (select from auth.oauth_grants where oauth_grants.client_id = client.id)
    order by client.created_at limit 10 for update skip locked
  );
  if (select count(*) from (
    select from auth.oauth_clients where registration <> 'manual' limit content_service.bound('registered clients') + 1
  ) as counted) >= content_service.bound('registered clients') then
    delete from auth.oauth_clients where id in (
      select client.id from auth.oauth_clients as client
      where client.registration <> 'manual'
        and not exists (select from auth.oauth_grants where oauth_grants.client_id = client.id)
      order by client.created_at limit 1 for update skip locked
    );
    if not found then
      raise exception 'Too many applications are registered' using errcode = 'TOMNY', hint = 'Ask an administrator to register the application.';
    end if;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.trim_oauth_clients is 'Makes room for another application that registers itself.';

create function auth.save_oauth_client(client jsonb, secret_hash bytea, client_info auth.client_info) returns auth.oauth_clients as $$
declare
  v_new constant auth.oauth_clients := jsonb_populate_record(null::auth.oauth_clients, client);
  v_saved auth.oauth_clients;
begin
  if v_new.registration <> 'manual' and not exists (select from auth.oauth_clients where id = v_new.id) then
    perform auth.trim_oauth_clients();
  end if;
  insert into auth.oauth_clients as saved (
    id, name, uri, logo_uri, redirect_uris, grant_types, scope, auth_method, secret_hash, registration, fresh_until
  ) values (
    coalesce(v_new.id, gen_random_uuid()::text), v_new.name, v_new.uri, v_new.logo_uri, v_new.redirect_uris, v_new.grant_types,
    v_new.scope, v_new.auth_method, save_oauth_client.secret_hash, v_new.registration, v_new.fresh_until
  )
  on conflict on constraint oauth_clients_pkey do update set
    name = excluded.name, uri = excluded.uri, logo_uri = excluded.logo_uri, redirect_uris = excluded.redirect_uris,
    grant_types = excluded.grant_types, scope = excluded.scope, auth_method = excluded.auth_method, secret_hash = excluded.secret_hash,
    updated_at = now(), fresh_until = excluded.fresh_until
    where saved.registration = excluded.registration
  returning * into v_saved;
  if v_saved.registration <> 'document' then
    perform auth.log_event('oauth_client.saved', null, client_info, jsonb_build_object('client', v_saved.id));
  end if;
  return v_saved;
end;
$$ language plpgsql set search_path = '';
comment on function auth.save_oauth_client is 'Registers an application, or replaces what is known of the one with this id. Its secret is null for one without.';

create function auth.end_oauth_sessions(session_ids uuid[]) returns void as $$
  update auth.refresh_tokens as token set revoked_at = now()
  where token.family_id = any (session_ids) and token.revoked_at is null;
$$ language sql set search_path = '';
comment on function auth.end_oauth_sessions is 'Ends sign-ins that applications hold, and their access tokens within seconds.';

create function auth.remove_oauth_client(id text, client_info auth.client_info) returns boolean as $$
begin
  perform auth.end_oauth_sessions(array(
    select session.session_id from auth.oauth_sessions as session
    join auth.oauth_grants as granted on granted.id = session.grant_id where granted.client_id = remove_oauth_client.id
  ));
  delete from auth.oauth_clients where oauth_clients.id = remove_oauth_client.id;
  if not found then
    return false;
  end if;
  perform auth.log_event('oauth_client.removed', null, client_info, jsonb_build_object('client', remove_oauth_client.id));
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.remove_oauth_client is 'Removes an application, and ends what was granted to it. False: there is none.';

create function auth.begin_oauth_authorization(authorization_request jsonb, seconds integer) returns uuid as $$
declare
  v_new constant auth.oauth_authorizations := jsonb_populate_record(null::auth.oauth_authorizations, authorization_request);
  v_id uuid;
begin
  delete from auth.oauth_authorizations as expired where expired.id in (
    select old.id from auth.oauth_authorizations as old where old.expires_at < now()
    order by old.expires_at limit 10 for update skip locked
  );
  delete from auth.oauth_authorizations as oldest where oldest.id in (
    select old.id from auth.oauth_authorizations as old where old.user_id is null
    order by old.created_at desc offset content_service.bound('rows of auth.oauth_authorizations') - 1 limit 10 for update skip locked
  );
  insert into auth.oauth_authorizations (client_id, redirect_uri, scopes, resource, challenge, state, nonce, asks_always, expires_at)
    values (
      v_new.client_id, v_new.redirect_uri, v_new.scopes, v_new.resource, v_new.challenge, v_new.state, v_new.nonce,
      coalesce(v_new.asks_always, false), now() + make_interval(secs => seconds)
    ) returning id into v_id;
  return v_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_oauth_authorization is 'Stores the request of an application for access, until the user has decided.';

-- A user who opens it binds it, so that nobody else can be made to approve what this user has begun, or the other way round.
create function auth.open_oauth_authorization(id uuid, user_id bigint)
returns table (request auth.oauth_authorizations, client auth.oauth_clients, is_granted boolean) as $$
declare
  v_request auth.oauth_authorizations;
begin
  update auth.oauth_authorizations as opened set user_id = open_oauth_authorization.user_id
    where opened.id = open_oauth_authorization.id and opened.expires_at > now() and opened.code_hash is null
      and (opened.user_id is null or opened.user_id = open_oauth_authorization.user_id)
    returning * into v_request;
  return query
    select v_request, asking, not v_request.asks_always and asking.registration = 'manual' and asking.auth_method <> 'none' and exists (
      select from auth.oauth_grants as granted
      where granted.user_id = v_request.user_id and granted.client_id = v_request.client_id and granted.resource = v_request.resource
        and granted.scopes @> v_request.scopes and granted.expires_at > now()
    )
    from auth.oauth_clients as asking where asking.id = v_request.client_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.open_oauth_authorization is 'A request for access that this user may decide about, and whether the same was granted before to an application that keeps a secret. No row: none, or somebody else''s.';

create function auth.approve_oauth_authorization(
  id uuid, user_id bigint, signed_in_at timestamptz, code_hash bytea, seconds integer, grant_days integer, client_info auth.client_info
) returns boolean as $$
declare
  v_account constant auth.users := auth.lock_account(approve_oauth_authorization.user_id);
  v_request auth.oauth_authorizations;
  v_now constant timestamptz := clock_timestamp();
begin
  if v_account.user_id is null or auth.is_disabled(v_account) or v_account.is_anonymous then
    return false;
  end if;
  update auth.oauth_authorizations as approved set
      code_hash = approve_oauth_authorization.code_hash, signed_in_at = approve_oauth_authorization.signed_in_at,
      expires_at = v_now + make_interval(secs => seconds)
    where approved.id = approve_oauth_authorization.id and approved.user_id = approve_oauth_authorization.user_id
      and approved.code_hash is null and approved.expires_at > v_now
    returning * into v_request;
  if not found then
    return false;
  end if;
  delete from auth.oauth_grants as ended where ended.user_id = v_account.user_id and ended.expires_at < v_now;
  insert into auth.oauth_grants as granted (user_id, client_id, scopes, resource, granted_at, expires_at)
    values (
      v_account.user_id, v_request.client_id, v_request.scopes, v_request.resource, v_now, v_now + make_interval(days => grant_days)
    )
    on conflict on constraint oauth_grants_user_id_client_id_key do update set
      scopes = excluded.scopes, resource = excluded.resource, granted_at = excluded.granted_at, expires_at = excluded.expires_at;
  if (select count(*) from auth.oauth_grants as granted where granted.user_id = v_account.user_id) > content_service.bound('grants of a user') then
    raise exception 'Too many applications have access to your account' using errcode = 'TOMNY',
      hint = 'Withdraw the access of those that you no longer use.';
  end if;
  perform auth.log_event('oauth.granted', v_account.user_id, client_info, jsonb_build_object(
    'client', v_request.client_id, 'scopes', to_jsonb(v_request.scopes), 'resource', v_request.resource
  ));
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.approve_oauth_authorization is 'Grants what the application has requested, and stores the code for it. False: there is no such request of this user, or the account may not grant.';

create function auth.deny_oauth_authorization(id uuid, user_id bigint) returns boolean as $$
begin
  delete from auth.oauth_authorizations as denied
    where denied.id = deny_oauth_authorization.id and denied.user_id = deny_oauth_authorization.user_id and denied.code_hash is null;
  return found;
end;
$$ language plpgsql set search_path = '';
comment on function auth.deny_oauth_authorization is 'Ends a request for access. False: there is no such request of this user.';

-- A code that is used again was stolen: whoever used it first loses the tokens. A wrong verifier, client or address uses nothing up.
create function auth.exchange_oauth_code(
  code_hash bytea, client_id text, redirect_uri text, challenge text, token_hash bytea, client_info auth.client_info,
  out outcome text, out claims jsonb, out session auth.oauth_sessions, out expires_at timestamptz, out nonce text, out signed_in_at timestamptz
) as $$
declare
  v_request auth.oauth_authorizations;
  v_grant auth.oauth_grants;
  v_account auth.users;
begin
  select request.user_id into v_account.user_id
    from auth.oauth_authorizations as request where request.code_hash = exchange_oauth_code.code_hash;
  v_account := auth.lock_account(v_account.user_id);
  select * into v_request
    from auth.oauth_authorizations as request where request.code_hash = exchange_oauth_code.code_hash for update;
  select * into v_grant from auth.oauth_grants as granted
    where granted.user_id = v_request.user_id and granted.client_id = v_request.client_id and granted.expires_at > clock_timestamp();
  outcome := case
    when v_request.id is null or v_request.client_id <> exchange_oauth_code.client_id or v_account.user_id is null then 'absent'
    when v_request.used_at is not null then 'reused'
    when v_request.expires_at <= clock_timestamp() or v_grant.id is null or auth.is_disabled(v_account) then 'ended'
    when v_request.redirect_uri is distinct from exchange_oauth_code.redirect_uri then 'redirect'
    when v_request.challenge is distinct from exchange_oauth_code.challenge then 'verifier'
    else 'passed'
  end;
  if outcome = 'reused' then
    perform auth.end_oauth_sessions(array[v_request.session_id]);
    perform auth.log_event('oauth.code_reused', v_account.user_id, client_info, jsonb_build_object('client', v_request.client_id));
  elsif outcome = 'passed' then
    expires_at := v_grant.expires_at;
    claims := auth.open_tokens(
      v_account.user_id, exchange_oauth_code.token_hash, greatest(1, extract(epoch from expires_at - clock_timestamp()))::integer,
      client_info, array['oauth_provider/authorization_code'], case when auth.has_factor(v_account.user_id) then 2 else 1 end::smallint, true
    );
    insert into auth.oauth_sessions (session_id, grant_id, scopes, resource)
      values ((claims ->> 'session_id')::uuid, v_grant.id, v_request.scopes, v_request.resource) returning * into session;
    perform auth.end_oauth_sessions(array(
      select held.session_id from auth.oauth_sessions as held join auth.token_sessions as kept on kept.id = held.session_id
      where held.grant_id = v_grant.id order by kept.refreshed_at desc offset content_service.bound('sign-ins of a grant')
    ));
    update auth.oauth_authorizations as used set used_at = clock_timestamp(), session_id = session.session_id where used.id = v_request.id;
    nonce := v_request.nonce;
    signed_in_at := v_request.signed_in_at;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.exchange_oauth_code is 'Exchanges the code of an application for a sign-in by tokens, whose access is restricted: passed, or why not.';

create function auth.refresh_oauth_tokens(
  token_hash bytea, next_hash bytea, client_id text, client_info auth.client_info,
  out outcome text, out claims jsonb, out session auth.oauth_sessions, out expires_at timestamptz
) as $$
begin
  select held.*, granted.expires_at into session.session_id, session.grant_id, session.scopes, session.resource, expires_at
    from auth.refresh_tokens as token
    join auth.oauth_sessions as held on held.session_id = token.family_id
    join auth.oauth_grants as granted on granted.id = held.grant_id
    where token.token_hash = refresh_oauth_tokens.token_hash and granted.client_id = refresh_oauth_tokens.client_id;
  if not found or expires_at <= clock_timestamp() then
    outcome := 'ended';
    return;
  end if;
  select rotated.outcome, rotated.claims into refresh_oauth_tokens.outcome, refresh_oauth_tokens.claims
    from auth.rotate_refresh_token(
      refresh_oauth_tokens.token_hash, next_hash, greatest(1, extract(epoch from expires_at - clock_timestamp()))::integer, null, client_info
    ) as rotated;
end;
$$ language plpgsql set search_path = '';
comment on function auth.refresh_oauth_tokens is 'Exchanges the refresh token of an application: rotated; reused, which ends the sign-in; or ended.';

create function auth.find_oauth_session(client_id text, token_hash bytea, session_id uuid)
returns table (session auth.oauth_sessions, user_id bigint, issued_at timestamptz, expires_at timestamptz)
language sql stable
begin atomic
  select held, granted.user_id, token.issued_at, least(token.expires_at, granted.expires_at)
  from auth.oauth_sessions as held
  join auth.oauth_grants as granted on granted.id = held.grant_id
  join auth.refresh_tokens as token on token.family_id = held.session_id
  join auth.users as account on account.user_id = granted.user_id
  where granted.client_id = find_oauth_session.client_id and granted.expires_at > now() and not auth.is_disabled(account)
    and token.rotated_at is null and token.revoked_at is null and token.expires_at > now()
    and (token.token_hash = find_oauth_session.token_hash or held.session_id = find_oauth_session.session_id)
  limit 1;
end;
comment on function auth.find_oauth_session is 'The live sign-in of an application with this refresh token, or of this id.';

create function auth.revoke_oauth_token(client_id text, token_hash bytea, session_id uuid, client_info auth.client_info) returns void as $$
declare
  v_session_id uuid;
  v_user_id bigint;
begin
  select held.session_id, granted.user_id into v_session_id, v_user_id
    from auth.oauth_sessions as held
    join auth.oauth_grants as granted on granted.id = held.grant_id
    join auth.refresh_tokens as token on token.family_id = held.session_id
    where granted.client_id = revoke_oauth_token.client_id
      and (token.token_hash = revoke_oauth_token.token_hash or held.session_id = revoke_oauth_token.session_id)
    limit 1;
  if found then
    perform auth.lock_account(v_user_id);
    perform auth.end_oauth_sessions(array[v_session_id]);
    perform auth.log_event('oauth.revoked', v_user_id, client_info, jsonb_build_object('client', client_id));
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.revoke_oauth_token is 'Ends the sign-in of an application that one of its tokens belongs to; an unknown token is none.';

create function auth.list_oauth_grants(user_id bigint)
returns table (granted auth.oauth_grants, client auth.oauth_clients, last_used_at timestamptz)
language sql stable
begin atomic
  select granted, client, (
    select max(used.refreshed_at) from auth.oauth_sessions as held
    join auth.token_sessions as used on used.id = held.session_id where held.grant_id = granted.id
  )
  from auth.oauth_grants as granted join auth.oauth_clients as client on client.id = granted.client_id
  where granted.user_id = list_oauth_grants.user_id and granted.expires_at > now()
  order by granted.granted_at desc;
end;
comment on function auth.list_oauth_grants is 'What a user has granted to applications.';

create function auth.withdraw_oauth_grant(user_id bigint, client_id text, client_info auth.client_info) returns boolean as $$
begin
  perform auth.lock_account(withdraw_oauth_grant.user_id);
  perform auth.end_oauth_sessions(array(
    select held.session_id from auth.oauth_sessions as held join auth.oauth_grants as granted on granted.id = held.grant_id
    where granted.user_id = withdraw_oauth_grant.user_id and granted.client_id = withdraw_oauth_grant.client_id
  ));
  delete from auth.oauth_authorizations as pending
    where pending.user_id = withdraw_oauth_grant.user_id and pending.client_id = withdraw_oauth_grant.client_id;
  delete from auth.oauth_grants as granted
    where granted.user_id = withdraw_oauth_grant.user_id and granted.client_id = withdraw_oauth_grant.client_id;
  if not found then
    return false;
  end if;
  perform auth.log_event(
    'oauth.withdrawn', withdraw_oauth_grant.user_id, client_info, jsonb_build_object('client', withdraw_oauth_grant.client_id)
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.withdraw_oauth_grant is 'Ends what a user has granted to an application. False: nothing was granted.';

create function auth.tg_users__end_oauth_codes() returns trigger as $$
begin
  delete from auth.oauth_authorizations as pending
    where pending.user_id = new.user_id and pending.code_hash is not null and pending.used_at is null;
  return null;
end;
$$ language plpgsql set search_path = '';
comment on function auth.tg_users__end_oauth_codes is 'After update: codes that wait to be exchanged end with the user''s tokens.';
create trigger _200_end_oauth_codes after update of tokens_valid_from on auth.users
  for each row when (old.tokens_valid_from is distinct from new.tokens_valid_from) execute function auth.tg_users__end_oauth_codes();

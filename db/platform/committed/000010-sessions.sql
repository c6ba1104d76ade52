--! Previous: sha1:84694dcccd089e5621e194934fee3ed0b20525a5
--! Hash: sha1:9cc108155c57997c866bd36f9dfce768fa136370

-- Sign-ins of browsers: one session per user. It ends after some idle time, and after some hours in any case. The cookie holds the
-- session's id, the table only its SHA-256: the table cannot be used to sign in.
create table auth.sessions (
  id_hash         bytea primary key check (octet_length(id_hash) = 32),
  -- A new session replaces the old one.
  user_id         bigint not null unique references auth.users on delete cascade,
  created_at      timestamptz not null default now(),
  last_used_at    timestamptz not null default now(),
  idle_expires_at timestamptz not null,
  expires_at      timestamptz not null check (expires_at > created_at),
  address         inet,
  user_agent      text
);
alter table auth.sessions add constraint sessions_user_agent_max_length check (length(user_agent) <= 500) not valid;
create index on auth.sessions (least(idle_expires_at, expires_at));
alter table auth.sessions enable row level security;
comment on table auth.sessions is 'Sign-ins of browsers, by cookie.';
comment on column auth.sessions.created_at is 'When the user signed in.';
comment on column auth.sessions.idle_expires_at is 'When it ends without requests; each request moves it.';
comment on column auth.sessions.expires_at is 'When it ends, even if it is in use.';

create function auth.open_session(
  user_id bigint, id_hash bytea, idle_seconds integer, seconds integer, client_info auth.client_info, out username text, out claims jsonb
) as $$
begin
  delete from auth.sessions where sessions.user_id = open_session.user_id;
  insert into auth.sessions (id_hash, user_id, idle_expires_at, expires_at, address, user_agent)
    values (
      open_session.id_hash, open_session.user_id, now() + make_interval(secs => idle_seconds),
      now() + make_interval(secs => open_session.seconds), client_info.address, client_info.user_agent
    );
  perform auth.log_event('session.created', open_session.user_id, client_info);
  delete from auth.sessions as expired where expired.id_hash in (
    select sessions.id_hash from auth.sessions where least(idle_expires_at, expires_at) < now()
    order by least(idle_expires_at, expires_at) limit 10 for update skip locked
  );
  update auth.users as account set last_sign_in_at = now()
    where account.user_id = open_session.user_id returning account.username into username;
  claims := auth.claims_of(open_session.user_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.open_session is 'Creates a session and ends the previous one. The caller has locked the account.';

-- Extends the session at most four times a minute, to save writes.
create function auth.use_session(id_hash bytea, idle_seconds integer)
returns table (user_id bigint, username text, claims jsonb, signed_in_at timestamptz, expires_at timestamptz)
language sql
begin atomic
  with live as (
    select session.id_hash, session.user_id, account.username, session.created_at, session.expires_at
    from auth.sessions as session join auth.users as account on account.user_id = session.user_id
    where session.id_hash = use_session.id_hash and least(session.idle_expires_at, session.expires_at) > now()
      and not auth.is_disabled(account)
  ), moved as (
    update auth.sessions as session
    set last_used_at = now(), idle_expires_at = now() + make_interval(secs => use_session.idle_seconds)
    where session.id_hash in (
      select sessions.id_hash from auth.sessions
      where sessions.id_hash in (select live.id_hash from live)
        and sessions.last_used_at < now() - interval '15 seconds'
      for no key update skip locked
    )
  )
  select live.user_id, live.username, auth.claims_of(live.user_id), live.created_at, live.expires_at
  from live;
end;
comment on function auth.use_session is 'The user and claims of a session. No row: it has ended.';

create function auth.live_sessions(id_hashes bytea[]) returns setof bytea
language sql stable
begin atomic
  select sessions.id_hash from auth.sessions
  where sessions.id_hash = any (live_sessions.id_hashes) and least(sessions.idle_expires_at, sessions.expires_at) > now();
end;
comment on function auth.live_sessions is 'Those of these sessions that have not ended; does not extend them.';

create function auth.close_session(id_hash bytea, client_info auth.client_info) returns void as $$
declare
  v_user_id bigint;
begin
  delete from auth.sessions where sessions.id_hash = close_session.id_hash returning user_id into v_user_id;
  if found then
    perform auth.log_event('session.closed', v_user_id, client_info);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.close_session is 'Signs the browser out.';

-- Sign-ins of programs. Each is a family of refresh tokens with one valid token at a time; each refresh rotates it. When a rotated token
-- is used again it was stolen, or the response was lost: the whole family is revoked, unless the same Idempotency-Key retries at once.
create table auth.token_sessions (
  id              uuid primary key,
  user_id         bigint not null references auth.users on delete cascade,
  created_at      timestamptz not null default now(),
  refreshed_at    timestamptz not null default now(),
  aal             smallint not null default 1 check (aal between 1 and 3),
  amr             jsonb not null default '[]' check (jsonb_typeof(amr) = 'array'),
  address         inet,
  user_agent      text constraint token_sessions_user_agent_max_length check (length(user_agent) <= 500),
  tag             text constraint token_sessions_tag_max_length check (length(tag) <= 200),
  factor_id       uuid references auth.mfa_factors on delete set null,
  requires_factor boolean not null default false,
  kept_at         timestamptz
);
create index on auth.token_sessions (user_id);
create index on auth.token_sessions (refreshed_at);
create index token_sessions_of_factor on auth.token_sessions (factor_id);
alter table auth.token_sessions enable row level security;
comment on table auth.token_sessions is 'Sign-ins by tokens: one row per family of refresh tokens.';
comment on column auth.token_sessions.id is 'The claim session_id, and the family_id of the refresh tokens.';
comment on column auth.token_sessions.aal is 'The authenticator assurance level: 2 after a second factor.';
comment on column auth.token_sessions.amr is 'How the user signed in: [{"method": "password", "timestamp": 1700000000}], the latest first.';
comment on column auth.token_sessions.factor_id is 'The second factor that was proved.';
comment on column auth.token_sessions.requires_factor is 'The account requires a second factor that this sign-in has not proved yet: until then, its tokens act at /auth/v1 only.';
comment on column auth.token_sessions.kept_at is 'The end of all access tokens of the user (tokens_valid_from) that this sign-in was exempted from; null if there was none.';

create table auth.refresh_tokens (
  token_hash           bytea primary key check (octet_length(token_hash) = 32),
  family_id            uuid not null references auth.token_sessions on delete cascade,
  user_id              bigint not null references auth.users on delete cascade,
  issued_at            timestamptz not null default now(),
  expires_at           timestamptz not null check (expires_at > issued_at),
  rotated_at           timestamptz,
  revoked_at           timestamptz,
  idempotency_key_hash bytea check (octet_length(idempotency_key_hash) = 32),
  sealed_answer        bytea,
  sealed_until         timestamptz,
  signed_in_at         timestamptz,
  address              inet,
  user_agent           text,
  constraint refresh_tokens_retry check (
    num_nulls(idempotency_key_hash, sealed_answer, sealed_until) in (0, 3)
    and (sealed_answer is null or rotated_at is not null)
  )
);
alter table auth.refresh_tokens add constraint refresh_tokens_user_agent_max_length check (length(user_agent) <= 500) not valid;
create index on auth.refresh_tokens (family_id);
create index on auth.refresh_tokens (user_id);
create index on auth.refresh_tokens (expires_at);
alter table auth.refresh_tokens enable row level security;
comment on table auth.refresh_tokens is 'Refresh tokens, as SHA-256 only, kept until they expire so that a reused one is recognised.';
comment on column auth.refresh_tokens.rotated_at is 'When it was exchanged for its successor; since then it is spent.';
comment on column auth.refresh_tokens.revoked_at is 'When it was ended by logout, or with its family.';
comment on column auth.refresh_tokens.sealed_answer is 'The pair it was exchanged for, encrypted with a key that only the bearer of this token can derive.';
comment on column auth.refresh_tokens.sealed_until is 'Until when the same Idempotency-Key receives the same pair.';
comment on column auth.refresh_tokens.signed_in_at is 'When its family was started; null if it was stored by an earlier version.';

create function auth.amr_entry(method text, at timestamptz) returns jsonb
language sql immutable
return jsonb_build_object('method', method, 'timestamp', floor(extract(epoch from at))::bigint);
comment on function auth.amr_entry is 'An entry of the claim amr: how the user signed in, and when.';

create function auth.add_session_method(user_id bigint, session_id uuid, method text, aal smallint) returns boolean as $$
begin
  update auth.token_sessions as session set
      aal = greatest(session.aal, add_session_method.aal),
      amr = auth.amr_entry(method, clock_timestamp()) || (
        select coalesce(jsonb_agg(entry), '[]') from jsonb_array_elements(session.amr) as entry
        where entry ->> 'method' <> add_session_method.method
      )
    where session.id = add_session_method.session_id and session.user_id = add_session_method.user_id;
  return found;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_session_method is 'Adds how the user proved to be that user, such as totp, to a sign-in by tokens, and raises its level. The caller has locked the account.';

-- Each call deletes a few sign-ins whose tokens have all expired, and with them the tokens.
create function auth.add_refresh_token(user_id bigint, token_hash bytea, family_id uuid, seconds integer, client_info auth.client_info) returns jsonb as $$
begin
  update auth.token_sessions as session set
      refreshed_at = clock_timestamp(), address = client_info.address, user_agent = client_info.user_agent
    where session.id = add_refresh_token.family_id;
  insert into auth.refresh_tokens (token_hash, family_id, user_id, issued_at, expires_at, signed_in_at, address, user_agent)
    values (
      add_refresh_token.token_hash, add_refresh_token.family_id, add_refresh_token.user_id,
      clock_timestamp(), clock_timestamp() + make_interval(secs => seconds),
      (select session.created_at from auth.token_sessions as session where session.id = add_refresh_token.family_id),
      client_info.address, client_info.user_agent
    );
  delete from auth.refresh_tokens as expired where expired.token_hash in (
    select refresh_tokens.token_hash from auth.refresh_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  delete from auth.token_sessions as ended where ended.id in (
    select session.id from auth.token_sessions as session
    where session.refreshed_at < now() - make_interval(secs => seconds)
      and not exists (select from auth.refresh_tokens as token where token.family_id = session.id)
    order by session.refreshed_at limit 10 for update skip locked
  );
  return auth.session_claims(add_refresh_token.user_id, add_refresh_token.family_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_refresh_token is 'Stores a refresh token and returns the claims of the access token. The caller has locked the account.';

create function auth.open_tokens(
  user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info,
  methods text[] default '{}', aal smallint default 1, is_complete boolean default false
) returns jsonb as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_session_id constant uuid := gen_random_uuid();
begin
  perform auth.log_event('refresh_token.created', open_tokens.user_id, client_info);
  insert into auth.token_sessions (id, user_id, created_at, aal, amr, requires_factor)
    values (v_session_id, open_tokens.user_id, v_now, open_tokens.aal, (
      select coalesce(jsonb_agg(auth.amr_entry(method, v_now)), '[]') from unnest(open_tokens.methods) as method
    ), open_tokens.aal < 2 and not is_complete and auth.has_factor(open_tokens.user_id));
  update auth.users as account set last_sign_in_at = v_now where account.user_id = open_tokens.user_id;
  return auth.add_refresh_token(open_tokens.user_id, open_tokens.token_hash, v_session_id, seconds, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.open_tokens is 'Starts a sign-in by tokens and returns the claims of its first access token. The caller has locked the account.';

-- Not a reuse: the client, which has proved more by its access token, gets the next pair without presenting its refresh token.
create function auth.continue_tokens(user_id bigint, session_id uuid, token_hash bytea, seconds integer, client_info auth.client_info) returns jsonb as $$
begin
  update auth.refresh_tokens as token set rotated_at = clock_timestamp()
    where token.user_id = continue_tokens.user_id and token.family_id = session_id
      and token.rotated_at is null and token.revoked_at is null;
  if not found then
    return null;
  end if;
  return auth.add_refresh_token(
    continue_tokens.user_id, continue_tokens.token_hash, session_id, continue_tokens.seconds, client_info
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.continue_tokens is 'Replaces the refresh token of a sign-in and returns the claims of its next access token; null if it has ended. The caller has locked the account.';

-- Sign-ins by tokens that proved the password alone end: they may be those of somebody who knows no more.
create function auth.raise_session(user_id bigint, session_id uuid, factor auth.mfa_factors) returns boolean as $$
begin
  if not auth.add_session_method(
    raise_session.user_id, raise_session.session_id,
    case factor.factor_type when 'webauthn' then 'mfa/webauthn' else factor.factor_type end, 2::smallint
  ) then
    return false;
  end if;
  update auth.token_sessions as session set factor_id = factor.id, requires_factor = false
    where session.id = raise_session.session_id;
  update auth.refresh_tokens as token set revoked_at = now()
    from auth.token_sessions as session
    where session.user_id = raise_session.user_id and session.aal < 2
      and token.family_id = session.id and token.revoked_at is null;
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.raise_session is 'Raises a sign-in by tokens to level 2 and ends those of level 1. False: it has ended. The caller has locked the account.';

-- The user is read before the account is locked and the rest afterwards: meanwhile another request may have rotated the token or
-- revoked its family. With keeps_answers, the token that was rotated last stays valid until its successor is used: its client may have lost the
-- response. It then gets a successor of its own; both are rotated together by the next.
create function auth.rotate_refresh_token(
  token_hash bytea, next_hash bytea, seconds integer, retry_hash bytea, client_info auth.client_info,
  keeps_answers boolean default false, out outcome text, out claims jsonb, out sealed_answer bytea
) as $$
declare
  v_user_id bigint;
  v_account auth.users;
  v_token auth.refresh_tokens;
begin
  select refresh_tokens.user_id into v_user_id
    from auth.refresh_tokens where refresh_tokens.token_hash = rotate_refresh_token.token_hash;
  v_account := auth.lock_account(v_user_id);
  select * into v_token from auth.refresh_tokens where refresh_tokens.token_hash = rotate_refresh_token.token_hash;

  if v_token.token_hash is null or v_token.revoked_at is not null or v_token.expires_at <= clock_timestamp()
    or v_account.user_id is null or auth.is_disabled(v_account)
  then
    outcome := 'ended';
  elsif v_token.idempotency_key_hash = retry_hash and v_token.sealed_until > clock_timestamp() then
    outcome := 'repeated';
    sealed_answer := v_token.sealed_answer;
  elsif v_token.rotated_at is null or keeps_answers and not exists (
    select from auth.refresh_tokens as later where later.family_id = v_token.family_id and later.rotated_at > v_token.rotated_at
  ) then
    outcome := 'rotated';
    update auth.refresh_tokens as token
      set rotated_at = coalesce(v_token.rotated_at, clock_timestamp())
      where token.family_id = v_token.family_id and token.rotated_at is null;
    -- The bearer of this token has received the response that was sealed; others of its sign-in may not, where each may retry.
    update auth.refresh_tokens as earlier
      set idempotency_key_hash = null, sealed_answer = null, sealed_until = null
      where earlier.family_id = v_token.family_id and earlier.sealed_answer is not null
        and (not keeps_answers or earlier.sealed_until < clock_timestamp());
    claims := auth.add_refresh_token(v_user_id, next_hash, v_token.family_id, seconds, client_info);
  else
    outcome := 'reused';
    update auth.refresh_tokens as token set revoked_at = now()
      where token.family_id = v_token.family_id and token.revoked_at is null;
    perform auth.log_event('refresh_token.reused', v_user_id, client_info);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.rotate_refresh_token is 'Exchanges a refresh token: rotated; repeated for a retry; reused or ended otherwise.';

create function auth.store_retry_response(token_hash bytea, retry_hash bytea, sealed_answer bytea, seconds integer) returns void as $$
  update auth.refresh_tokens as token set
    idempotency_key_hash = store_retry_response.retry_hash,
    sealed_answer = store_retry_response.sealed_answer,
    sealed_until = clock_timestamp() + make_interval(secs => seconds)
  where token.token_hash = store_retry_response.token_hash;
$$ language sql set search_path = '';
comment on function auth.store_retry_response is 'Stores the pair that the token was exchanged for, in the same transaction, for a retry with the same Idempotency-Key.';

create function auth.revoke_refresh_tokens(user_id bigint, client_info auth.client_info) returns void as $$
begin
  perform auth.lock_account(revoke_refresh_tokens.user_id);
  update auth.refresh_tokens set revoked_at = now()
    where refresh_tokens.user_id = revoke_refresh_tokens.user_id and revoked_at is null;
  perform auth.log_event('refresh_tokens.revoked', revoke_refresh_tokens.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.revoke_refresh_tokens is 'Ends all sign-ins of the user by tokens.';

create function auth.has_second_factor_session(user_id bigint, session_id uuid) returns boolean
language sql stable
begin atomic
  select exists (
    select from auth.token_sessions as session
    where session.id = has_second_factor_session.session_id and session.user_id = has_second_factor_session.user_id
      and session.aal >= 2
  );
end;
comment on function auth.has_second_factor_session is 'Whether this sign-in by tokens has proved a second factor.';

create function auth.has_token_session(user_id bigint, session_id uuid) returns boolean
language sql stable
return exists (
  select from auth.refresh_tokens as token
  where token.family_id = has_token_session.session_id and token.user_id = has_token_session.user_id
    and token.rotated_at is null and token.revoked_at is null and token.expires_at > now()
);
comment on function auth.has_token_session is 'Whether this sign-in by tokens of the user has not ended.';

-- Those that are unknown are not listed: another issuer that shares the keys may name any session.
create function auth.ended_token_sessions(session_ids uuid[]) returns setof uuid
language sql stable
begin atomic
  select distinct token.family_id from auth.refresh_tokens as token
  where token.family_id = any (ended_token_sessions.session_ids) and token.revoked_at is not null;
end;
comment on function auth.ended_token_sessions is 'Those of these sign-ins by tokens that were ended.';

create function auth.kept_token_sessions(session_ids uuid[]) returns table (id uuid, kept_at bigint)
language sql stable
begin atomic
  select session.id, extract(epoch from session.kept_at)::bigint from auth.token_sessions as session
  where session.id = any (kept_token_sessions.session_ids) and session.kept_at is not null;
end;
comment on function auth.kept_token_sessions is 'Those of these sign-ins by tokens that were kept when the others of the user ended, and the moment.';

create function auth.list_sign_ins(user_id bigint, id_hash bytea) returns table (
  family_id uuid, is_current boolean, signed_in_at timestamptz, last_used_at timestamptz, address inet, user_agent text
)
language sql stable
begin atomic
  select null::uuid, sessions.id_hash = list_sign_ins.id_hash, sessions.created_at, sessions.last_used_at,
    sessions.address, sessions.user_agent
  from auth.sessions
  where sessions.user_id = list_sign_ins.user_id and least(sessions.idle_expires_at, sessions.expires_at) > now()
  union all
  (
    select token.family_id, false, coalesce(token.signed_in_at, token.issued_at), token.issued_at, token.address, token.user_agent
    from auth.refresh_tokens as token
    where token.user_id = list_sign_ins.user_id and token.rotated_at is null and token.revoked_at is null
      and token.expires_at > now()
    order by token.issued_at desc
    limit 100
  );
end;
comment on function auth.list_sign_ins is 'Where a user is signed in: the session of a browser, without family_id, and families of refresh tokens, of which the newest 100.';

create function auth.end_sign_ins(user_id bigint, kept_session uuid default null) returns void as $$
begin
  perform auth.end_access_tokens(end_sign_ins.user_id);
  delete from auth.sessions where sessions.user_id = end_sign_ins.user_id;
  update auth.refresh_tokens as token set revoked_at = now()
    where token.user_id = end_sign_ins.user_id and token.revoked_at is null and token.family_id is distinct from kept_session;
  update auth.token_sessions as session set kept_at = account.tokens_valid_from
    from auth.users as account
    where session.id = kept_session and session.user_id = end_sign_ins.user_id and account.user_id = session.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_sign_ins is 'Ends all sign-ins of the user, except one by tokens. The caller has locked the account.';

-- Access tokens name no family, so all of the user's end: other clients refresh theirs.
create function auth.end_token_family(user_id bigint, family_id uuid, client_info auth.client_info) returns boolean as $$
begin
  perform auth.lock_account(end_token_family.user_id);
  update auth.refresh_tokens as token set revoked_at = now()
    where token.user_id = end_token_family.user_id and token.family_id = end_token_family.family_id
      and token.revoked_at is null;
  if not found then
    return false;
  end if;
  perform auth.end_access_tokens(end_token_family.user_id);
  perform auth.log_event('refresh_token.revoked', end_token_family.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_token_family is 'Ends one sign-in by tokens of that user. False: the user has no such sign-in.';

create function auth.end_other_sign_ins(user_id bigint, id_hash bytea, client_info auth.client_info) returns void as $$
begin
  perform auth.revoke_refresh_tokens(end_other_sign_ins.user_id, client_info);
  perform auth.end_access_tokens(end_other_sign_ins.user_id);
  delete from auth.sessions
    where sessions.user_id = end_other_sign_ins.user_id and sessions.id_hash <> end_other_sign_ins.id_hash;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_other_sign_ins is 'Ends all sign-ins of the user except this session.';

create function auth.sign_out(user_id bigint, session_id uuid, scope text, client_info auth.client_info) returns void as $$
begin
  perform auth.lock_account(sign_out.user_id);
  if scope = 'local' then
    update auth.refresh_tokens as token set revoked_at = now()
      where token.user_id = sign_out.user_id and token.revoked_at is null and token.family_id = sign_out.session_id;
  else
    perform auth.end_sign_ins(sign_out.user_id, case scope when 'others' then session_id end);
  end if;
  perform auth.log_event('account.signed_out', sign_out.user_id, client_info, jsonb_build_object('scope', scope));
end;
$$ language plpgsql set search_path = '';
comment on function auth.sign_out is 'Ends sign-ins of the user: all (global), this one by tokens (local), or all except this one (others).';

--! Previous: sha1:a4a4a8ed36f0e917a4f29c7e5d574f2bd7e47910
--! Hash: sha1:266d83bb7798bb9dfbc7988830373a65257d2fb3
--! Message: sessions

-- One session per user. It ends after some idle time, and after some hours in any case. The cookie holds the session's id, the
-- table only its SHA-256: the table cannot be used to sign in.
create table auth.sessions (
  id_hash         bytea primary key check (octet_length(id_hash) = 32),
  -- A new session replaces the old one.
  user_id         bigint not null unique,
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

--! Included auth/open_session.sql
create or replace function auth.open_session(
  user_id bigint, id_hash bytea, idle_seconds integer, seconds integer, client_info auth.client_info,
  out username text, out claims jsonb
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
  select credentials.username into username from auth.credentials where credentials.user_id = open_session.user_id;
  claims := auth.claims_of(open_session.user_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.open_session is
  'Creates a session and ends the previous one. The caller has locked the account.';
--! EndIncluded auth/open_session.sql
--! Included auth/live_sessions.sql
create or replace function auth.live_sessions(id_hashes bytea[]) returns setof bytea
language sql stable
begin atomic
  select sessions.id_hash from auth.sessions
  where sessions.id_hash = any (live_sessions.id_hashes) and least(sessions.idle_expires_at, sessions.expires_at) > now();
end;

comment on function auth.live_sessions is 'Those of these sessions that have not ended; does not extend them.';
--! EndIncluded auth/live_sessions.sql
--! Included auth/close_session.sql
create or replace function auth.close_session(id_hash bytea, client_info auth.client_info) returns void as $$
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
--! EndIncluded auth/close_session.sql

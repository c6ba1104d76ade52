--! Previous: sha1:8a033d1d070089127a7a84b6b63d4a85782ba95a
--! Hash: sha1:3b15c491b579859363edd18d821133c85a8cc44c
--! Message: session_rules

--! split: 0040-sessions.sql
-- The rules of sessions: one per user, which ends when nothing happens for a while, and after some hours in any case.
--! Included auth/open_session.sql
create or replace function auth.open_session(
  user_id bigint, id_hash bytea, idle_seconds integer, seconds integer, sender auth.sender,
  out username text, out claims jsonb
) as $$
begin
  delete from auth.sessions where sessions.user_id = open_session.user_id;
  insert into auth.sessions (id_hash, user_id, idle_expires_at, expires_at, address, user_agent)
    values (
      open_session.id_hash, open_session.user_id, now() + make_interval(secs => idle_seconds),
      now() + make_interval(secs => open_session.seconds), sender.address, sender.user_agent
    );
  perform auth.log_event('session.created', open_session.user_id, sender);
  delete from auth.sessions as expired where expired.id_hash in (
    select sessions.id_hash from auth.sessions where least(idle_expires_at, expires_at) < now()
    order by least(idle_expires_at, expires_at) limit 10 for update skip locked
  );
  select credentials.username into username from auth.credentials where credentials.user_id = open_session.user_id;
  claims := auth.claims_of(open_session.user_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.open_session is 'A new session, in the place of the one the user had. The account is held.';
--! EndIncluded auth/open_session.sql
--! Included auth/use_session.sql
-- The end is moved at most four times a minute, so that a busy page is not written all the time.
create or replace function auth.use_session(id_hash bytea, idle_seconds integer)
returns table (user_id bigint, username text, claims jsonb, signed_in_at timestamptz, expires_at timestamptz)
language sql
begin atomic
  with living as (
    select session.id_hash, session.user_id, credentials.username, session.created_at, session.expires_at
    from auth.sessions as session join auth.credentials on credentials.user_id = session.user_id
    where session.id_hash = use_session.id_hash and least(session.idle_expires_at, session.expires_at) > now()
      and credentials.disabled_at is null
  ), moved as (
    update auth.sessions as session
    set last_used_at = now(), idle_expires_at = now() + make_interval(secs => use_session.idle_seconds)
    where session.id_hash in (
      select sessions.id_hash from auth.sessions
      where sessions.id_hash in (select living.id_hash from living)
        and sessions.last_used_at < now() - interval '15 seconds'
      for no key update skip locked
    )
  )
  select living.user_id, living.username, auth.claims_of(living.user_id), living.created_at, living.expires_at
  from living;
end;

comment on function auth.use_session is 'Whose session that is, and what a credential of that user says. No row: it has ended.';
--! EndIncluded auth/use_session.sql
--! Included auth/close_session.sql
create or replace function auth.close_session(id_hash bytea, sender auth.sender) returns void as $$
declare
  v_user_id bigint;
begin
  delete from auth.sessions where sessions.id_hash = close_session.id_hash returning user_id into v_user_id;
  if found then
    perform auth.log_event('session.closed', v_user_id, sender);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.close_session is 'Signs the browser out.';
--! EndIncluded auth/close_session.sql

-- Extends the session at most four times a minute, to save writes.
create or replace function auth.use_session(id_hash bytea, idle_seconds integer)
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

create or replace function auth.live_sessions(id_hashes bytea[]) returns setof bytea
language sql stable
begin atomic
  select sessions.id_hash from auth.sessions
  where sessions.id_hash = any (live_sessions.id_hashes) and least(sessions.idle_expires_at, sessions.expires_at) > now();
end;

comment on function auth.live_sessions is 'Those of these sessions that have not ended; does not extend them.';

--! Previous: sha1:1ef5e54711452ded08b0bb98a4e90a7f5c0fbeaf
--! Hash: sha1:6ae00c9da97d9a939acfce8e1ba4c4961fe20162
--! Message: session_ends

--! split: 1-current.sql
-- Sockets stay open: whether the session that they were opened by has ended is asked without using it.
--! Included auth/living_sessions.sql
create or replace function auth.living_sessions(id_hashes bytea[]) returns setof bytea
language sql stable
begin atomic
  select sessions.id_hash from auth.sessions
  where sessions.id_hash = any (living_sessions.id_hashes) and least(sessions.idle_expires_at, sessions.expires_at) > now();
end;

comment on function auth.living_sessions is 'Those of these sessions that have not ended; asking is no use of them.';
--! EndIncluded auth/living_sessions.sql

-- What an administrator does to somebody else's account or key is logged with who did it.
alter type auth.sender add attribute actor bigint;
comment on type auth.sender is 'Where a request came from, and who made it where that is not the user whom it is about.';
--! Included auth/log_event.sql
create or replace function auth.log_event(
  event text, user_id bigint, sender auth.sender, details jsonb default '{}'
) returns void as $$
  insert into auth.audit_log (event, user_id, address, request_id, details)
  values (
    log_event.event, log_event.user_id, (log_event.sender).address, (log_event.sender).request_id,
    jsonb_strip_nulls(jsonb_build_object('user_agent', (log_event.sender).user_agent, 'by', (log_event.sender).actor))
      || log_event.details
  );
$$ language sql set search_path = '';
comment on function auth.log_event is 'Writes the audit log, in the transaction of what it tells.';
--! EndIncluded auth/log_event.sql

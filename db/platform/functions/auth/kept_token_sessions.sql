create or replace function auth.kept_token_sessions(session_ids uuid[]) returns table (id uuid, kept_at bigint)
language sql stable
begin atomic
  select session.id, extract(epoch from session.kept_at)::bigint from auth.token_sessions as session
  where session.id = any (kept_token_sessions.session_ids) and session.kept_at is not null;
end;

comment on function auth.kept_token_sessions is
  'Those of these sign-ins by tokens that were kept when the others of the user ended, and the moment.';

-- Those that are unknown are not listed: another issuer that shares the keys may name any session.
create or replace function auth.ended_token_sessions(session_ids uuid[]) returns setof uuid
language sql stable
begin atomic
  select distinct token.family_id from auth.refresh_tokens as token
  where token.family_id = any (ended_token_sessions.session_ids) and token.revoked_at is not null;
end;

comment on function auth.ended_token_sessions is 'Those of these sign-ins by tokens that were ended.';

-- Ids are bigint. A subject that is no id of this service (missing, a word, 19 digits or more) gives null, never an error. Tokens whose
-- subject is the uuid of an account have the id in the claim user_id.
create or replace function auth.uid() returns bigint
language sql stable parallel safe
return coalesce(
  substring(auth.jwt() ->> 'sub' from '^[1-9][0-9]{0,17}$'), substring(auth.jwt() ->> 'user_id' from '^[1-9][0-9]{0,17}$')
)::bigint;

grant execute on function auth.uid to anon, authenticated, service_role;
comment on function auth.uid is 'The id of the calling user; null for callers who are not signed in.';

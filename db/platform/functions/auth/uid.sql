-- Ids are bigint. A subject that is no id of this service (missing, a word, 19 digits or more) gives null, never an error.
create or replace function auth.uid() returns bigint
language sql stable parallel safe
return substring(auth.jwt() ->> 'sub' from '^[1-9][0-9]{0,17}$')::bigint;

grant execute on function auth.uid to anon, authenticated, service_role;
comment on function auth.uid is 'The id of the calling user; null for callers who are not signed in.';

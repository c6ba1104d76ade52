--! Previous: sha1:905c0cb934619c86a6ac3e7d0a534e8ee56db465
--! Hash: sha1:1e5c1c4e7ea8765475b375c2f4cabd40f9998004
--! Message: users are open

--! split: 0010-users-are-open.sql
-- Who asks by the text of a policy what a caller may do with a row has to name its functions, which nobody can in schema
-- private. Policies follow the function by themselves.
do $$
begin
  if to_regprocedure('private.users_are_open(text)') is not null then
    alter function private.users_are_open(text) set schema auth;
  end if;
end $$;
--! Included auth/users_are_open.sql
-- The one rule of who may write users without being that user. The engine sends both settings with every request:
-- request.interface says which door the request came through, app.users_access what the deployment decided.
-- The door 'table' is never open: the anonymous key that lies in every browser leads there.
create or replace function auth.users_are_open(verb text) returns boolean
language sql stable parallel safe
return case verb
  when 'insert' then current_setting('request.interface', true) in ('resource', 'graphql')
  else current_setting('request.interface', true) = 'resource' and current_setting('app.users_access', true) = 'open'
end;

-- Policies call it as the caller, and the service asks by the text of policies what a caller may do with a row.
grant execute on function auth.users_are_open to anon, authenticated;
comment on function auth.users_are_open is
  'Whether anybody at all may insert, update or delete users in this request.';
--! EndIncluded auth/users_are_open.sql

--! Previous: sha1:e62ed7edd32eb8476f788985bf262eccb889fc82
--! Hash: sha1:54f444b652f507324366a1e03ca6da69dd57548c
--! Message: sign-ups by settings

--! Included auth/users_are_open.sql
-- Who may write users without being that user. The service sends both settings with every request: request.interface names the
-- interface, app.users_access the setting USERS_ACCESS. Whoever adds a user signs somebody up, which AUTH_SIGN_UPS decides. Interface 'table' is never open: its anonymous key is public.
create or replace function auth.users_are_open(verb text) returns boolean
language sql stable parallel safe
return case verb
  when 'insert' then current_setting('request.interface', true) in ('resource', 'graphql') and auth.accepts_sign_ups()
  else current_setting('request.interface', true) = 'resource' and current_setting('app.users_access', true) = 'open'
end;

-- Policies call it as the caller, and the service evaluates policies to find out what a caller may do with a row.
grant execute on function auth.users_are_open to anon, authenticated;
comment on function auth.users_are_open is
  'Whether anybody at all may insert, update or delete users in this request.';
--! EndIncluded auth/users_are_open.sql

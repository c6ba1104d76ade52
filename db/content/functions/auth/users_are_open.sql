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

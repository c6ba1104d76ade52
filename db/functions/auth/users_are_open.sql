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

create or replace function auth.users_access() returns text
language sql stable
return case
  when to_regclass('public.users') is null then null
  when exists (
    select from pg_catalog.pg_policies
    where schemaname = 'public' and tablename = 'users' and policyname = 'select_all'
  ) then 'open'
  else 'owner'
end;

comment on function auth.users_access is
  'The value of USERS_ACCESS that policies and privileges implement; null without the table of users.';

create or replace function public.users_own_email(id bigint) returns text as $$
  select users.email from public.users where users.id = users_own_email.id and users.id = (select auth.uid());
$$ language sql stable parallel safe security definer set search_path = '';
grant execute on function public.users_own_email to authenticated, service_role;
comment on function public.users_own_email is
  e'@behavior -*\nThe address of the user, for the user; null for others.';

create or replace function public.me() returns public.users as $$
declare
  v_user public.users;
begin
  select * into v_user from public.users where users.id = auth.uid();
  if not found then
    raise exception 'You are not signed in' using errcode = 'LOGIN', hint = 'Send a valid access token.';
  end if;
  return v_user;
end;
$$ language plpgsql stable parallel safe set search_path = '';
grant execute on function public.me to anon, authenticated, service_role;
comment on function public.me is e'@notNull\nThe user who is signed in.';

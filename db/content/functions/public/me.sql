-- With the rights of the owner, because a caller may not select the address of other rows.
create or replace function public.me() returns public.users as $$
declare
  v_user public.users;
begin
  select users.* into v_user from public.users where users.id = (select auth.uid());
  if v_user.id is null then
    raise exception 'You are not signed in' using errcode = 'LOGIN', hint = 'Send a valid access token.';
  end if;
  return v_user;
end;
$$ language plpgsql stable parallel safe security definer set search_path = '';
grant execute on function public.me to anon, authenticated, service_role;
comment on function public.me is e'@notNull\nThe user who is signed in.';

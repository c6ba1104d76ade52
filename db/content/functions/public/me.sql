create or replace function public.me() returns public.users as $$
declare
  v_user public.users;
begin
  -- Not for anonymous callers, who may not read the address.
  if auth.uid() is not null then
    select * into v_user from public.users where users.id = auth.uid();
  end if;
  if v_user.id is null then
    raise exception 'You are not signed in' using errcode = 'LOGIN', hint = 'Send a valid access token.';
  end if;
  return v_user;
end;
$$ language plpgsql stable parallel safe set search_path = '';
grant execute on function public.me to anon, authenticated, service_role;
comment on function public.me is e'@notNull\nThe user who is signed in.';

-- Runs as the caller: policy insert_open decides who may.
create or replace function public.create_user(name text, email text, age integer default null)
returns public.users as $$
declare
  v_user public.users;
begin
  insert into public.users (name, email, age) values (create_user.name, create_user.email, create_user.age)
    returning * into v_user;
  return v_user;
exception when unique_violation then
  raise exception 'This e-mail address is already registered'
    using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
end;
$$ language plpgsql volatile set search_path = '';
grant execute on function public.create_user to anon, authenticated, service_role;
comment on function public.create_user is 'Add a user. An e-mail address can be registered once.';

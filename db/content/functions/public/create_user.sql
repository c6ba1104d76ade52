-- Runs as the caller: policy insert_open decides who may.
create or replace function public.create_user(name text, email text, age integer default null)
returns public.users as $$
declare
  v_user public.users;
begin
  -- Without the address, which anonymous callers may not read.
  insert into public.users (name, email, age) values (create_user.name, create_user.email, create_user.age)
    returning users.id, users.name, users.age, users.avatar, users.created_at, users.updated_at
    into v_user.id, v_user.name, v_user.age, v_user.avatar, v_user.created_at, v_user.updated_at;
  v_user.email := create_user.email;
  return v_user;
exception when unique_violation then
  raise exception 'This e-mail address is already registered'
    using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
end;
$$ language plpgsql volatile set search_path = '';
grant execute on function public.create_user to anon, authenticated, service_role;
comment on function public.create_user is e'@signUp\nAdd a user. An e-mail address can be registered once.';

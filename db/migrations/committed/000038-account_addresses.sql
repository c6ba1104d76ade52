--! Previous: sha1:f1ac0d4e9ecb2dfcc4f384216189f0fa0b719177
--! Hash: sha1:1ef5e54711452ded08b0bb98a4e90a7f5c0fbeaf
--! Message: account_addresses

--! split: 1-current.sql
-- USERS_ACCESS=open lets anybody change users. The address of an account is where the link to set a new password goes, so
-- it is not anybody's. Row-level security binds requests alone: whoever it does not bind may do this too.
--! Included auth/tg_users__guard_address.sql
-- Whoever enters another address could have the password reset by a mail to it.
create or replace function auth.tg_users__guard_address() returns trigger as $$
begin
  if exists (select from auth.credentials where user_id = OLD.id) then
    raise exception 'Only the user, or an administrator, may change the address of an account'
      using errcode = case when auth.uid() is null then 'LOGIN' else 'NOPER' end;
  end if;
  return NEW;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__guard_address is
  'Before update by somebody else: the address of who can sign in stays.';
--! EndIncluded auth/tg_users__guard_address.sql
create trigger _050_guard_address before update of email on public.users
  for each row when (
    OLD.email is distinct from NEW.email and row_security_active('public.users')
    and OLD.id is distinct from auth.uid() and not auth.is_admin()
  )
  execute function auth.tg_users__guard_address();

-- Whoever could enter another address could have the password reset by a mail to it.
create or replace function auth.tg_users__guard_address() returns trigger as $$
begin
  if exists (select from auth.users as account where user_id = OLD.id) then
    raise exception 'Only the user, or an administrator, may change the address of an account'
      using errcode = case when auth.uid() is null then 'LOGIN' else 'NOPER' end;
  end if;
  return NEW;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__guard_address is
  'Before update by another caller: refuses to change the address of a user with an account.';

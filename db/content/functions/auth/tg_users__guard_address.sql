-- Whoever could enter another address could have the password reset by a mail to it. The user proves the new address first; where everybody may
-- change users, the address is unproved afterwards.
create or replace function auth.tg_users__guard_address() returns trigger as $$
begin
  if not exists (select from auth.users as account where account.user_id = OLD.id) then
    return NEW;
  end if;
  if OLD.id is distinct from auth.uid() then
    raise exception 'Only the user, or an administrator, may change the address of an account'
      using errcode = case when auth.uid() is null then 'LOGIN' else 'NOPER' end;
  elsif current_setting('app.users_access', true) is distinct from 'open' then
    raise exception 'A new e-mail address must be confirmed before it replaces this one' using errcode = 'NOPER', detail = 'email',
      hint = 'Change it at /auth/account, or by PUT /auth/v1/user: an e-mail with a link is sent to the new address.';
  end if;
  return NEW;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__guard_address is
  'Before update by a request: refuses a change of the address of a user with an account, except by an administrator.';

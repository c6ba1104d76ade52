--! Previous: sha1:3bd99188d349c59daf287ea06bfd205a43f8f67a
--! Hash: sha1:e62ed7edd32eb8476f788985bf262eccb889fc82
--! Message: changes of addresses

--! Included auth/tg_users__guard_address.sql
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
--! EndIncluded auth/tg_users__guard_address.sql
--! Included auth/tg_users__rename_account.sql
-- Otherwise the old address would remain this user's user name after another user has taken it. What a request changes directly is recorded here;
-- a confirmed change is recorded where it is confirmed.
create or replace function auth.tg_users__rename_account() returns trigger as $$
begin
  update auth.users as account set
      email = NEW.email, username = case when lower(account.username) = lower(OLD.email) or account.is_anonymous then NEW.email else account.username end
    where account.user_id = NEW.id;
  if found and TG_ARGV[0] = 'request' then
    perform auth.log_event('email.changed', NEW.id, null, jsonb_build_object('by', auth.uid(), 'is_confirmed', false));
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__rename_account is
  'After update: the address of the account, and a user name that is the address, change with it.';
--! EndIncluded auth/tg_users__rename_account.sql

-- The user, too: only the proof of the new address changes it.
drop trigger _050_guard_address on public.users;
create trigger _050_guard_address before update of email on public.users for each row
  when (OLD.email is distinct from NEW.email and row_security_active('public.users') and not auth.is_admin())
  execute function auth.tg_users__guard_address();

drop trigger _200_rename_account on public.users;
drop trigger if exists _200_rename_account_by_request on public.users;
create trigger _200_rename_account after update of email on public.users for each row
  when (OLD.email is distinct from NEW.email and not row_security_active('public.users'))
  execute function auth.tg_users__rename_account();
create trigger _200_rename_account_by_request after update of email on public.users for each row
  when (OLD.email is distinct from NEW.email and row_security_active('public.users'))
  execute function auth.tg_users__rename_account('request');

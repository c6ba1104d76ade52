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

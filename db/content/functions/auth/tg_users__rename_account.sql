-- Otherwise the old address would remain this user's user name after another user has taken it.
create or replace function auth.tg_users__rename_account() returns trigger as $$
begin
  update auth.credentials set username = NEW.email
    where user_id = NEW.id and lower(username) = lower(OLD.email);
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__rename_account is
  'After update: a user name that is the e-mail address changes with it.';

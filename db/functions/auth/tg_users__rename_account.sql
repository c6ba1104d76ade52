-- Else the address would stay somebody's name after it had become somebody else's address.
create or replace function auth.tg_users__rename_account() returns trigger as $$
begin
  update auth.credentials set username = NEW.email
    where user_id = NEW.id and lower(username) = lower(OLD.email);
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__rename_account is
  'After update: whose user name is the e-mail address signs in with the new one.';

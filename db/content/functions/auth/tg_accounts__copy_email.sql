create or replace function auth.tg_accounts__copy_email() returns trigger as $$
begin
  select users.email into NEW.email from public.users where users.id = NEW.user_id;
  return NEW;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_accounts__copy_email is 'Before insert: an account has the address of its user.';

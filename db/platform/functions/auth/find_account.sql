-- No user name with an @ is another user's e-mail address, so at most one account matches.
create or replace function auth.find_account(name text) returns auth.users as $$
  select account from auth.users as account
  where lower(account.username) = lower(find_account.name) or account.user_id = auth.find_user(find_account.name);
$$ language sql stable set search_path = '';
comment on function auth.find_account is 'The account with that user name or e-mail address.';

-- Locks the user first and then the account, in the order of a deletion; otherwise the two could deadlock.
create or replace function auth.lock_account(user_id bigint) returns auth.users as $$
declare
  v_account auth.users;
begin
  perform auth.lock_user(lock_account.user_id);
  select * into v_account from auth.users as account where account.user_id = lock_account.user_id for no key update;
  return v_account;
end;
$$ language plpgsql set search_path = '';
comment on function auth.lock_account is
  'Locks the account until the end of the transaction and returns it; later queries see what the previous holder committed.';

create or replace function auth.lock_address(user_id bigint) returns auth.users as $$
begin
  return auth.lock_account(lock_address.user_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.lock_address is
  'Locks the account as auth.lock_account does, for a change of its address.';

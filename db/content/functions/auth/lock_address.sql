-- The row of public.users is locked for the update of a column with a unique constraint, before the account: another transaction that has
-- locked the account holds a weaker lock on this row, which the update would wait for.
create or replace function auth.lock_address(user_id bigint) returns auth.users as $$
begin
  perform from public.users where users.id = lock_address.user_id for update;
  return auth.lock_account(lock_address.user_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.lock_address is
  'Locks the account as auth.lock_account does, for a change of its address.';

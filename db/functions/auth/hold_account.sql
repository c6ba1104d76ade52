-- The user first and then the account, as when a user is deleted: two who went different ways would wait for each other.
create or replace function auth.hold_account(user_id bigint) returns auth.credentials as $$
declare
  v_account auth.credentials;
begin
  perform from public.users where users.id = hold_account.user_id for key share;
  select * into v_account from auth.credentials where credentials.user_id = hold_account.user_id for no key update;
  return v_account;
end;
$$ language plpgsql set search_path = '';
comment on function auth.hold_account is
  'The account, held until the transaction ends; what the transaction asks afterwards is as the one before has left it.';

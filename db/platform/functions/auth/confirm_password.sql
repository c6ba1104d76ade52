create or replace function auth.confirm_password(
  counted_name text, user_id bigint, password_hash text, client_info auth.client_info
) returns boolean as $$
declare
  v_account constant auth.users := auth.lock_account(confirm_password.user_id);
begin
  if v_account.password_hash is distinct from confirm_password.password_hash or auth.is_disabled(v_account) then
    perform auth.fail_login(counted_name, v_account.user_id, 'password', client_info);
    return false;
  end if;
  perform auth.end_attempt(counted_name, client_info.address, 'passed');
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.confirm_password is
  'Whether a password that was compared with this hash is still the one of the account, which is locked until the end of the transaction.';

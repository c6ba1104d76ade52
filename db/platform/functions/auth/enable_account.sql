create or replace function auth.enable_account(user_id bigint, client_info auth.client_info) returns boolean as $$
begin
  if (auth.lock_account(enable_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.users as account set disabled_at = null, banned_until = null where account.user_id = enable_account.user_id;
  perform auth.log_event('account.enabled', enable_account.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enable_account is 'Allows the user to sign in again. False: no such account.';

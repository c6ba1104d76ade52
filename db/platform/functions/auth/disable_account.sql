create or replace function auth.disable_account(user_id bigint, client_info auth.client_info) returns boolean as $$
begin
  if (auth.lock_account(disable_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.users as account set disabled_at = coalesce(disabled_at, now())
    where account.user_id = disable_account.user_id;
  perform auth.end_sign_ins(disable_account.user_id);
  perform auth.log_event('account.disabled', disable_account.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.disable_account is
  'Ends all sign-ins of the account and refuses new ones until it is enabled. False: no such account.';

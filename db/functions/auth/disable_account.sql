create or replace function auth.disable_account(user_id bigint, sender auth.sender) returns boolean as $$
begin
  if (auth.hold_account(disable_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.credentials set disabled_at = coalesce(disabled_at, now())
    where credentials.user_id = disable_account.user_id;
  perform auth.end_sign_ins(disable_account.user_id);
  perform auth.log_event('account.disabled', disable_account.user_id, sender);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.disable_account is
  'Nobody signs in to the account until it is enabled, and whoever is signed in is so no longer. False: no such account.';

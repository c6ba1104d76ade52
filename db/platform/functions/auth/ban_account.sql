create or replace function auth.ban_account(user_id bigint, until timestamptz, client_info auth.client_info) returns boolean as $$
begin
  if (auth.lock_account(ban_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.users as account set banned_until = ban_account.until where account.user_id = ban_account.user_id;
  if until > now() then
    perform auth.end_sign_ins(ban_account.user_id);
  end if;
  perform auth.log_event(
    case when until > now() then 'account.banned' else 'account.unbanned' end, ban_account.user_id, client_info,
    jsonb_strip_nulls(jsonb_build_object('until', until))
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.ban_account is
  'Ends all sign-ins of the account and refuses new ones until then; null ends a ban. False: no such account.';

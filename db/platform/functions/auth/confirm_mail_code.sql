-- A number of an account whose address is proved was entered by an administrator: its proof ends nothing.
create or replace function auth.confirm_mail_code(token auth.mail_tokens, account auth.users, client_info auth.client_info)
returns text as $$
begin
  if token.purpose in ('email_change_current', 'email_change_new') then
    update auth.mail_tokens as side set used_at = clock_timestamp(), code_hash = null where side.token_hash = token.token_hash;
    if exists (
      select from auth.mail_tokens as side
      where side.user_id = account.user_id and side.purpose in ('email_change_current', 'email_change_new')
        and side.used_at is null and side.expires_at > now()
    ) then
      return 'half';
    end if;
    perform auth.apply_email_change(account, token, client_info);
    return 'passed';
  end if;
  delete from auth.mail_tokens as spent where spent.token_hash = token.token_hash;
  if token.purpose in ('sms', 'sms_signup') then
    if account.phone_confirmed_at is null and account.verified_email is null then
      perform auth.claim_account(account.user_id, token, client_info);
    end if;
    update auth.users as confirmed set phone_confirmed_at = coalesce(confirmed.phone_confirmed_at, clock_timestamp())
      where confirmed.user_id = account.user_id;
    return 'passed';
  end if;
  if lower(account.verified_email) is distinct from lower(token.email) then
    perform auth.claim_account(account.user_id, token, client_info);
    perform auth.log_event('email.verified', account.user_id, client_info);
  end if;
  update auth.users as confirmed set verified_email = token.email where confirmed.user_id = account.user_id;
  return 'passed';
end;
$$ language plpgsql set search_path = '';
comment on function auth.confirm_mail_code is
  'Spends a valid link or code: passed, or half if a change of address waits for the other side. The caller has locked the account.';

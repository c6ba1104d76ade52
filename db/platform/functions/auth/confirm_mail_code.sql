-- Whoever asks for a link to sign in, to set a password or by an invitation proves the address. What was set up before it was confirmed
-- belongs to whoever registered it, which may be somebody else. The mail of a sign-up confirms the password of this sign-up. So it is with
-- phone numbers, unless the account has an address that was confirmed.
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
    perform auth.apply_email_change(account.user_id, token.new_email, client_info);
    return 'passed';
  end if;
  delete from auth.mail_tokens as spent where spent.token_hash = token.token_hash;
  if token.purpose in ('sms', 'sms_signup') then
    if token.purpose = 'sms' and account.phone_confirmed_at is null and account.email_confirmed_at is null then
      perform auth.claim_account(account.user_id, null, client_info);
    end if;
    update auth.users as confirmed set phone_confirmed_at = coalesce(confirmed.phone_confirmed_at, clock_timestamp())
      where confirmed.user_id = account.user_id;
    return 'passed';
  end if;
  if token.purpose <> 'signup' and account.email_confirmed_at is null then
    perform auth.claim_account(account.user_id, token.flow_id, client_info);
  end if;
  update auth.users as confirmed set verified_email = token.email where confirmed.user_id = account.user_id;
  if account.email_confirmed_at is null then
    delete from auth.mail_tokens as spent where spent.user_id = account.user_id and spent.purpose in ('signup', 'verify', 'invite');
    perform auth.log_event('email.verified', account.user_id, client_info);
  end if;
  return 'passed';
end;
$$ language plpgsql set search_path = '';
comment on function auth.confirm_mail_code is
  'Spends a valid link or code: passed, or half if a change of address waits for the other side. The caller has locked the account.';

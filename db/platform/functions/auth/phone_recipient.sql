-- Without a requested purpose, that of the last code is repeated. While a code to sign in is valid, a sign-up sends such a code too: whoever
-- registers the number again must not get the owner of the number to confirm the first password.
create or replace function auth.phone_recipient(
  phone text, requested text default 'sms', out user_id bigint, out state text, out purpose text, out user_json jsonb
) as $$
declare
  v_account auth.users;
  v_last auth.mail_tokens;
begin
  select account.user_id into user_id from auth.users as account where account.phone = phone_recipient.phone;
  v_account := auth.lock_account(user_id);
  user_id := v_account.user_id;
  user_json := auth.user_json(v_account.user_id);
  state := case
    when v_account.user_id is null then 'absent'
    when auth.is_disabled(v_account) then 'disabled'
    else 'found'
  end;
  select * into v_last from auth.mail_tokens as token
    where token.user_id = v_account.user_id and token.purpose in ('sms', 'sms_signup')
    order by token.expires_at desc limit 1;
  purpose := case
    when v_last.purpose = 'sms' and v_last.expires_at > now() then 'sms'
    else coalesce(requested, v_last.purpose, 'sms')
  end;
end;
$$ language plpgsql set search_path = '';
comment on function auth.phone_recipient is
  'The account with that phone number, which is locked: absent, disabled or found; and what a code is for: to sign in, or to confirm a sign-up.';

--! Previous: sha1:5bccdc1aa683a2cd52aca4085bd504917fd69cf6
--! Hash: sha1:99c1799837f5a9cebfa663a7ec150c88892fe889
--! Message: codes of sign-ups by phone

alter table auth.mail_tokens
  drop constraint mail_tokens_purpose_check,
  add constraint mail_tokens_purpose_check check (purpose in (
    'reset', 'verify', 'change', 'signup', 'invite', 'magiclink', 'recovery', 'email_change_current', 'email_change_new',
    'reauthentication', 'sms', 'sms_signup', 'phone_change'
  ));
drop function if exists auth.phone_recipient(text);
--! Included auth/is_current_address.sql
create or replace function auth.is_current_address(account auth.users, token auth.mail_tokens) returns boolean
language sql immutable
return case token.purpose
  when 'email_change_new' then true
  when 'phone_change' then true
  when 'sms' then token.email = account.phone
  when 'sms_signup' then token.email = account.phone
  else lower(token.email) = lower(coalesce(account.verified_email, account.email))
end;

comment on function auth.is_current_address is 'Whether a link or code was sent to where the user is reached now.';
--! EndIncluded auth/is_current_address.sql
--! Included auth/phone_recipient.sql
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
--! EndIncluded auth/phone_recipient.sql
--! Included auth/add_mail_code.sql
-- A new one ends the previous one of the same purpose. Of a phone number one code is valid: it looks the same whatever it is for.
create or replace function auth.add_mail_code(
  token_hash bytea, code_hash bytea, purpose text, user_id bigint, email text, new_email text, flow_id uuid, seconds integer
) returns void as $$
begin
  delete from auth.mail_tokens as sent
    where sent.user_id = add_mail_code.user_id and (
      sent.purpose = add_mail_code.purpose
      or sent.purpose in ('sms', 'sms_signup') and add_mail_code.purpose in ('sms', 'sms_signup')
    );
  insert into auth.mail_tokens (token_hash, code_hash, purpose, user_id, email, new_email, flow_id, is_pkce, expires_at)
    values (
      add_mail_code.token_hash, add_mail_code.code_hash, add_mail_code.purpose, add_mail_code.user_id, add_mail_code.email,
      add_mail_code.new_email, add_mail_code.flow_id, add_mail_code.flow_id is not null, now() + make_interval(secs => seconds)
    );
  delete from auth.mail_tokens as expired where expired.token_hash in (
    select mail_tokens.token_hash from auth.mail_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_mail_code is 'Stores the link and the code of a mail. The caller has locked the account.';
--! EndIncluded auth/add_mail_code.sql
--! Included auth/confirm_mail_code.sql
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
--! EndIncluded auth/confirm_mail_code.sql

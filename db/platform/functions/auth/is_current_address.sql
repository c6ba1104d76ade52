create or replace function auth.is_current_address(account auth.users, token auth.mail_tokens) returns boolean as $$
  select case token.purpose
    when 'email_change_new' then true
    when 'phone_change' then true
    when 'sms' then token.email = account.phone
    when 'sms_signup' then token.email = account.phone
    else lower(token.email) = lower(coalesce(account.verified_email, account.email))
  end;
$$ language sql immutable set search_path = '';
comment on function auth.is_current_address is 'Whether a link or code was sent to where the user is reached now.';

--! Previous: sha1:4211fa80674faf059f1d094b28dda3cd0aa7ee27
--! Hash: sha1:082fb7d51477b5127d3e3081de929fed90454621
--! Message: functions of rows

--! Included auth/is_disabled.sql
-- A string body, as of each function that takes a row: with a standard body, current releases of Postgres refuse new columns of the table that
-- have a default.
create or replace function auth.is_disabled(account auth.users) returns boolean as $$
  select account.disabled_at is not null or account.deleted_at is not null or coalesce(account.banned_until > now(), false);
$$ language sql stable set search_path = '';
comment on function auth.is_disabled is
  'Whether the account may not sign in: an operator disabled it, it is banned for some time, or it is deleted.';
--! EndIncluded auth/is_disabled.sql
--! Included auth/is_current_address.sql
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
--! EndIncluded auth/is_current_address.sql
--! Included auth/own_email.sql
-- Each row of public.users has an address; that of an anonymous user, and of one with a phone number only, receives no mail.
create or replace function auth.own_email(account auth.users) returns text as $$
  select case when not account.is_anonymous and account.email not like '%@phone.invalid' then account.email end;
$$ language sql immutable set search_path = '';
comment on function auth.own_email is 'The address of the user; null for an account without one.';
--! EndIncluded auth/own_email.sql
--! Included auth/find_account.sql
-- No user name with an @ is another user's e-mail address, so at most one account matches.
create or replace function auth.find_account(name text) returns auth.users as $$
  select account from auth.users as account
  where lower(account.username) = lower(find_account.name) or account.user_id = auth.find_user(find_account.name);
$$ language sql stable set search_path = '';
comment on function auth.find_account is 'The account with that user name or e-mail address.';
--! EndIncluded auth/find_account.sql

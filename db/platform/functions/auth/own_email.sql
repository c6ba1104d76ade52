-- Each row of public.users has an address; that of an anonymous user, and of one with a phone number only, receives no mail.
create or replace function auth.own_email(account auth.users) returns text as $$
  select case when not account.is_anonymous and account.email not like '%@phone.invalid' then account.email end;
$$ language sql immutable set search_path = '';
comment on function auth.own_email is 'The address of the user; null for an account without one.';

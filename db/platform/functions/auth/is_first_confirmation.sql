-- What administrators created is theirs to confirm as it is. An account of an earlier version may be anybody's.
create or replace function auth.is_first_confirmation(account auth.users, changes jsonb) returns boolean
language sql stable set search_path = ''
as $$
  select account.verified_email is null and account.is_self_registered is not false and coalesce(
    (changes ->> 'email_confirm')::boolean
      and (auth.own_email(account) is not null or account.phone is not null and account.phone_confirmed_at is null)
    or (changes ->> 'phone_confirm')::boolean and account.phone_confirmed_at is null
      and (auth.own_email(account) is not null or account.phone is not null), false
  );
$$;
comment on function auth.is_first_confirmation is
  'Whether an administrator who makes these changes gives the first proof of an address or number that somebody entered.';

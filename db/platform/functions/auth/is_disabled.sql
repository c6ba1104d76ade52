create or replace function auth.is_disabled(account auth.users) returns boolean
language sql stable
return account.disabled_at is not null or account.deleted_at is not null or coalesce(account.banned_until > now(), false);

comment on function auth.is_disabled is
  'Whether the account may not sign in: an operator disabled it, it is banned for some time, or it is deleted.';

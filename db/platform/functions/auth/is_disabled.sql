-- A string body, as of each function that takes a row: with a standard body, current releases of Postgres refuse new columns of the table that
-- have a default.
create or replace function auth.is_disabled(account auth.users) returns boolean as $$
  select account.disabled_at is not null or account.deleted_at is not null or coalesce(account.banned_until > now(), false);
$$ language sql stable set search_path = '';
comment on function auth.is_disabled is
  'Whether the account may not sign in: an operator disabled it, it is banned for some time, or it is deleted.';

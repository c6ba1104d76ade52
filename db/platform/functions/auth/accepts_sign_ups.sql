-- With the owner's rights, because policies call it as the caller, who reads no table of the schema.
create or replace function auth.accepts_sign_ups() returns boolean as $$
  select coalesce((select settings.sign_ups from auth.account_settings as settings), true);
$$ language sql stable security definer set search_path = '';

grant execute on function auth.accepts_sign_ups to anon, authenticated, service_role;
comment on function auth.accepts_sign_ups is
  'Whether others than administrators may create users (AUTH_SIGN_UPS).';

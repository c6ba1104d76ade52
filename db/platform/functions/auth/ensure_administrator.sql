-- Serialized: processes may start at the same time.
create or replace function auth.ensure_administrator(name text, email text, password_hash text, client_info auth.client_info)
returns boolean as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('auth.ensure_administrator', 0));
  if auth.has_administrator() then
    return false;
  end if;
  perform auth.add_account(name, email, 'admin', password_hash, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.ensure_administrator is 'Creates the first administrator. False: there is one.';

-- Postgres refuses to change the role or the session's user within a function that has its owner's rights, so the hook keeps those of
-- supabase_auth_admin, whatever it calls. It could alter this function, which belongs to its role, so each call finds out whether it still holds.
create or replace function auth.call_claims_hook(hook text, event jsonb) returns jsonb as $$
declare
  v_result jsonb;
begin
  if current_user <> 'supabase_auth_admin' then
    raise exception 'auth.call_claims_hook does not run as supabase_auth_admin'
      using hint = 'Run as a superuser: alter function auth.call_claims_hook owner to supabase_auth_admin';
  end if;
  begin
    perform set_config('role', 'none', true);
    raise exception 'auth.call_claims_hook does not keep the role of the hook'
      using hint = 'Run: alter function auth.call_claims_hook security definer reset role';
  exception when insufficient_privilege then
    null;
  end;

  execute format('select %s($1)', hook) using event into v_result;

  -- What is left to the commit would run with the rights of the service.
  set constraints all immediate;
  if exists (select from pg_cursors where is_holdable) then
    raise exception 'The function of CLAIMS_HOOK leaves a cursor open';
  end if;
  if exists (
    select from pg_trigger join pg_class on pg_class.oid = tgrelid where tgdeferrable and relnamespace = pg_my_temp_schema()
  ) then
    raise exception 'The function of CLAIMS_HOOK leaves a deferrable trigger on a temporary table';
  end if;
  return v_result;
end;
$$ language plpgsql security definer set search_path = '';
revoke execute on function auth.call_claims_hook from public;
comment on function auth.call_claims_hook is
  'Calls the function of CLAIMS_HOOK as supabase_auth_admin, so that it cannot act as another role.';

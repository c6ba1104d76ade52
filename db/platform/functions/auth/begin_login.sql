-- Runs the same queries whether or not the user exists. counted_name is the name that attempts are counted by: an account has one,
-- although it can be named by user name or by e-mail address.
create or replace function auth.begin_login(name text, client_info auth.client_info, out wait integer, out counted_name text,
  out user_id bigint, out password_hash text, out has_factor boolean, out factor_secrets text[], out backup_code_hash text
) as $$
declare
  v_account constant auth.users := auth.find_account(name);
begin
  counted_name := coalesce(v_account.username, name);
  wait := auth.count_attempt(
    counted_name, client_info.address, auth.is_known_network(v_account.user_id, client_info.address)
  );
  if wait = 0 then
    user_id := v_account.user_id;
    password_hash := v_account.password_hash;
    has_factor := auth.has_factor(v_account.user_id);
    select coalesce(array_agg(secret order by enabled_at), '{}') into factor_secrets
      from auth.mfa_factors as factor
      where factor.user_id = v_account.user_id and factor.state = 'enabled' and factor.factor_type = 'totp';
    select code_hash into backup_code_hash
      from auth.mfa_backup_codes where mfa_backup_codes.user_id = v_account.user_id and used_at is null limit 1;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_login is
  'Takes an attempt and returns what the user has to prove. One backup code is enough: all have its salt.';

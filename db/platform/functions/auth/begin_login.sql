-- Runs the same queries whether or not the user exists. counted_name is the name that attempts are counted by: an account has one,
-- although it can be named by user name or by e-mail address.
create or replace function auth.begin_login(name text, client_info auth.client_info, out wait integer, out counted_name text,
  out user_id bigint, out password_hash text, out factor_secret text, out backup_code_hash text
) as $$
declare
  v_account constant auth.users := auth.find_account(name);
begin
  counted_name := coalesce(v_account.username, name);
  wait := auth.count_attempt(counted_name, client_info.address);
  if wait = 0 then
    user_id := v_account.user_id;
    password_hash := v_account.password_hash;
    select secret into factor_secret
      from auth.mfa_factors where mfa_factors.user_id = v_account.user_id and state = 'enabled';
    select code_hash into backup_code_hash
      from auth.mfa_backup_codes where mfa_backup_codes.user_id = v_account.user_id and used_at is null limit 1;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_login is
  'Takes an attempt and returns what the user has to prove. One backup code is enough: all have its salt.';

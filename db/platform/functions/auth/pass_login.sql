-- The service has compared the password with the hash; here the hash must still be the account's.
create or replace function auth.pass_login(
  counted_name text, user_id bigint, password_hash text,
  factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(pass_login.user_id);
  v_outcome text;
begin
  v_outcome := case
    when v_account.password_hash is distinct from pass_login.password_hash then 'password'
    when auth.is_disabled(v_account) then 'disabled'
    else case auth.use_factor(pass_login.user_id, factor_secret, step, backup_code_hash, client_info)
      when 'missing' then 'code_missing'
      when 'wrong' then 'code'
      else 'passed'
    end
  end;
  if v_outcome in ('password', 'code') then
    perform auth.fail_login(counted_name, v_account.user_id, v_outcome, client_info);
  elsif v_outcome = 'passed' then
    perform auth.end_attempt(counted_name, client_info.address, 'passed');
  else
    perform auth.end_attempt(counted_name, client_info.address, 'undecided');
    if v_outcome = 'disabled' then
      perform auth.log_event('login.refused', v_account.user_id, client_info, '{"reason":"disabled"}');
    end if;
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_login is
  'The result of an attempt with the right password: passed, or what is missing or wrong.';

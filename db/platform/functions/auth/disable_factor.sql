create or replace function auth.disable_factor(
  counted_name text, user_id bigint, factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info
) returns text as $$
declare
  v_outcome text;
begin
  perform auth.lock_account(disable_factor.user_id);
  v_outcome := auth.use_factor(disable_factor.user_id, factor_secret, step, backup_code_hash, client_info);
  if v_outcome = 'wrong' then
    perform auth.fail_login(counted_name, disable_factor.user_id, 'code', client_info);
    return v_outcome;
  end if;
  perform auth.end_attempt(counted_name, client_info.address, 'undecided');
  if v_outcome = 'used' then
    perform auth.delete_factor(factor, client_info) from auth.mfa_factors as factor
      where factor.user_id = disable_factor.user_id and factor.factor_type = 'totp';
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.disable_factor is
  'enabled -> not enrolled, for each authenticator app, given a valid code; returns the result of use_factor.';

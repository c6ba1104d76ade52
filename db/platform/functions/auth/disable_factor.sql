create or replace function auth.disable_factor(
  counted_name text, user_id bigint, factor_secret text, step bigint, backup_code_hash text, sender auth.sender
) returns text as $$
declare
  v_outcome text;
begin
  perform auth.hold_account(disable_factor.user_id);
  v_outcome := auth.use_factor(disable_factor.user_id, factor_secret, step, backup_code_hash, sender);
  if v_outcome = 'wrong' then
    perform auth.fail_login(counted_name, disable_factor.user_id, 'code', sender);
    return v_outcome;
  end if;
  perform auth.end_attempt(counted_name, sender.address, 'undecided');
  if v_outcome = 'used' then
    delete from auth.mfa_factors where mfa_factors.user_id = disable_factor.user_id;
    perform auth.log_event('factor.disabled', disable_factor.user_id, sender);
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.disable_factor is
  'enabled -> not enrolled, given a valid code; returns the result of use_factor.';

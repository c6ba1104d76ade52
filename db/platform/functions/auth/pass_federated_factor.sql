create or replace function auth.pass_federated_factor(
  browser_hash bytea, counted_name text, user_id bigint,
  factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(pass_federated_factor.user_id);
  v_outcome text;
begin
  v_outcome := case
    when not exists (
      select from auth.federation_logins as login
      where login.browser_hash = pass_federated_factor.browser_hash and login.user_id = v_account.user_id
        and login.expires_at > now()
    ) then 'ended'
    when auth.is_disabled(v_account) then 'disabled'
    when auth.use_factor(v_account.user_id, factor_secret, step, backup_code_hash, client_info) in ('used', 'none') then 'passed'
    else 'code'
  end;
  if v_outcome = 'passed' then
    delete from auth.federation_logins as login where login.browser_hash = pass_federated_factor.browser_hash;
    perform auth.end_attempt(counted_name, client_info.address, 'passed');
    perform auth.log_event('federation.signed_in', v_account.user_id, client_info);
  elsif v_outcome = 'code' then
    perform auth.fail_login(counted_name, v_account.user_id, 'code', client_info);
  else
    perform auth.end_attempt(counted_name, client_info.address, 'undecided');
    perform auth.log_event('login.refused', v_account.user_id, client_info, jsonb_build_object('reason', v_outcome));
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_federated_factor is
  'Spends the code that a sign-in through a provider requires: passed, or what is wrong.';

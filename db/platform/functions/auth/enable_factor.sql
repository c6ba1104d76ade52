create or replace function auth.enable_factor(
  user_id bigint, secret text, step bigint, backup_code_hashes text[], client_info auth.client_info
) returns boolean as $$
begin
  perform auth.lock_account(enable_factor.user_id);
  update auth.mfa_factors as factor
    set state = 'enabled', enabled_at = now(), updated_at = now(), last_used_step = step
    where factor.user_id = enable_factor.user_id and factor.secret = enable_factor.secret and factor.state = 'pending';
  if not found then
    return false;
  end if;
  perform auth.replace_backup_codes(enable_factor.user_id, backup_code_hashes);
  perform auth.log_event('factor.enabled', enable_factor.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enable_factor is
  'pending -> enabled, given a valid code of that secret. False: no such secret is pending.';

create or replace function auth.renew_backup_codes(
  counted_name text, user_id bigint, factor_secret text, step bigint, backup_code_hash text,
  new_hashes text[], client_info auth.client_info
) returns text as $$
declare
  v_outcome text;
begin
  perform auth.lock_account(renew_backup_codes.user_id);
  v_outcome := auth.use_factor(renew_backup_codes.user_id, factor_secret, step, backup_code_hash, client_info);
  if v_outcome = 'wrong' then
    perform auth.fail_login(counted_name, renew_backup_codes.user_id, 'code', client_info);
    return v_outcome;
  end if;
  perform auth.end_attempt(counted_name, client_info.address, 'undecided');
  if v_outcome = 'used' then
    perform auth.replace_backup_codes(renew_backup_codes.user_id, new_hashes);
    perform auth.log_event('backup_codes.renewed', renew_backup_codes.user_id, client_info);
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.renew_backup_codes is
  'Replaces all backup codes, given a valid code; returns the result of use_factor.';

-- RFC 6238 §5.2: a code is accepted once. The row of an accepted step or backup code stays locked until the transaction ends.
create or replace function auth.use_factor(
  user_id bigint, factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info
) returns text as $$
begin
  if not auth.has_factor(use_factor.user_id) then
    return 'none';
  elsif step is null and backup_code_hash is null then
    return 'missing';
  elsif step is not null then
    update auth.mfa_factors set last_used_step = step
      where mfa_factors.user_id = use_factor.user_id and state = 'enabled' and secret = factor_secret
        and coalesce(last_used_step < step, true);
  else
    update auth.mfa_backup_codes set used_at = now()
      where mfa_backup_codes.user_id = use_factor.user_id and code_hash = backup_code_hash and used_at is null;
    if found then
      perform auth.log_event('backup_code.used', use_factor.user_id, client_info);
    end if;
  end if;
  return case when found then 'used' else 'wrong' end;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_factor is
  'Spends a code: used; wrong when it was used before; missing when one is required; none without a factor.';

create or replace function auth.remove_factor(user_id bigint, factor_id uuid, session_id uuid, client_info auth.client_info)
returns text as $$
declare
  v_account constant auth.users := auth.lock_account(remove_factor.user_id);
  v_factor auth.mfa_factors;
begin
  select * into v_factor from auth.mfa_factors as factor
    where factor.id = remove_factor.factor_id and factor.user_id = v_account.user_id;
  if v_factor.id is null then
    return 'missing';
  elsif v_factor.state = 'enabled' and not auth.has_second_factor_session(v_account.user_id, session_id) then
    return 'level';
  end if;
  perform auth.delete_factor(v_factor, client_info);
  return 'removed';
end;
$$ language plpgsql set search_path = '';
comment on function auth.remove_factor is
  'Removes a factor of that user: removed; missing; or level, when the sign-in must prove a second factor first.';

create or replace function auth.delete_factor_of(user_id bigint, factor_id uuid, client_info auth.client_info)
returns boolean as $$
declare
  v_account constant auth.users := auth.lock_account(delete_factor_of.user_id);
  v_factor auth.mfa_factors;
begin
  select * into v_factor from auth.mfa_factors as factor
    where factor.id = delete_factor_of.factor_id and factor.user_id = v_account.user_id;
  if v_factor.id is null then
    return false;
  end if;
  perform auth.delete_factor(v_factor, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.delete_factor_of is
  'Deletes a factor of that user as an administrator. False: the user has no such factor.';

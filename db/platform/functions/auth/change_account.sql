create or replace function auth.change_account(
  user_id bigint, changes jsonb, password_hash text, client_info auth.client_info
) returns boolean as $$
declare
  v_account constant auth.users := auth.lock_address(change_account.user_id);
begin
  if v_account.user_id is null then
    return false;
  end if;
  if auth.is_first_confirmation(v_account, changes) then
    perform auth.claim_account(v_account.user_id, null, client_info);
    update auth.users as account set phone = v_account.phone
      where account.user_id = v_account.user_id and (changes ->> 'phone_confirm')::boolean;
  end if;
  if change_account.password_hash is not null then
    perform auth.set_password(v_account.user_id, change_account.password_hash);
  end if;
  perform auth.apply_account_changes(v_account, changes, client_info);
  perform auth.log_event(
    'account.changed', v_account.user_id, client_info,
    jsonb_build_object('fields', (
      select coalesce(jsonb_agg(field order by field), '[]')
      from (
        select jsonb_object_keys(changes) union all select 'password' where change_account.password_hash is not null
      ) as changed (field)
    ))
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_account is
  'Changes an account as an administrator, who gives the first proof of an address or number by confirming it. False: there is none.';

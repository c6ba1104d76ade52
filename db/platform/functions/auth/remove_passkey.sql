create or replace function auth.remove_passkey(user_id bigint, passkey_id uuid, client_info auth.client_info)
returns boolean as $$
begin
  perform auth.lock_account(remove_passkey.user_id);
  delete from auth.passkeys as passkey
    where passkey.id = passkey_id and passkey.user_id = remove_passkey.user_id and passkey.factor_id is null;
  if not found then
    return false;
  end if;
  perform auth.log_event('passkey.removed', remove_passkey.user_id, client_info, jsonb_build_object('passkey', passkey_id));
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.remove_passkey is 'Removes a passkey of that user. False: there is no such passkey.';

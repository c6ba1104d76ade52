create or replace function auth.revoke_api_key(id bigint, owner_id bigint, client_info auth.client_info) returns boolean as $$
declare
  v_owner_id bigint;
begin
  update auth.api_keys set revoked_at = now()
    where api_keys.id = revoke_api_key.id and revoked_at is null
      and (revoke_api_key.owner_id is null or api_keys.owner_id = revoke_api_key.owner_id)
    returning api_keys.owner_id into v_owner_id;
  if not found then
    return false;
  end if;
  perform auth.log_event(
    'api_key.revoked', v_owner_id, client_info, jsonb_build_object('api_key', revoke_api_key.id)
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.revoke_api_key is
  'Revokes a key; given an owner, only one of that owner''s. False: no such key, or it has ended.';

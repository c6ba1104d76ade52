create or replace function auth.create_own_api_key(
  key_hash bytea, prefix text, user_id bigint, name text, expires_at timestamptz, client_info auth.client_info
) returns bigint as $$
declare
  v_max constant integer := 50;
begin
  -- No role can be assigned between reading it and the insert.
  perform auth.lock_account(create_own_api_key.user_id);
  if (
    select count(*) from auth.api_keys
    where api_keys.owner_id = create_own_api_key.user_id and api_keys.revoked_at is null
      and (api_keys.expires_at is null or api_keys.expires_at > now())
  ) >= v_max then
    raise exception 'You have % keys already', v_max using errcode = 'WRONG', detail = 'name', hint = 'Revoke keys that you no longer use.';
  elsif length(create_own_api_key.name) > 200 then
    raise exception 'A name has at most 200 characters' using errcode = 'WRONG', detail = 'name';
  end if;
  return auth.create_api_key(
    create_own_api_key.key_hash, create_own_api_key.prefix, auth.claims_of(create_own_api_key.user_id) ->> 'role',
    create_own_api_key.user_id, create_own_api_key.name, create_own_api_key.expires_at, client_info
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.create_own_api_key is
  'Stores an API key of a user, in the role that the user has. The user has confirmed the password.';

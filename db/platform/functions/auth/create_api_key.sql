create or replace function auth.create_api_key(
  key_hash bytea, prefix text, role text, owner_id bigint, name text, expires_at timestamptz, client_info auth.client_info
) returns bigint as $$
declare
  v_id bigint;
begin
  -- Locks the lower id first: otherwise two transactions could deadlock.
  perform auth.lock_account(held.id)
    from (select distinct unnest(array[create_api_key.owner_id, (client_info).actor]) as id order by id) as held;
  -- An access token outlives a change of roles by some seconds. A role from another issuer's token is trusted.
  if exists (
    select from auth.users as account left join auth.user_roles using (user_id)
    where account.user_id = (client_info).actor
      and (auth.is_disabled(account)
        or account.tokens_valid_from > now() - interval '1 minute' and user_roles.role is distinct from 'admin')
  ) then
    raise exception 'Only an administrator may do this' using errcode = 'NOPER';
  elsif not exists (select from auth.roles where roles.name = create_api_key.role) then
    raise exception 'There is no role of that name for keys' using errcode = 'WRONG', detail = 'role';
  elsif owner_id is not null and not exists (select from auth.profile_of(owner_id)) then
    raise exception 'There is no user of that id' using errcode = 'NTFND', detail = 'owner';
  elsif create_api_key.expires_at <= now() then
    raise exception 'A key expires in the future' using errcode = 'WRONG', detail = 'expires';
  end if;
  insert into auth.api_keys (key_hash, prefix, role, owner_id, name, expires_at)
    values (
      create_api_key.key_hash, create_api_key.prefix, create_api_key.role, create_api_key.owner_id,
      create_api_key.name, create_api_key.expires_at
    )
    returning id into v_id;
  perform auth.log_event('api_key.created', owner_id, client_info, jsonb_build_object('api_key', v_id, 'role', role));
  return v_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.create_api_key is 'Stores an API key in any role; for an administrator or an operator.';

--! Previous: sha1:e4b5ee6dba251f7fca03c38b6ebd0a935298992f
--! Hash: sha1:359436063fab871749cf5d27f67df50638d3c367
--! Message: api_key_rules

--! split: 0060-api_keys.sql
-- Making and ending keys of programs; auth.use_api_keys recognises them.
--! Included auth/create_api_key.sql
create or replace function auth.create_api_key(
  key_hash bytea, prefix text, role text, owner_id bigint, name text, expires_at timestamptz, sender auth.sender
) returns bigint as $$
declare
  v_id bigint;
begin
  if not exists (select from auth.roles where roles.name = create_api_key.role) then
    raise exception 'There is no role of that name for keys' using errcode = 'WRONG', detail = 'role';
  elsif owner_id is not null and not exists (select from public.users where users.id = owner_id) then
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
  perform auth.log_event('api_key.created', owner_id, sender, jsonb_build_object('api_key', v_id, 'role', role));
  return v_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.create_api_key is
  'Stores a key of a program. Who may have which role is asked before: an administrator any, an owner the own one.';
--! EndIncluded auth/create_api_key.sql
--! Included auth/list_api_keys.sql
create or replace function auth.list_api_keys(of_owner bigint)
returns table (
  id bigint, prefix text, role text, owner_id bigint, name text, created_at timestamptz,
  expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz
)
language sql stable
begin atomic
  select api_keys.id, api_keys.prefix, api_keys.role, api_keys.owner_id, api_keys.name, api_keys.created_at,
    api_keys.expires_at, api_keys.revoked_at, api_keys.last_used_at
  from auth.api_keys where of_owner is null or api_keys.owner_id = of_owner
  order by api_keys.id;
end;

comment on function auth.list_api_keys is 'The keys of an owner, or of all: what can be told about them.';
--! EndIncluded auth/list_api_keys.sql
--! Included auth/revoke_api_key.sql
create or replace function auth.revoke_api_key(id bigint, owner_id bigint, sender auth.sender) returns boolean as $$
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
    'api_key.revoked', v_owner_id, sender, jsonb_build_object('api_key', revoke_api_key.id)
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.revoke_api_key is
  'Ends a key, when an owner is given only one of that owner''s. False: there is no such key, or it has ended.';
--! EndIncluded auth/revoke_api_key.sql

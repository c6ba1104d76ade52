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

comment on function auth.list_api_keys is 'The keys of an owner, or all, without secrets.';

-- The one definition of a key's claims. Keys of disabled accounts, revoked and expired ones are not found.
create or replace function auth.use_api_keys(key_hashes bytea[])
returns table (key_hash bytea, claims jsonb, expires_at timestamptz)
begin atomic
  with live as (
    select api_keys.id, api_keys.key_hash, api_keys.role, api_keys.owner_id, api_keys.expires_at, account.id as owner_uuid
    from auth.api_keys left join auth.users as account on account.user_id = api_keys.owner_id
    where api_keys.key_hash = any (use_api_keys.key_hashes) and api_keys.revoked_at is null
      and (api_keys.expires_at is null or api_keys.expires_at > now()) and not auth.is_disabled(account)
  ), noted as (
    -- To the minute, to save writes; skips rows that are locked.
    update auth.api_keys set last_used_at = now() where id in (
      select id from auth.api_keys
      where id in (select id from live) and (last_used_at is null or last_used_at < now() - interval '1 minute')
      for no key update skip locked
    )
  )
  select live.key_hash,
    jsonb_strip_nulls(jsonb_build_object(
      'role', live.role, 'api_key', live.id::text,
      'sub', case when subject.is_uuid then live.owner_uuid::text else live.owner_id::text end,
      'user_id', case when subject.is_uuid then live.owner_id::text end
    )),
    live.expires_at
  from live cross join (select auth.has_uuid_subjects() as is_uuid) as subject;
end;

comment on function auth.use_api_keys is 'The claims of these keys, by SHA-256; called by the service as the owner.';

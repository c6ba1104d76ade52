--! Previous: sha1:1497ac15b09c7cc0f9ac6544cf9ad50741a58e61
--! Hash: sha1:7af3a1a46b8ec5b0bba7a19d808ae4daa6c4a3f0

-- Keys of programs.
create table auth.api_keys (
  id           bigint generated always as identity primary key,
  key_hash     bytea not null unique check (octet_length(key_hash) = 32),
  prefix       text not null check (length(prefix) between 4 and 12),
  role         text not null references auth.roles on update cascade,
  owner_id     bigint references auth.users on delete cascade,
  name         text not null default '',
  created_at   timestamptz not null default now(),
  expires_at   timestamptz check (expires_at > created_at),
  revoked_at   timestamptz,
  last_used_at timestamptz
);
create index on auth.api_keys (role);
create index on auth.api_keys (owner_id);
alter table auth.api_keys enable row level security;
comment on table auth.api_keys is 'Keys of programs, as SHA-256 only.';
comment on column auth.api_keys.prefix is 'The key''s first characters, to tell keys apart in a list.';
comment on column auth.api_keys.owner_id is 'The user for whom it acts; null for none.';
comment on column auth.api_keys.expires_at is 'When it expires; null if never.';

-- The one definition of a key's claims. Keys of disabled accounts, revoked and expired ones are not found.
create function auth.use_api_keys(key_hashes bytea[]) returns table (key_hash bytea, claims jsonb, expires_at timestamptz)
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

create function auth.create_api_key(
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

create function auth.create_own_api_key(
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
comment on function auth.create_own_api_key is 'Stores an API key of a user, in the role that the user has. The user has confirmed the password.';

create function auth.list_api_keys(of_owner bigint)
returns table (
  id bigint, prefix text, role text, owner_id bigint, name text, created_at timestamptz, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz
)
language sql stable
begin atomic
  select api_keys.id, api_keys.prefix, api_keys.role, api_keys.owner_id, api_keys.name, api_keys.created_at,
    api_keys.expires_at, api_keys.revoked_at, api_keys.last_used_at
  from auth.api_keys where of_owner is null or api_keys.owner_id = of_owner
  order by api_keys.id;
end;
comment on function auth.list_api_keys is 'The keys of an owner, or all, without secrets.';

create function auth.revoke_api_key(id bigint, owner_id bigint, client_info auth.client_info) returns boolean as $$
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
comment on function auth.revoke_api_key is 'Revokes a key; given an owner, only one of that owner''s. False: no such key, or it has ended.';

--! Previous: sha1:029ed4e1754b315bf1a35df369b6068231480988
--! Hash: sha1:4bec770e40b2f89c0fc9f63156f9e1ffbe05f4ea
--! Message: import of accounts

-- The subject of a key is what auth.uid() reads, as that of a token.
--! Included auth/use_api_keys.sql
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
--! EndIncluded auth/use_api_keys.sql

-- Accounts of another service, with their ids and password hashes.
--! Included auth/import_account.sql
-- A row of Supabase's auth.users. Its id stays; an account that exists already stays as it is.
create or replace function auth.import_account(account jsonb, client_info auth.client_info) returns text as $$
declare
  v_email constant text := nullif(account ->> 'email', '');
  v_metadata constant jsonb := coalesce(nullif(account -> 'raw_user_meta_data', 'null'), '{}');
  v_name constant text := left(coalesce(
    nullif(btrim(v_metadata ->> 'name'), ''), nullif(btrim(v_metadata ->> 'full_name'), ''), split_part(v_email, '@', 1)
  ), 200);
  v_user record;
begin
  if v_email is null or account ->> 'deleted_at' is not null then
    return 'skipped';
  elsif auth.find_user(v_email) is not null
    or exists (select from auth.users where users.id = (account ->> 'id')::uuid)
  then
    return 'known';
  end if;
  v_user := auth.insert_user(v_name, v_email, null);
  insert into auth.users (
    user_id, id, username, email, password_hash, verified_email, raw_user_meta_data, raw_app_meta_data,
    phone, phone_confirmed_at, created_at, last_sign_in_at, invited_at, banned_until, is_sso_user
  ) values (
    v_user.user_id, (account ->> 'id')::uuid, v_email, v_email, nullif(account ->> 'encrypted_password', ''),
    case when account ->> 'email_confirmed_at' is not null then v_email end,
    v_metadata, coalesce(nullif(account -> 'raw_app_meta_data', 'null'), '{}') - '{provider,providers}'::text[],
    nullif(account ->> 'phone', ''), (account ->> 'phone_confirmed_at')::timestamptz,
    coalesce((account ->> 'created_at')::timestamptz, now()), (account ->> 'last_sign_in_at')::timestamptz,
    (account ->> 'invited_at')::timestamptz, (account ->> 'banned_until')::timestamptz,
    coalesce((account ->> 'is_sso_user')::boolean, false)
  );
  perform auth.log_event('account.created', v_user.user_id, client_info, '{"imported": true}');
  return 'imported';
exception when sqlstate 'WRONG' or sqlstate 'TAKEN' or unique_violation or check_violation then
  return 'refused';
end;
$$ language plpgsql set search_path = '';
comment on function auth.import_account is
  'Creates an account from a row of another service: imported, known, skipped (deleted, or without an address) or refused.';
--! EndIncluded auth/import_account.sql
--! Included auth/import_identity.sql
-- A row of Supabase's auth.identities, whose provider_id is the subject at the provider.
create or replace function auth.import_identity(identity jsonb) returns text as $$
declare
  v_issuer constant text := (select issuer from auth.providers where name = identity ->> 'provider');
  v_user_id constant bigint := (select user_id from auth.users where users.id = (identity ->> 'user_id')::uuid);
begin
  if identity ->> 'provider' in ('email', 'phone') or v_user_id is null then
    return 'skipped';
  elsif v_issuer is null then
    return 'no_provider';
  end if;
  insert into auth.identities (issuer, subject, user_id, is_vouched)
    values (v_issuer, coalesce(identity ->> 'provider_id', identity -> 'identity_data' ->> 'sub'), v_user_id, true)
    on conflict on constraint identities_pkey do nothing;
  return case when found then 'imported' else 'known' end;
end;
$$ language plpgsql set search_path = '';
comment on function auth.import_identity is
  'Links an account to the subject at a provider of that name: imported, known, skipped, or no_provider.';
--! EndIncluded auth/import_identity.sql

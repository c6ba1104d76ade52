--! Previous: sha1:b450e635276ff6089451730cc81d7b8c294e8847
--! Hash: sha1:f3ba0b35b9a61cd74242aea244f71727980f25b7
--! Message: signed addresses

-- A signed address is used as its signer: these claims are those that the signer would have now.
-- A subject that had an account when it signed, and has none any more, was deleted: the service remembers which of the two it was.
create function auth.signers(user_ids bigint[], signed jsonb[])
returns table (place bigint, is_account boolean, stands boolean, role text, claims jsonb) as $$
  select signer.place, account.user_id is not null,
    coalesce(state.state, 'active') = 'active'
      and (not signer.claims ? 'oauth_grant_id' or exists (
        select from auth.oauth_grants as granted
        where granted.id::text = signer.claims ->> 'oauth_grant_id' and granted.client_id = signer.claims ->> 'client_id'
          and granted.user_id = signer.user_id and granted.expires_at > now()
      ))
      and (not signer.claims ? 'api_key' or exists (
        select from auth.api_keys as key
        where key.id::text = signer.claims ->> 'api_key' and key.role = signer.claims ->> 'role'
          and key.owner_id is not distinct from signer.user_id
          and key.revoked_at is null and (key.expires_at is null or key.expires_at > now())
      )),
    current.claims ->> 'role', current.claims
  from unnest(user_ids, signed) with ordinality as signer (user_id, claims, place)
  left join auth.users as account on account.user_id = signer.user_id
  left join auth.account_states(user_ids) as state on state.user_id = signer.user_id
  left join lateral (
    select auth.session_claims(account.user_id, null) as claims where account.user_id is not null
  ) as current on true;
$$ language sql set search_path = '';
comment on function auth.signers is 'Whether the accounts, grants and keys of these signers stand, and the claims and the role that their accounts have now.';

-- Policies are asked as the signer, so no function reads or writes objects for an address that was signed.
drop function content_service.signed_object(text, text);
drop function content_service.put_signed_object(text, text, text, jsonb, jsonb, text, boolean);

create function content_service.object_version(bucket text, name text) returns table (id uuid, version text) as $$
  select objects.id, objects.version from storage.objects
  where objects.bucket_id = bucket and objects.name = object_version.name;
$$ language sql stable security definer set search_path = '';
comment on function content_service.object_version is 'Which object there is, and its version; no row if the name is free.';

create function content_service.hold_object(bucket text, name text, id uuid, version text) returns boolean as $$
begin
  perform from storage.objects
    where objects.bucket_id = bucket and objects.name = hold_object.name
      and objects.id = hold_object.id and objects.version is not distinct from hold_object.version
    for update;
  return found;
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.hold_object is 'Keeps an object as it is until the end of the transaction; false if it is another one or another version.';

-- Bytes count for the owner: nobody names another one than the caller, who may replace an object and own it then.
create function content_service.tg_objects__check_owner() returns trigger as $$
declare
  v_claims jsonb := nullif(current_setting('request.jwt.claims', true), '');
  v_caller text := case when jsonb_typeof(v_claims -> 'sub') = 'string' then nullif(v_claims ->> 'sub', '') end;
begin
  if (NEW.owner_id is distinct from OLD.owner_id and NEW.owner_id is distinct from v_caller)
    or (NEW.owner is distinct from OLD.owner and NEW.owner is not null and NEW.owner::text is distinct from v_caller)
  then
    if current_user <> 'service_role' and not pg_has_role(current_user, (select relowner from pg_class where oid = TG_RELID), 'usage')
      and not exists (select from pg_roles where rolname = current_user and (rolbypassrls or rolsuper))
    then
      raise exception 'You cannot give an object to another owner.'
        using errcode = '42501', hint = 'Leave owner and owner_id as they are: they change when somebody else replaces the object.';
    end if;
  end if;
  return NEW;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.tg_objects__check_owner is 'Keeps callers from giving their objects, and the bytes, to others.';
create trigger _800_check_owner before update of owner, owner_id on storage.objects
  for each row when (OLD.owner_id is distinct from NEW.owner_id or OLD.owner is distinct from NEW.owner)
  execute function content_service.tg_objects__check_owner();

-- What is not finished takes room too. An upload by TUS has a row here without a caller, so that S3 does not list it, and the size that it will have.
alter table content_service.unfinished_uploads add column owner_id text not null default '';
comment on column content_service.unfinished_uploads.owner_id is 'The owner of the object; empty for an object without one.';
comment on column content_service.unfinished_uploads.caller is 'Who has begun it by S3, and alone goes on with it; empty for an upload by TUS.';
comment on column content_service.unfinished_uploads.bytes is 'The size of its parts, or the size that it will have.';
comment on table content_service.unfinished_uploads is 'Uploads in parts by S3 and TUS, until they are finished or a day has passed.';

create function content_service.check_bucket_usage(bucket_ids text[], owner_ids text[]) returns void as $$
declare
  v_full text;
begin
  select buckets.id into v_full from unnest(bucket_ids, owner_ids) as changed (bucket_id, owner_id)
    join storage.buckets on buckets.id = changed.bucket_id
    where buckets.max_bytes is not null and coalesce((
        select sum(usage.bytes) from content_service.bucket_usage as usage where usage.bucket_id = buckets.id
      ), 0) + coalesce((
        select sum(upload.bytes) from content_service.unfinished_uploads as upload where upload.bucket_id = buckets.id
      ), 0) > buckets.max_bytes
      or buckets.max_bytes_of_owner is not null and coalesce((
        select sum(usage.bytes) from content_service.bucket_usage as usage
        where usage.bucket_id = buckets.id and usage.owner_id = changed.owner_id
      ), 0) + coalesce((
        select sum(upload.bytes) from content_service.unfinished_uploads as upload
        where upload.bucket_id = buckets.id and upload.owner_id = changed.owner_id
      ), 0) > buckets.max_bytes_of_owner
    limit 1;
  if found then
    raise exception 'The bucket % is full.', v_full using errcode = 'PT413', hint = 'Delete objects and unfinished uploads that are not needed.';
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.check_bucket_usage is 'Throws if objects and unfinished uploads take more than the bounds of a bucket.';

create or replace function content_service.add_bucket_usage(bucket_ids text[], owner_ids text[], bytes bigint[]) returns void as $$
begin
  -- In the order of the key, so that transactions do not deadlock.
  insert into content_service.bucket_usage as usage (bucket_id, owner_id, bytes)
    select changed.bucket_id, changed.owner_id, sum(changed.bytes)
    from unnest(bucket_ids, owner_ids, add_bucket_usage.bytes) as changed (bucket_id, owner_id, bytes)
    where exists (select from storage.buckets where buckets.id = changed.bucket_id)
    group by changed.bucket_id, changed.owner_id having sum(changed.bytes) <> 0
    order by changed.bucket_id, changed.owner_id
    on conflict (bucket_id, owner_id) do update set bytes = usage.bytes + excluded.bytes;
  perform content_service.check_bucket_usage(array_agg(changed.bucket_id), array_agg(changed.owner_id))
    from unnest(bucket_ids, owner_ids, add_bucket_usage.bytes) as changed (bucket_id, owner_id, bytes) where changed.bytes > 0;
end;
$$ language plpgsql security definer set search_path = '';

-- An upload by TUS that is begun again has a size that became known, or goes on.
drop function content_service.begin_upload(uuid, text, text, text, text, text, jsonb, bigint);
create or replace function content_service.begin_upload(
  id uuid, caller text, quota_key text, role text, bucket text, name text, owner text, about jsonb, bytes bigint, max_bytes bigint
) returns void as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('unfinished uploads of ' || begin_upload.quota_key, 0));
  perform pg_advisory_xact_lock(hashtextextended('unfinished uploads to ' || bucket || '/' || coalesce(begin_upload.owner, ''), 0));
  insert into content_service.unfinished_uploads as upload (id, caller, quota_key, bucket_id, name, owner_id, about, bytes)
    values (
      begin_upload.id, begin_upload.caller, begin_upload.quota_key, bucket, begin_upload.name, coalesce(begin_upload.owner, ''),
      begin_upload.about, begin_upload.bytes
    )
    on conflict on constraint unfinished_uploads_pkey do update set bytes = excluded.bytes, started_at = now();
  if content_service.is_upload_bounded(begin_upload.role) then
    perform content_service.check_unfinished_uploads(begin_upload.quota_key, begin_upload.max_bytes);
  end if;
  perform content_service.check_bucket_usage(array[bucket], array[coalesce(begin_upload.owner, '')]);
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.begin_upload is 'Begins an upload in parts, or notes its size; throws if the caller or the bucket has too much.';

create or replace function content_service.put_part(id uuid, role text, number integer, hash text, bytes bigint, max_bytes bigint) returns boolean as $$
#variable_conflict use_column
declare
  v_upload content_service.unfinished_uploads;
  v_before bigint;
begin
  select * into v_upload from content_service.unfinished_uploads where unfinished_uploads.id = put_part.id for update;
  if not found then
    return false;
  end if;
  select upload_parts.bytes into v_before from content_service.upload_parts where upload_id = put_part.id and upload_parts.number = put_part.number;
  update content_service.files set released_at = null where files.hash = put_part.hash;
  insert into content_service.upload_parts (upload_id, number, content, bytes) values (put_part.id, put_part.number, put_part.hash, put_part.bytes)
    on conflict (upload_id, number) do update set content = excluded.content, bytes = excluded.bytes, stored_at = now();
  update content_service.unfinished_uploads set bytes = unfinished_uploads.bytes + put_part.bytes - coalesce(v_before, 0)
    where unfinished_uploads.id = put_part.id returning * into v_upload;
  if v_upload.bytes > put_part.max_bytes then
    raise exception 'The object exceeded the maximum allowed size' using errcode = 'PT413';
  end if;
  if content_service.is_upload_bounded(put_part.role) then
    perform content_service.check_unfinished_uploads(v_upload.quota_key, put_part.max_bytes);
  end if;
  perform content_service.check_bucket_usage(array[v_upload.bucket_id], array[v_upload.owner_id]);
  return true;
end;
$$ language plpgsql security definer set search_path = '';

-- With those that were granted together with a function that is gone.
grant execute on function
  content_service.bucket_terms, content_service.public_object, content_service.keep_file, content_service.name_content,
  content_service.object_version, content_service.hold_object, content_service.begin_upload
  to authenticator;

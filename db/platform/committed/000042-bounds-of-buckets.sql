--! Previous: sha1:66d438b6c03c424fb612ee74063dc87c17fac437
--! Hash: sha1:16e0d0a3697828a47316a800d517a9e1006b40c5
--! Message: bounds of buckets

-- An entry that equals the prefix is an object, not a folder: nothing of the level comes before it.
create or replace function storage.list_names(
  bucket text, prefix text, has_folders boolean, is_descending boolean, after_entry text, max_rows integer
) returns table (entry text, is_folder boolean, object storage.objects) as $$
declare
  v_end text := storage.end_of_prefix(prefix);
  -- Names have no control characters, so nothing lies between a name and the name followed by one.
  v_from text := case
    when after_entry is null then prefix
    when has_folders and starts_with(after_entry, prefix) and strpos(substr(after_entry, length(prefix) + 1), '/') = length(after_entry) - length(prefix)
      and after_entry <> prefix then storage.end_of_prefix(after_entry)
    else after_entry || chr(1)
  end;
  v_before text := coalesce(after_entry, v_end);
  v_found storage.objects;
  v_rest text;
begin
  for v_count in 1 .. max_rows loop
    if is_descending then
      select objects.* into v_found from storage.objects
        where objects.bucket_id = bucket and starts_with(objects.name, prefix)
          and objects.name collate "C" >= prefix and (v_before is null or objects.name collate "C" < v_before)
        order by objects.name collate "C" desc limit 1;
    else
      select objects.* into v_found from storage.objects
        where objects.bucket_id = bucket and starts_with(objects.name, prefix)
          and objects.name collate "C" >= v_from and (v_end is null or objects.name collate "C" < v_end)
        order by objects.name collate "C" limit 1;
    end if;
    exit when not found;
    v_rest := substr(v_found.name, length(prefix) + 1);
    is_folder := has_folders and strpos(v_rest, '/') > 0;
    entry := case when is_folder then prefix || split_part(v_rest, '/', 1) || '/' else v_found.name end;
    object := case when not is_folder then v_found end;
    v_before := entry;
    v_from := case when is_folder then storage.end_of_prefix(entry) else entry || chr(1) end;
    return next;
  end loop;
end;
$$ language plpgsql stable set search_path = '';

-- Sums of rows that others have not committed yet are not seen, so uploads to a bucket with a bound are counted one after the other.
create or replace function content_service.lock_bounded_buckets(bucket_ids text[]) returns void as $$
declare
  v_id text;
begin
  -- One after the other in the order of ids, so that transactions do not deadlock.
  for v_id in
    select distinct buckets.id from storage.buckets
    where buckets.id = any (bucket_ids) and (buckets.max_bytes is not null or buckets.max_bytes_of_owner is not null) order by buckets.id
  loop
    perform pg_advisory_xact_lock(hashtextextended('usage of ' || v_id, 0));
  end loop;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.lock_bounded_buckets is 'Waits until the uploads to buckets with a bound that others have begun are committed.';

create or replace function content_service.add_bucket_usage(bucket_ids text[], owner_ids text[], bytes bigint[]) returns void as $$
begin
  perform content_service.lock_bounded_buckets(array(
    select changed.bucket_id from unnest(bucket_ids, add_bucket_usage.bytes) as changed (bucket_id, bytes) where changed.bytes > 0
  ));
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

create or replace function content_service.begin_upload(
  id uuid, caller text, quota_key text, role text, bucket text, name text, owner text, about jsonb, bytes bigint, max_bytes bigint
) returns void as $$
begin
  perform content_service.lock_bounded_buckets(array[bucket]);
  perform pg_advisory_xact_lock(hashtextextended('unfinished uploads of ' || begin_upload.quota_key, 0));
  perform pg_advisory_xact_lock(hashtextextended('unfinished uploads to ' || bucket || '/' || coalesce(begin_upload.owner, ''), 0));
  insert into content_service.unfinished_uploads as upload (id, caller, quota_key, bucket_id, name, owner_id, about, bytes)
    values (
      begin_upload.id, begin_upload.caller, begin_upload.quota_key, bucket, begin_upload.name, coalesce(begin_upload.owner, ''),
      begin_upload.about, begin_upload.bytes
    )
    on conflict on constraint content_service_unfinished_uploads_pkey do update set bytes = excluded.bytes, started_at = now();
  if content_service.is_upload_bounded(begin_upload.role) then
    perform content_service.check_unfinished_uploads(begin_upload.quota_key, begin_upload.max_bytes);
  end if;
  perform content_service.check_bucket_usage(array[bucket], array[coalesce(begin_upload.owner, '')]);
end;
$$ language plpgsql security definer set search_path = '';

create or replace function content_service.put_part(id uuid, role text, number integer, hash text, bytes bigint, max_bytes bigint) returns boolean as $$
#variable_conflict use_column
declare
  v_upload content_service.unfinished_uploads;
  v_before bigint;
begin
  select * into v_upload from content_service.unfinished_uploads where unfinished_uploads.id = put_part.id;
  perform content_service.lock_bounded_buckets(array[v_upload.bucket_id]);
  perform pg_advisory_xact_lock(hashtextextended('unfinished uploads of ' || v_upload.quota_key, 0));
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

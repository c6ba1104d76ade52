--! Previous: sha1:75aa37505693de5a6dd07cb5437ea92dea38d259
--! Hash: sha1:a4293867bdf70ddbd37f66aa0d8ef03036ef7975

-- What /storage/v1 does, as the caller: policies of the two tables decide.
create function storage.put_object(
  bucket text, name text, owner text, metadata jsonb, user_metadata jsonb, version text, replaces boolean
) returns void as $$
#variable_conflict use_column
declare
  v_owner uuid := case when put_object.owner ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then cast(put_object.owner as uuid) end;
begin
  if replaces then
    insert into storage.objects as object (bucket_id, name, owner, owner_id, metadata, user_metadata, version)
      values (bucket, put_object.name, v_owner, put_object.owner, put_object.metadata, put_object.user_metadata, put_object.version)
      on conflict (bucket_id, name) do update set
        owner = excluded.owner, owner_id = excluded.owner_id, metadata = excluded.metadata,
        user_metadata = excluded.user_metadata, version = excluded.version;
  else
    insert into storage.objects (bucket_id, name, owner, owner_id, metadata, user_metadata, version)
      values (bucket, put_object.name, v_owner, put_object.owner, put_object.metadata, put_object.user_metadata, put_object.version);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function storage.put_object is 'Adds the row of an object, or replaces it.';

create function storage.find_objects(bucket text, names text[]) returns setof storage.objects as $$
  select objects.* from storage.objects where objects.bucket_id = bucket and objects.name = any (names);
$$ language sql stable set search_path = '';
comment on function storage.find_objects is 'The objects with these names that the caller may read.';

create function storage.remove_objects(bucket text, names text[]) returns setof storage.objects as $$
  delete from storage.objects where objects.bucket_id = bucket and objects.name = any (names) returning objects.*;
$$ language sql set search_path = '';
comment on function storage.remove_objects is 'Deletes the objects with these names that the caller may delete.';

create function storage.move_object(bucket text, name text, to_bucket text, to_name text, owner text, version text) returns setof storage.objects as $$
  update storage.objects set
    bucket_id = to_bucket, name = to_name, version = move_object.version, owner_id = coalesce(move_object.owner, objects.owner_id)
  where objects.bucket_id = bucket and objects.name = move_object.name
  returning objects.*;
$$ language sql set search_path = '';
comment on function storage.move_object is 'Renames an object that the caller may read and update; its content stays.';

-- The first text that follows all texts with the prefix; null if it is not computed.
create function storage.end_of_prefix(prefix text) returns text
language sql immutable parallel safe
return case when prefix <> '' and ascii(right(prefix, 1)) < 127 then left(prefix, -1) || chr(ascii(right(prefix, 1)) + 1) end;
comment on function storage.end_of_prefix is 'The first text that follows all texts with the prefix, in the order of bytes.';

-- A folder is skipped as a whole, so that it costs one step however many objects it has.
create function storage.list_names(
  bucket text, prefix text, has_folders boolean, is_descending boolean, after_entry text, max_rows integer
) returns table (entry text, is_folder boolean, object storage.objects) as $$
declare
  v_end text := storage.end_of_prefix(prefix);
  -- Names have no control characters, so nothing lies between a name and the name followed by one.
  v_from text := case
    when after_entry is null then prefix
    when has_folders and after_entry like '%/' then storage.end_of_prefix(after_entry)
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
comment on function storage.list_names is 'Objects below a prefix in the order of their names, or the folders and objects of one level, after an entry.';

-- A folder has the time of its oldest or latest object.
create function storage.list_times(
  bucket text, prefix text, has_folders boolean, is_descending boolean, by_update boolean, after_time timestamptz, after_entry text,
  max_rows integer
) returns table (entry text, is_folder boolean, object storage.objects, at timestamptz) as $$
  with named as (
    select objects as object, case when by_update then objects.updated_at else objects.created_at end as at,
      has_folders and strpos(substr(objects.name, length(prefix) + 1), '/') > 0 as is_folder,
      prefix || split_part(substr(objects.name, length(prefix) + 1), '/', 1) || '/' as folder
    from storage.objects
    where objects.bucket_id = bucket and starts_with(objects.name, prefix)
      and (prefix = '' or objects.name collate "C" >= prefix)
      and (storage.end_of_prefix(prefix) is null or objects.name collate "C" < storage.end_of_prefix(prefix))
  ),
  entries as (
    select named.folder as entry, true as is_folder, null::storage.objects as object,
      case when by_update then max(named.at) else min(named.at) end as at
    from named where named.is_folder group by named.folder
    union all
    select (named.object).name, false, named.object, named.at from named where not named.is_folder
  )
  select entries.entry, entries.is_folder, entries.object, entries.at from entries
  where after_entry is null
    or (is_descending and (entries.at, entries.entry) < (after_time, after_entry))
    or (not is_descending and (entries.at, entries.entry) > (after_time, after_entry))
  order by
    case when not is_descending then entries.at end, case when not is_descending then entries.entry end,
    case when is_descending then entries.at end desc, case when is_descending then entries.entry end desc
  limit max_rows;
$$ language sql stable set search_path = '';
comment on function storage.list_times is 'Objects below a prefix in the order of a time, or the folders and objects of one level, after an entry.';

-- One page of a folder, by number of entries to skip: names are those within the folder, and a folder is a row with a name only.
create function storage.search(
  prefix text, bucketname text, limits integer default 100, levels integer default 1, offsets integer default 0, search text default '',
  sortcolumn text default 'name', sortorder text default 'asc'
) returns table (
  name text, id uuid, updated_at timestamptz, created_at timestamptz, last_accessed_at timestamptz, metadata jsonb, user_metadata jsonb
) as $$
#variable_conflict use_column
declare
  v_is_descending boolean := sortorder ilike 'desc';
begin
  if sortcolumn = 'name' and coalesce(search.search, '') = '' then
    return query
      select rtrim(substr(listed.entry, length(search.prefix) + 1), '/'), (listed.object).id, (listed.object).updated_at,
        (listed.object).created_at, (listed.object).last_accessed_at, (listed.object).metadata, (listed.object).user_metadata
      from storage.list_names(bucketname, search.prefix, true, v_is_descending, null, least(limits, 1500) + offsets) as listed
      offset offsets;
    return;
  end if;
  return query
    with named as (
      select objects.*, split_part(substr(objects.name, length(search.prefix) + 1), '/', 1) as entry,
        strpos(substr(objects.name, length(search.prefix) + 1), '/') > 0 as is_folder
      from storage.objects
      where objects.bucket_id = bucketname and starts_with(objects.name, search.prefix)
        and starts_with(lower(substr(objects.name, length(search.prefix) + 1)), lower(coalesce(search.search, '')))
    ),
    entries as (
      select distinct named.entry, null::uuid as id, null::timestamptz as updated_at, null::timestamptz as created_at,
        null::timestamptz as last_accessed_at, null::jsonb as metadata, null::jsonb as user_metadata, 0 as place
      from named where named.is_folder
      union all
      select named.entry, named.id, named.updated_at, named.created_at, named.last_accessed_at, named.metadata, named.user_metadata,
        case when sortcolumn = 'name' then 0 else 1 end
      from named where not named.is_folder
    ),
    sorted as (
      select entries.*, case sortcolumn
        when 'updated_at' then entries.updated_at when 'created_at' then entries.created_at
        when 'last_accessed_at' then entries.last_accessed_at end as at
      from entries
    )
    select sorted.entry, sorted.id, sorted.updated_at, sorted.created_at, sorted.last_accessed_at, sorted.metadata, sorted.user_metadata
    from sorted
    order by sorted.place,
      case when not v_is_descending then sorted.at end, case when v_is_descending then sorted.at end desc,
      case when not v_is_descending then sorted.entry collate "C" end, case when v_is_descending then sorted.entry collate "C" end desc
    limit least(limits, 1500) offset offsets;
end;
$$ language plpgsql stable set search_path = '';
comment on function storage.search is 'One page of the folders and objects of a folder, as Supabase''s function of this name.';

create function storage.put_bucket(
  id text, owner text, public boolean, file_size_limit bigint, allowed_mime_types text[]
) returns void
language sql
begin atomic
  insert into storage.buckets (id, name, owner, owner_id, public, file_size_limit, allowed_mime_types)
    values (
      put_bucket.id, put_bucket.id,
      case when put_bucket.owner ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then cast(put_bucket.owner as uuid) end, put_bucket.owner,
      coalesce(put_bucket.public, false), put_bucket.file_size_limit, put_bucket.allowed_mime_types
    );
end;
comment on function storage.put_bucket is 'Adds a bucket.';

-- Null leaves a value as it is; clears names those that become null.
create function storage.change_bucket(
  id text, public boolean, file_size_limit bigint, allowed_mime_types text[], clears text[]
) returns setof text
language sql
begin atomic
  update storage.buckets set
    public = coalesce(change_bucket.public, buckets.public),
    file_size_limit = case when 'file_size_limit' = any (clears) then null
      else coalesce(change_bucket.file_size_limit, buckets.file_size_limit) end,
    allowed_mime_types = case when 'allowed_mime_types' = any (clears) then null
      else coalesce(change_bucket.allowed_mime_types, buckets.allowed_mime_types) end,
    updated_at = now()
  where buckets.id = change_bucket.id
  returning buckets.id;
end;
comment on function storage.change_bucket is 'Changes settings of a bucket.';

create function storage.find_buckets(
  id text, search text, sort_column text, is_descending boolean, max_rows integer, skipped integer
) returns setof storage.buckets as $$
  select buckets.* from storage.buckets
  where (find_buckets.id is null or buckets.id = find_buckets.id)
    and (find_buckets.search is null or strpos(lower(buckets.name), lower(find_buckets.search)) > 0)
  order by
    case when not is_descending then case sort_column
      when 'created_at' then buckets.created_at::text when 'updated_at' then buckets.updated_at::text else buckets.name end end collate "C",
    case when is_descending then case sort_column
      when 'created_at' then buckets.created_at::text when 'updated_at' then buckets.updated_at::text else buckets.name end end collate "C" desc
  limit max_rows offset skipped;
$$ language sql stable set search_path = '';
comment on function storage.find_buckets is 'The buckets that the caller may read.';

create function storage.remove_bucket(id text) returns setof text
language sql
begin atomic
  delete from storage.buckets where buckets.id = remove_bucket.id returning buckets.id;
end;
comment on function storage.remove_bucket is 'Deletes a bucket without objects.';

create function storage.empty_bucket(id text) returns bigint
language sql
begin atomic
  with removed as (delete from storage.objects where objects.bucket_id = empty_bucket.id returning 1) select count(*) from removed;
end;
comment on function storage.empty_bucket is 'Deletes the objects of a bucket that the caller may delete.';

grant execute on function
  storage.end_of_prefix, storage.put_object, storage.find_objects, storage.remove_objects, storage.move_object, storage.list_names, storage.list_times,
  storage.search, storage.put_bucket, storage.change_bucket, storage.find_buckets, storage.remove_bucket, storage.empty_bucket
  to anon, authenticated, service_role;

-- What the service does as the owner, with the login of requests.
create function content_service.bucket_terms(bucket text, out is_public boolean, out file_size_limit bigint, out allowed_mime_types text[])
returns setof record
language sql stable security definer set search_path = ''
begin atomic
  select coalesce(buckets.public, false), buckets.file_size_limit, buckets.allowed_mime_types
  from storage.buckets where buckets.id = bucket;
end;
comment on function content_service.bucket_terms is 'Whether everybody may download from a bucket, and what may be uploaded, whoever asks.';

create function content_service.public_object(bucket text, name text) returns setof storage.objects as $$
  select objects.* from storage.objects join storage.buckets on buckets.id = objects.bucket_id
  where objects.bucket_id = bucket and objects.name = public_object.name and buckets.public;
$$ language sql stable security definer set search_path = '';
comment on function content_service.public_object is 'An object of a public bucket.';

create function content_service.signed_object(bucket text, name text) returns setof storage.objects as $$
  select objects.* from storage.objects where objects.bucket_id = bucket and objects.name = signed_object.name;
$$ language sql stable security definer set search_path = '';
comment on function content_service.signed_object is 'An object whose address the service has signed.';

create function content_service.put_signed_object(
  bucket text, name text, owner text, metadata jsonb, user_metadata jsonb, version text, replaces boolean
) returns void
language sql security definer set search_path = ''
begin atomic
  select storage.put_object(
    put_signed_object.bucket, put_signed_object.name, put_signed_object.owner, put_signed_object.metadata, put_signed_object.user_metadata,
    put_signed_object.version, put_signed_object.replaces
  );
end;
comment on function content_service.put_signed_object is 'Adds or replaces an object for an address that the service has signed.';

-- Waits for the collector, which deletes the content and this row together; afterwards the service stores the content before it commits.
-- A content that was found in the file store has no size until an object names it.
create function content_service.keep_file(hash text, bytes bigint) returns void
language sql security definer set search_path = ''
begin atomic
  insert into content_service.files (hash, bytes, released_at) values (keep_file.hash, keep_file.bytes, clock_timestamp())
    on conflict (hash) do update set bytes = greatest(files.bytes, excluded.bytes), released_at = clock_timestamp();
end;
comment on function content_service.keep_file is 'Notes a content that an object is about to name.';

create function content_service.name_content(bucket text, name text, hash text) returns setof uuid
language sql security definer set search_path = ''
begin atomic
  -- Held until the commit: a bound that is set meanwhile waits, and counts this object.
  select from storage.buckets where buckets.id = bucket for key share;
  update content_service.files set released_at = null where files.hash = name_content.hash;
  update storage.objects set content = name_content.hash
    where objects.bucket_id = bucket and objects.name = name_content.name
    returning objects.id;
end;
comment on function content_service.name_content is 'Gives an object its content.';

-- Contents that the file store has and the database does not know: of uploads that ended before their commit, or of a restored database.
create function content_service.note_stray_files(hashes text[]) returns void
language sql security definer set search_path = ''
begin atomic
  insert into content_service.files (hash, bytes, released_at) select unnest, 0, clock_timestamp() from unnest(hashes) on conflict (hash) do nothing;
end;
comment on function content_service.note_stray_files is 'Notes contents of the file store without an object, which are deleted after a while.';

grant execute on function
  content_service.bucket_terms, content_service.public_object, content_service.signed_object, content_service.put_signed_object,
  content_service.keep_file, content_service.name_content
  to authenticator;

--! Previous: sha1:7e26a5f93d6cf60524cdbc42d7bbc39e98d54f5e
--! Hash: sha1:4a5c0c3850cba66c4c85a42df2f50fcf3c8f7690
--! Message: files

-- Files: buckets and objects, by Supabase's names. A row names its content; the bytes are in the file store, under the digest of the content.
--
-- A database that is moved here may have Supabase's tables already: they are taken over. Other tables of these names are not changed.
create schema if not exists storage;
do $$
begin
  if exists (
    select from unnest('{id,bucket_id,name,owner_id,metadata,version}'::text[]) as needed (name)
    where to_regclass('storage.objects') is not null and not exists (
      select from pg_attribute where attrelid = to_regclass('storage.objects') and attname = needed.name and not attisdropped
    )
  ) then
    raise exception 'the table storage.objects is not the one of the storage interface'
      using errcode = '42P07', hint = 'Rename it or its schema, and run the migrations again.';
  end if;
end $$;
grant usage on schema storage to anon, authenticated, service_role;
comment on schema storage is 'Files: buckets, objects and helpers for their policies.';

-- Each content that an object may name. The row is written when the bytes are safe, and deleted together with them.
create table private.files (
  hash        text primary key check (hash ~ '^[0-9a-f]{64}$'),
  bytes       bigint not null check (bytes >= 0),
  stored_at   timestamptz not null default now(),
  released_at timestamptz
);
create index on private.files (released_at) where released_at is not null;
alter table private.files enable row level security;
comment on table private.files is 'The contents of objects, in the file store.';
comment on column private.files.hash is 'The SHA-256 of the content, and its name in the file store.';
comment on column private.files.bytes is 'The size of the content.';
comment on column private.files.stored_at is 'When it was stored first.';
comment on column private.files.released_at is 'When the last object that named it may have gone; null while one names it.';

create table if not exists storage.buckets (
  id                 text primary key,
  name               text not null unique,
  owner              uuid,
  public             boolean default false,
  avif_autodetection boolean default false,
  file_size_limit    bigint,
  allowed_mime_types text[],
  owner_id           text,
  created_at         timestamptz default now(),
  updated_at         timestamptz default now()
);
create table if not exists storage.objects (
  id               uuid primary key default gen_random_uuid(),
  bucket_id        text references storage.buckets,
  name             text,
  owner            uuid,
  owner_id         text,
  metadata         jsonb,
  user_metadata    jsonb,
  version          text,
  path_tokens      text[] generated always as (string_to_array(name, '/')) stored,
  created_at       timestamptz default now(),
  updated_at       timestamptz default now(),
  last_accessed_at timestamptz default now()
);
alter table storage.buckets
  add column if not exists type text not null default 'STANDARD',
  add constraint bucket_name_is_valid check (id ~ '^[\w!\-.*''() &$@=;:+,?]{1,100}$' and name = id) not valid;
alter table storage.objects
  add column if not exists user_metadata jsonb,
  add column if not exists content text references private.files,
  -- A row belongs to a bucket and has a name that is one in every file system and URL.
  add constraint object_name_is_valid check (
    name <> '' and octet_length(name) <= 1024 and name !~ '[\x01-\x1f\x7f]' and name !~ '(^|/)\.{1,2}(/|$)' and name !~ '^/'
  ) not valid;
create unique index if not exists bucketid_objname on storage.objects (bucket_id, name);
create index if not exists objects_by_name on storage.objects (bucket_id, name collate "C");
create index if not exists objects_by_content on storage.objects (content);
alter table storage.buckets enable row level security;
alter table storage.objects enable row level security;
grant all on storage.buckets, storage.objects to anon, authenticated, service_role;
create policy admin_all on storage.buckets to admin using (true) with check (true);
create policy admin_all on storage.objects to admin using (true) with check (true);
comment on constraint buckets_pkey on storage.buckets is 'A bucket has this id already: choose another.';
comment on constraint buckets_name_key on storage.buckets is 'A bucket has this name already: choose another.';
comment on constraint bucket_name_is_valid on storage.buckets is 'A bucket is named by 1 to 100 letters, digits and !-_.*''() &$@=;:+,? and its id and name are equal.';
comment on constraint objects_pkey on storage.objects is 'An object has this id already: let the database choose it.';
comment on constraint objects_bucket_id_fkey on storage.objects is 'The bucket does not exist, or has objects: create it, or empty it.';
comment on constraint objects_content_fkey on storage.objects is 'The content is not stored: upload it.';
comment on constraint object_name_is_valid on storage.objects is 'A name has 1 to 1024 bytes, no control characters, no segment . or .. and no slash at its beginning.';
comment on index storage.bucketid_objname is 'The bucket has an object of this name already: replace it, or choose another name.';
comment on table storage.buckets is 'Buckets: folders with a limit of size and of types, public or not.';
comment on column storage.buckets.id is 'The name of the bucket in addresses.';
comment on column storage.buckets.name is 'The same as the id.';
comment on column storage.buckets.owner is 'The user who made it, if users are numbered by uuid.';
comment on column storage.buckets.public is 'Whether everybody may download its objects by their address.';
comment on column storage.buckets.avif_autodetection is 'Not used.';
comment on column storage.buckets.file_size_limit is 'The largest object in bytes; null is the limit of the deployment.';
comment on column storage.buckets.allowed_mime_types is 'The accepted content types, such as image/* or image/png; null accepts all.';
comment on column storage.buckets.owner_id is 'The user who made it.';
comment on column storage.buckets.type is 'Always STANDARD.';
comment on column storage.buckets.created_at is 'When it was created.';
comment on column storage.buckets.updated_at is 'When it was changed last.';
comment on table storage.objects is 'Objects: who may do what with a file is decided by the policies of this table.';
comment on column storage.objects.id is 'The id.';
comment on column storage.objects.bucket_id is 'The bucket.';
comment on column storage.objects.name is 'The path within the bucket.';
comment on column storage.objects.owner is 'The user who uploaded it, if users are numbered by uuid.';
comment on column storage.objects.owner_id is 'The user who uploaded it.';
comment on column storage.objects.metadata is 'Size, type, ETag and cache control, as the service has found them.';
comment on column storage.objects.user_metadata is 'What the uploader says about it.';
comment on column storage.objects.version is 'Changes with each upload.';
comment on column storage.objects.path_tokens is 'The folders and the name.';
comment on column storage.objects.created_at is 'When it was uploaded first.';
comment on column storage.objects.updated_at is 'When it was changed last.';
comment on column storage.objects.last_accessed_at is 'Not used.';
comment on column storage.objects.content is 'The digest of the content; set by the service alone. Null: a row without a file.';

-- Helpers for policies.
create or replace function storage.foldername(name text) returns text[]
language sql immutable parallel safe
return (string_to_array(name, '/'))[:array_length(string_to_array(name, '/'), 1) - 1];
create or replace function storage.filename(name text) returns text
language sql immutable parallel safe
return (string_to_array(name, '/'))[array_length(string_to_array(name, '/'), 1)];
create or replace function storage.extension(name text) returns text
language sql immutable parallel safe
return reverse(split_part(reverse(storage.filename(name)), '.', 1));
create or replace function storage.get_size_by_bucket() returns table (size bigint, bucket_id text)
language sql stable
begin atomic
  select sum((objects.metadata ->> 'size')::bigint)::bigint, objects.bucket_id from storage.objects group by objects.bucket_id;
end;
grant execute on function storage.foldername, storage.filename, storage.extension, storage.get_size_by_bucket
  to anon, authenticated, service_role;
comment on function storage.foldername is 'The folders of an object: {a,b} of a/b/c.png.';
comment on function storage.filename is 'The name without folders: c.png of a/b/c.png.';
comment on function storage.extension is 'The extension: png of a/b/c.png.';
comment on function storage.get_size_by_bucket is 'The size of the objects that the caller may read, by bucket.';

-- A caller who may write rows must not name the content of somebody else: only the service sets it, as the owner.
create function private.tg_objects__keep_content() returns trigger as $$
begin
  if not pg_has_role(current_user, (select relowner from pg_class where oid = TG_RELID), 'usage') then
    if TG_OP = 'INSERT' then
      NEW.content := null;
    else
      NEW.content := OLD.content;
    end if;
  end if;
  if TG_OP = 'UPDATE' then
    NEW.updated_at := now();
  end if;
  return NEW;
end;
$$ language plpgsql set search_path = '';
comment on function private.tg_objects__keep_content is 'Lets the owner alone name contents, and notes when an object was changed.';
create trigger _900_keep_content before insert or update on storage.objects
  for each row execute function private.tg_objects__keep_content();

create function private.tg_objects__release_content() returns trigger as $$
begin
  update private.files set released_at = clock_timestamp() where hash = OLD.content;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.tg_objects__release_content is 'Notes that a content may be without an object.';
create trigger _900_release_deleted after delete on storage.objects
  for each row when (OLD.content is not null) execute function private.tg_objects__release_content();
create trigger _900_release_replaced after update of content on storage.objects
  for each row when (OLD.content is not null and OLD.content is distinct from NEW.content)
  execute function private.tg_objects__release_content();

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
create function private.bucket_terms(bucket text, out is_public boolean, out file_size_limit bigint, out allowed_mime_types text[])
returns setof record
language sql stable security definer
begin atomic
  select coalesce(buckets.public, false), buckets.file_size_limit, buckets.allowed_mime_types
  from storage.buckets where buckets.id = bucket;
end;
comment on function private.bucket_terms is 'Whether everybody may download from a bucket, and what may be uploaded, whoever asks.';

create function private.public_object(bucket text, name text) returns setof storage.objects as $$
  select objects.* from storage.objects join storage.buckets on buckets.id = objects.bucket_id
  where objects.bucket_id = bucket and objects.name = public_object.name and buckets.public;
$$ language sql stable security definer set search_path = '';
comment on function private.public_object is 'An object of a public bucket.';

create function private.signed_object(bucket text, name text) returns setof storage.objects as $$
  select objects.* from storage.objects where objects.bucket_id = bucket and objects.name = signed_object.name;
$$ language sql stable security definer set search_path = '';
comment on function private.signed_object is 'An object whose address the service has signed.';

create function private.put_signed_object(
  bucket text, name text, owner text, metadata jsonb, user_metadata jsonb, version text, replaces boolean
) returns void
language sql security definer
begin atomic
  select storage.put_object(
    put_signed_object.bucket, put_signed_object.name, put_signed_object.owner, put_signed_object.metadata, put_signed_object.user_metadata,
    put_signed_object.version, put_signed_object.replaces
  );
end;
comment on function private.put_signed_object is 'Adds or replaces an object for an address that the service has signed.';

-- Waits for the collector, which deletes the content and this row together; afterwards the service stores the content before it commits.
create function private.keep_file(hash text, bytes bigint) returns void
language sql security definer
begin atomic
  insert into private.files (hash, bytes, released_at) values (keep_file.hash, keep_file.bytes, clock_timestamp())
    on conflict (hash) do update set released_at = clock_timestamp();
end;
comment on function private.keep_file is 'Notes a content that an object is about to name.';

create function private.name_content(bucket text, name text, hash text) returns setof uuid
language sql security definer
begin atomic
  update private.files set released_at = null where files.hash = name_content.hash;
  update storage.objects set content = name_content.hash
    where objects.bucket_id = bucket and objects.name = name_content.name
    returning objects.id;
end;
comment on function private.name_content is 'Gives an object its content.';

-- Locks what it returns until the transaction ends: nobody can name these contents meanwhile.
create function private.take_unused_files(grace interval, max_files integer) returns setof text as $$
begin
  update private.files set released_at = null
    where released_at < clock_timestamp() - grace and exists (select from storage.objects where content = files.hash);
  return query
    delete from private.files where hash in (
      select unused.hash from private.files as unused
      where unused.released_at < clock_timestamp() - grace
        and not exists (select from storage.objects where objects.content = unused.hash)
      order by unused.released_at limit max_files for update skip locked
    ) returning files.hash;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.take_unused_files is 'Forgets contents that no object has named for a while, and returns them to be deleted.';

-- Contents that the file store has and the database does not know: of uploads that ended before their commit, or of a restored database.
create function private.note_stray_files(hashes text[]) returns void
language sql security definer
begin atomic
  insert into private.files (hash, bytes, released_at) select unnest, 0, clock_timestamp() from unnest(hashes) on conflict (hash) do nothing;
end;
comment on function private.note_stray_files is 'Notes contents of the file store without an object, which are deleted after a while.';

grant execute on function
  private.bucket_terms, private.public_object, private.signed_object, private.put_signed_object,
  private.keep_file, private.name_content
  to authenticator;

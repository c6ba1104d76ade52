--! Previous: sha1:a2939f516cbb9c686f9853aae0f9f712c2753b79
--! Hash: sha1:75aa37505693de5a6dd07cb5437ea92dea38d259

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
create table content_service.files (
  hash        text primary key check (hash ~ '^[0-9a-f]{64}$'),
  bytes       bigint not null check (bytes >= 0),
  stored_at   timestamptz not null default now(),
  released_at timestamptz
);
create index on content_service.files (released_at) where released_at is not null;
alter table content_service.files enable row level security;
comment on table content_service.files is 'The contents of objects, in the file store.';
comment on column content_service.files.hash is 'The SHA-256 of the content, and its name in the file store.';
comment on column content_service.files.bytes is 'The size of the content.';
comment on column content_service.files.stored_at is 'When it was stored first.';
comment on column content_service.files.released_at is 'When the last object that named it may have gone; null while one names it.';

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
  -- How much a bucket may have, all objects together and those of one owner.
  add column max_bytes bigint check (max_bytes >= 0),
  add column max_bytes_of_owner bigint check (max_bytes_of_owner >= 0),
  add constraint bucket_name_is_valid check (id ~ '^[\w!\-.*''() &$@=;:+,?]{1,100}$' and name = id) not valid;
alter table storage.objects
  add column if not exists user_metadata jsonb,
  add column if not exists content text references content_service.files,
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
comment on constraint buckets_max_bytes_check on storage.buckets is 'The bound is a number of bytes from 0.';
comment on constraint buckets_max_bytes_of_owner_check on storage.buckets is 'The bound is a number of bytes from 0.';
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
comment on column storage.buckets.max_bytes is 'What all objects together may take, in bytes; null is without bound.';
comment on column storage.buckets.max_bytes_of_owner is 'What the objects of one owner may take, in bytes; null is without bound.';
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
create function content_service.tg_objects__keep_content() returns trigger as $$
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
comment on function content_service.tg_objects__keep_content is 'Lets the owner alone name contents, and notes when an object was changed.';
create trigger _900_keep_content before insert or update on storage.objects
  for each row execute function content_service.tg_objects__keep_content();

create function content_service.tg_objects__release_content() returns trigger as $$
begin
  update content_service.files set released_at = clock_timestamp() where hash = OLD.content;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.tg_objects__release_content is 'Notes that a content may be without an object.';
create trigger _900_release_deleted after delete on storage.objects
  for each row when (OLD.content is not null) execute function content_service.tg_objects__release_content();
create trigger _900_release_replaced after update of content on storage.objects
  for each row when (OLD.content is not null and OLD.content is distinct from NEW.content)
  execute function content_service.tg_objects__release_content();

-- What objects take, in buckets that are bounded.
create table content_service.bucket_usage (
  bucket_id text not null references storage.buckets on update cascade on delete cascade,
  owner_id  text not null,
  bytes     bigint not null,
  primary key (bucket_id, owner_id)
);
alter table content_service.bucket_usage enable row level security;
comment on table content_service.bucket_usage is 'What the objects of each owner take, in buckets that are bounded.';
comment on column content_service.bucket_usage.owner_id is 'The owner; empty for objects without one.';
comment on column content_service.bucket_usage.bytes is 'The bytes of the contents.';

-- An object counts as what its content has, whatever its metadata say.
create function content_service.add_bucket_usage(bucket_ids text[], owner_ids text[], bytes bigint[]) returns void as $$
declare
  v_over text;
begin
  -- In the order of the key, so that transactions do not deadlock.
  insert into content_service.bucket_usage as usage (bucket_id, owner_id, bytes)
    select changed.bucket_id, changed.owner_id, sum(changed.bytes)
    from unnest(bucket_ids, owner_ids, add_bucket_usage.bytes) as changed (bucket_id, owner_id, bytes)
    where exists (select from storage.buckets where buckets.id = changed.bucket_id)
    group by changed.bucket_id, changed.owner_id having sum(changed.bytes) <> 0
    order by changed.bucket_id, changed.owner_id
    on conflict (bucket_id, owner_id) do update set bytes = usage.bytes + excluded.bytes;
  select buckets.id into v_over from unnest(bucket_ids, owner_ids, add_bucket_usage.bytes) as changed (bucket_id, owner_id, bytes)
    join storage.buckets on buckets.id = changed.bucket_id
    where changed.bytes > 0 and (
      (select sum(usage.bytes) from content_service.bucket_usage as usage where usage.bucket_id = buckets.id) > buckets.max_bytes
      or (select usage.bytes from content_service.bucket_usage as usage where usage.bucket_id = buckets.id and usage.owner_id = changed.owner_id)
        > buckets.max_bytes_of_owner
    ) limit 1;
  if found then
    raise exception 'The bucket % is full.', v_over using errcode = 'PT413', hint = 'Delete objects that are not needed.';
  end if;
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.add_bucket_usage is 'Counts contents of objects that were added, or with negative sizes removed; throws beyond the bound of a bucket.';

create function content_service.tg_objects__count_usage() returns trigger as $$
declare
  v_bucket_ids text[];
  v_owner_ids text[];
  v_bytes bigint[];
begin
  if not exists (select from storage.buckets where max_bytes is not null or max_bytes_of_owner is not null) then
    return null;
  end if;
  if TG_OP = 'INSERT' then
    select array_agg(bucket_id), array_agg(coalesce(owner_id, '')), array_agg(files.bytes) into v_bucket_ids, v_owner_ids, v_bytes
      from new_rows join content_service.files on hash = content;
  elsif TG_OP = 'DELETE' then
    select array_agg(bucket_id), array_agg(coalesce(owner_id, '')), array_agg(-files.bytes) into v_bucket_ids, v_owner_ids, v_bytes
      from old_rows join content_service.files on hash = content;
  else
    select array_agg(changed.bucket_id), array_agg(changed.owner_id), array_agg(changed.bytes) into v_bucket_ids, v_owner_ids, v_bytes
      from (
        select bucket_id, coalesce(owner_id, '') as owner_id, sum(bytes)::bigint as bytes from (
          select bucket_id, owner_id, files.bytes from new_rows join content_service.files on hash = content
          union all
          select bucket_id, owner_id, -files.bytes from old_rows join content_service.files on hash = content
        ) as both_rows group by 1, 2 having sum(bytes) <> 0
      ) as changed;
  end if;
  if v_bucket_ids is not null then
    perform content_service.add_bucket_usage(bucket_ids, owner_ids, bytes) from (
      select array_agg(bounded.bucket_id) as bucket_ids, array_agg(bounded.owner_id) as owner_ids, array_agg(bounded.bytes) as bytes
      from unnest(v_bucket_ids, v_owner_ids, v_bytes) as bounded (bucket_id, owner_id, bytes)
      join storage.buckets on buckets.id = bounded.bucket_id and (max_bytes is not null or max_bytes_of_owner is not null)
    ) as sums where bucket_ids is not null;
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.tg_objects__count_usage is 'Counts what objects take, in buckets that are bounded.';
create trigger _900_count_added after insert on storage.objects
  referencing new table as new_rows for each statement execute function content_service.tg_objects__count_usage();
create trigger _900_count_changed after update on storage.objects
  referencing old table as old_rows new table as new_rows for each statement execute function content_service.tg_objects__count_usage();
create trigger _900_count_removed after delete on storage.objects
  referencing old table as old_rows for each statement execute function content_service.tg_objects__count_usage();

create function content_service.tg_buckets__count_usage() returns trigger as $$
begin
  -- Waits for uploads to the bucket that were counted before it was bounded.
  perform from storage.buckets where id = NEW.id for update;
  delete from content_service.bucket_usage where bucket_id = NEW.id;
  if NEW.max_bytes is not null or NEW.max_bytes_of_owner is not null then
    insert into content_service.bucket_usage (bucket_id, owner_id, bytes)
      select NEW.id, coalesce(objects.owner_id, ''), sum(files.bytes) from storage.objects join content_service.files on files.hash = objects.content
      where objects.bucket_id = NEW.id group by 2;
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.tg_buckets__count_usage is 'Counts what a bucket has when its bounds are set.';
create trigger _900_count_usage after update of max_bytes, max_bytes_of_owner on storage.buckets
  for each row when ((OLD.max_bytes, OLD.max_bytes_of_owner) is distinct from (NEW.max_bytes, NEW.max_bytes_of_owner))
  execute function content_service.tg_buckets__count_usage();

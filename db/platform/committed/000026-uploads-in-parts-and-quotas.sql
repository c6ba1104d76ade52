--! Previous: sha1:5928b2cf733916c99bb8c7b8de2f7c81f26294c4
--! Hash: sha1:9a75af6ec8ed88d4587e906d26b2b2ea1dbd9633
--! Message: uploads in parts and quotas

-- Uploads in parts, by the protocol of S3. The bytes of parts are contents of the file store.
create table private.unfinished_uploads (
  id         uuid primary key,
  caller     text not null,
  quota_key  text not null,
  bucket_id  text not null references storage.buckets on update cascade on delete cascade,
  name       text not null,
  about      jsonb not null default '{}',
  bytes      bigint not null default 0 check (bytes >= 0),
  started_at timestamptz not null default now()
);
create index unfinished_uploads_by_quota on private.unfinished_uploads (quota_key);
create index unfinished_uploads_by_name on private.unfinished_uploads (bucket_id, name collate "C", id);
create index unfinished_uploads_by_age on private.unfinished_uploads (started_at);
alter table private.unfinished_uploads enable row level security;
comment on table private.unfinished_uploads is 'Uploads in parts, until they are finished or a day has passed.';
comment on column private.unfinished_uploads.caller is 'Who has begun it, and alone goes on with it.';
comment on column private.unfinished_uploads.quota_key is 'Whose uploads are counted together.';
comment on column private.unfinished_uploads.about is 'The metadata of the object.';
comment on column private.unfinished_uploads.bytes is 'The size of its parts.';

create table private.upload_parts (
  upload_id uuid not null references private.unfinished_uploads on delete cascade,
  number    integer not null check (number between 1 and 10000),
  content   text not null references private.files,
  bytes     bigint not null check (bytes >= 0),
  stored_at timestamptz not null default now(),
  primary key (upload_id, number)
);
create index upload_parts_by_content on private.upload_parts (content);
alter table private.upload_parts enable row level security;
comment on table private.upload_parts is 'The parts of an upload by S3.';
comment on column private.upload_parts.number is 'The place among the parts.';
comment on column private.upload_parts.content is 'The content of the part.';
comment on column private.upload_parts.bytes is 'Its size.';
create trigger _900_release_deleted after delete on private.upload_parts
  for each row execute function private.tg_objects__release_content();
create trigger _900_release_replaced after update of content on private.upload_parts
  for each row when (OLD.content is distinct from NEW.content) execute function private.tg_objects__release_content();

insert into private.bounds (name, bound) values
  ('unfinished uploads of a caller', 200), ('bytes of unfinished uploads of a caller', 5368709120);

-- Throws if the caller has too much that is unfinished; one upload of the largest size is always allowed.
create function private.check_unfinished_uploads(quota_key text, max_bytes bigint) returns void as $$
declare
  v_uploads bigint;
  v_bytes numeric;
begin
  select count(*), coalesce(sum(bytes), 0) into v_uploads, v_bytes
    from private.unfinished_uploads where unfinished_uploads.quota_key = check_unfinished_uploads.quota_key;
  if v_uploads > private.bound('unfinished uploads of a caller')
    or v_bytes > greatest(private.bound('bytes of unfinished uploads of a caller'), max_bytes) then
    raise exception 'Too many unfinished uploads.'
      using errcode = 'PT429', hint = 'Finish or abort some; those of more than a day are deleted.';
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function private.check_unfinished_uploads is 'Throws if uploads that are not finished take more of the file store than a caller may.';

-- Roles that bypass policies are servers of the operator.
create function private.is_upload_bounded(role text) returns boolean
language sql stable
return not coalesce((select rolbypassrls or rolsuper from pg_roles where rolname = is_upload_bounded.role), false);
comment on function private.is_upload_bounded is 'Whether unfinished uploads of callers in the role are bounded.';

create function private.begin_upload(
  id uuid, caller text, quota_key text, role text, bucket text, name text, about jsonb, max_bytes bigint
) returns void as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('unfinished uploads of ' || begin_upload.quota_key, 0));
  insert into private.unfinished_uploads (id, caller, quota_key, bucket_id, name, about)
    values (begin_upload.id, begin_upload.caller, begin_upload.quota_key, bucket, begin_upload.name, begin_upload.about);
  if private.is_upload_bounded(begin_upload.role) then
    perform private.check_unfinished_uploads(begin_upload.quota_key, begin_upload.max_bytes);
  end if;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.begin_upload is 'Begins an upload in parts.';

create function private.find_upload(id uuid, caller text) returns setof private.unfinished_uploads as $$
  select unfinished_uploads.* from private.unfinished_uploads
  where unfinished_uploads.id = find_upload.id and unfinished_uploads.caller = find_upload.caller;
$$ language sql stable security definer set search_path = '';
comment on function private.find_upload is 'An upload in parts that the caller has begun.';

create function private.list_uploads(bucket text, caller text, prefix text, after_name text, after_id uuid, max_rows integer)
returns setof private.unfinished_uploads as $$
  select unfinished_uploads.* from private.unfinished_uploads
  where unfinished_uploads.bucket_id = bucket and unfinished_uploads.caller = list_uploads.caller
    and starts_with(unfinished_uploads.name, prefix)
    and (after_name is null or unfinished_uploads.name collate "C" > after_name
      or (unfinished_uploads.name = after_name and unfinished_uploads.id > after_id))
  order by unfinished_uploads.name collate "C", unfinished_uploads.id limit max_rows;
$$ language sql stable security definer set search_path = '';
comment on function private.list_uploads is 'Uploads in parts that the caller has begun, by name.';

-- The content is stored: keep_file and this function run in one transaction.
create function private.put_part(id uuid, role text, number integer, hash text, bytes bigint, max_bytes bigint) returns boolean as $$
#variable_conflict use_column
declare
  v_upload private.unfinished_uploads;
  v_before bigint;
begin
  select * into v_upload from private.unfinished_uploads where unfinished_uploads.id = put_part.id for update;
  if not found then
    return false;
  end if;
  select upload_parts.bytes into v_before from private.upload_parts where upload_id = put_part.id and upload_parts.number = put_part.number;
  update private.files set released_at = null where files.hash = put_part.hash;
  insert into private.upload_parts (upload_id, number, content, bytes) values (put_part.id, put_part.number, put_part.hash, put_part.bytes)
    on conflict (upload_id, number) do update set content = excluded.content, bytes = excluded.bytes, stored_at = now();
  update private.unfinished_uploads set bytes = unfinished_uploads.bytes + put_part.bytes - coalesce(v_before, 0)
    where unfinished_uploads.id = put_part.id returning * into v_upload;
  if v_upload.bytes > put_part.max_bytes then
    raise exception 'The object exceeded the maximum allowed size' using errcode = 'PT413';
  end if;
  if private.is_upload_bounded(put_part.role) then
    perform private.check_unfinished_uploads(v_upload.quota_key, put_part.max_bytes);
  end if;
  return true;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.put_part is 'Adds or replaces a part; false if the upload has ended.';

create function private.list_parts(id uuid, after_number integer, max_rows integer) returns setof private.upload_parts as $$
  select upload_parts.* from private.upload_parts
  where upload_parts.upload_id = list_parts.id and upload_parts.number > after_number
  order by upload_parts.number limit max_rows;
$$ language sql stable security definer set search_path = '';
comment on function private.list_parts is 'The parts of an upload, by number.';

create function private.end_upload(id uuid) returns void
language sql security definer
begin atomic
  delete from private.unfinished_uploads where unfinished_uploads.id = end_upload.id;
end;
comment on function private.end_upload is 'Forgets an upload that is finished or was aborted.';

create function private.expire_uploads(age interval) returns void
language sql security definer
begin atomic
  delete from private.unfinished_uploads where unfinished_uploads.started_at < now() - age;
end;
comment on function private.expire_uploads is 'Forgets uploads that nobody has finished.';

-- Rows that a transaction of the owner reads, such as a backup, were not deleted before it began: their contents stay as long as it runs.
create or replace function private.take_unused_files(grace interval, max_files integer) returns setof text as $$
declare
  v_before timestamptz := least(
    clock_timestamp() - grace,
    (select min(xact_start) from pg_catalog.pg_stat_activity where datname = current_database() and pid <> pg_backend_pid())
  );
begin
  -- Skipping locked rows: uploads lock contents in another order, and would wait for this in a circle.
  update private.files set released_at = null where hash in (
    select named.hash from private.files as named
    where named.released_at < v_before and (
      exists (select from storage.objects where objects.content = named.hash)
      or exists (select from private.upload_parts where upload_parts.content = named.hash)
    ) for update skip locked
  );
  return query
    delete from private.files where hash in (
      select unused.hash from private.files as unused
      where unused.released_at < v_before
        and not exists (select from storage.objects where objects.content = unused.hash)
        and not exists (select from private.upload_parts where upload_parts.content = unused.hash)
      order by unused.released_at limit max_files for update skip locked
    ) returning files.hash;
end;
$$ language plpgsql security definer set search_path = '';

-- A content that was found in the file store has no size until an object names it.
create or replace function private.keep_file(hash text, bytes bigint) returns void
language sql security definer
begin atomic
  insert into private.files (hash, bytes, released_at) values (keep_file.hash, keep_file.bytes, clock_timestamp())
    on conflict (hash) do update set bytes = greatest(files.bytes, excluded.bytes), released_at = clock_timestamp();
end;

-- How much a bucket may have, all objects together and those of one owner.
alter table storage.buckets
  add column max_bytes bigint check (max_bytes >= 0),
  add column max_bytes_of_owner bigint check (max_bytes_of_owner >= 0);
comment on constraint buckets_max_bytes_check on storage.buckets is 'The bound is a number of bytes from 0.';
comment on constraint buckets_max_bytes_of_owner_check on storage.buckets is 'The bound is a number of bytes from 0.';
comment on column storage.buckets.max_bytes is 'What all objects together may take, in bytes; null is without bound.';
comment on column storage.buckets.max_bytes_of_owner is 'What the objects of one owner may take, in bytes; null is without bound.';

create table private.bucket_usage (
  bucket_id text not null references storage.buckets on update cascade on delete cascade,
  owner_id  text not null,
  bytes     bigint not null,
  primary key (bucket_id, owner_id)
);
alter table private.bucket_usage enable row level security;
comment on table private.bucket_usage is 'What the objects of each owner take, in buckets that are bounded.';
comment on column private.bucket_usage.owner_id is 'The owner; empty for objects without one.';
comment on column private.bucket_usage.bytes is 'The bytes of the contents.';

-- An object counts as what its content has, whatever its metadata say.
create function private.add_bucket_usage(bucket_ids text[], owner_ids text[], bytes bigint[]) returns void as $$
declare
  v_over text;
begin
  -- In the order of the key, so that transactions do not deadlock.
  insert into private.bucket_usage as usage (bucket_id, owner_id, bytes)
    select changed.bucket_id, changed.owner_id, sum(changed.bytes)
    from unnest(bucket_ids, owner_ids, add_bucket_usage.bytes) as changed (bucket_id, owner_id, bytes)
    where exists (select from storage.buckets where buckets.id = changed.bucket_id)
    group by changed.bucket_id, changed.owner_id having sum(changed.bytes) <> 0
    order by changed.bucket_id, changed.owner_id
    on conflict (bucket_id, owner_id) do update set bytes = usage.bytes + excluded.bytes;
  select buckets.id into v_over from unnest(bucket_ids, owner_ids, add_bucket_usage.bytes) as changed (bucket_id, owner_id, bytes)
    join storage.buckets on buckets.id = changed.bucket_id
    where changed.bytes > 0 and (
      (select sum(usage.bytes) from private.bucket_usage as usage where usage.bucket_id = buckets.id) > buckets.max_bytes
      or (select usage.bytes from private.bucket_usage as usage where usage.bucket_id = buckets.id and usage.owner_id = changed.owner_id)
        > buckets.max_bytes_of_owner
    ) limit 1;
  if found then
    raise exception 'The bucket % is full.', v_over using errcode = 'PT413', hint = 'Delete objects that are not needed.';
  end if;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.add_bucket_usage is 'Counts contents of objects that were added, or with negative sizes removed; throws beyond the bound of a bucket.';

create function private.tg_objects__count_usage() returns trigger as $$
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
      from new_rows join private.files on hash = content;
  elsif TG_OP = 'DELETE' then
    select array_agg(bucket_id), array_agg(coalesce(owner_id, '')), array_agg(-files.bytes) into v_bucket_ids, v_owner_ids, v_bytes
      from old_rows join private.files on hash = content;
  else
    select array_agg(changed.bucket_id), array_agg(changed.owner_id), array_agg(changed.bytes) into v_bucket_ids, v_owner_ids, v_bytes
      from (
        select bucket_id, coalesce(owner_id, '') as owner_id, sum(bytes)::bigint as bytes from (
          select bucket_id, owner_id, files.bytes from new_rows join private.files on hash = content
          union all
          select bucket_id, owner_id, -files.bytes from old_rows join private.files on hash = content
        ) as both_rows group by 1, 2 having sum(bytes) <> 0
      ) as changed;
  end if;
  if v_bucket_ids is not null then
    perform private.add_bucket_usage(bucket_ids, owner_ids, bytes) from (
      select array_agg(bounded.bucket_id) as bucket_ids, array_agg(bounded.owner_id) as owner_ids, array_agg(bounded.bytes) as bytes
      from unnest(v_bucket_ids, v_owner_ids, v_bytes) as bounded (bucket_id, owner_id, bytes)
      join storage.buckets on buckets.id = bounded.bucket_id and (max_bytes is not null or max_bytes_of_owner is not null)
    ) as sums where bucket_ids is not null;
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.tg_objects__count_usage is 'Counts what objects take, in buckets that are bounded.';
create trigger _900_count_added after insert on storage.objects
  referencing new table as new_rows for each statement execute function private.tg_objects__count_usage();
create trigger _900_count_changed after update on storage.objects
  referencing old table as old_rows new table as new_rows for each statement execute function private.tg_objects__count_usage();
create trigger _900_count_removed after delete on storage.objects
  referencing old table as old_rows for each statement execute function private.tg_objects__count_usage();

create function private.tg_buckets__count_usage() returns trigger as $$
begin
  -- Waits for uploads to the bucket that were counted before it was bounded.
  perform from storage.buckets where id = NEW.id for update;
  delete from private.bucket_usage where bucket_id = NEW.id;
  if NEW.max_bytes is not null or NEW.max_bytes_of_owner is not null then
    insert into private.bucket_usage (bucket_id, owner_id, bytes)
      select NEW.id, coalesce(objects.owner_id, ''), sum(files.bytes) from storage.objects join private.files on files.hash = objects.content
      where objects.bucket_id = NEW.id group by 2;
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.tg_buckets__count_usage is 'Counts what a bucket has when its bounds are set.';
create trigger _900_count_usage after update of max_bytes, max_bytes_of_owner on storage.buckets
  for each row when ((OLD.max_bytes, OLD.max_bytes_of_owner) is distinct from (NEW.max_bytes, NEW.max_bytes_of_owner))
  execute function private.tg_buckets__count_usage();

create or replace function private.name_content(bucket text, name text, hash text) returns setof uuid
language sql security definer
begin atomic
  -- Held until the commit: a bound that is set meanwhile waits, and counts this object.
  select from storage.buckets where buckets.id = bucket for key share;
  update private.files set released_at = null where files.hash = name_content.hash;
  update storage.objects set content = name_content.hash
    where objects.bucket_id = bucket and objects.name = name_content.name
    returning objects.id;
end;

grant execute on function
  private.begin_upload, private.find_upload, private.list_uploads, private.put_part, private.list_parts, private.end_upload
  to authenticator;

-- What these call sees no path of the caller, either.
alter function private.note_stray_files(text[]) set search_path = '';
alter function private.bucket_terms(text) set search_path = '';
alter function private.put_signed_object(text, text, text, jsonb, jsonb, text, boolean) set search_path = '';
alter function private.expire_uploads(interval) set search_path = '';
alter function private.keep_file(text, bigint) set search_path = '';
alter function private.name_content(text, text, text) set search_path = '';
alter function private.end_upload(uuid) set search_path = '';

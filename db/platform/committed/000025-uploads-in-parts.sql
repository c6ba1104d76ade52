--! Previous: sha1:a4293867bdf70ddbd37f66aa0d8ef03036ef7975
--! Hash: sha1:bbf9cade78c4bcc267a096d9b89e09e43730f611

-- Uploads in parts, by the protocol of S3. The bytes of parts are contents of the file store.
create table content_service.unfinished_uploads (
  id         uuid primary key,
  caller     text not null,
  quota_key  text not null,
  bucket_id  text not null references storage.buckets on update cascade on delete cascade,
  name       text not null,
  about      jsonb not null default '{}',
  bytes      bigint not null default 0 check (bytes >= 0),
  started_at timestamptz not null default now()
);
create index unfinished_uploads_by_quota on content_service.unfinished_uploads (quota_key);
create index unfinished_uploads_by_name on content_service.unfinished_uploads (bucket_id, name collate "C", id);
create index unfinished_uploads_by_age on content_service.unfinished_uploads (started_at);
alter table content_service.unfinished_uploads enable row level security;
comment on table content_service.unfinished_uploads is 'Uploads in parts, until they are finished or a day has passed.';
comment on column content_service.unfinished_uploads.caller is 'Who has begun it, and alone goes on with it.';
comment on column content_service.unfinished_uploads.quota_key is 'Whose uploads are counted together.';
comment on column content_service.unfinished_uploads.about is 'The metadata of the object.';
comment on column content_service.unfinished_uploads.bytes is 'The size of its parts.';

create table content_service.upload_parts (
  upload_id uuid not null references content_service.unfinished_uploads on delete cascade,
  number    integer not null check (number between 1 and 10000),
  content   text not null references content_service.files,
  bytes     bigint not null check (bytes >= 0),
  stored_at timestamptz not null default now(),
  primary key (upload_id, number)
);
create index upload_parts_by_content on content_service.upload_parts (content);
alter table content_service.upload_parts enable row level security;
comment on table content_service.upload_parts is 'The parts of an upload by S3.';
comment on column content_service.upload_parts.number is 'The place among the parts.';
comment on column content_service.upload_parts.content is 'The content of the part.';
comment on column content_service.upload_parts.bytes is 'Its size.';
create trigger _900_release_deleted after delete on content_service.upload_parts
  for each row execute function content_service.tg_objects__release_content();
create trigger _900_release_replaced after update of content on content_service.upload_parts
  for each row when (OLD.content is distinct from NEW.content) execute function content_service.tg_objects__release_content();

insert into content_service.bounds (name, bound) values
  ('unfinished uploads of a caller', 200), ('bytes of unfinished uploads of a caller', 5368709120);

-- Throws if the caller has too much that is unfinished; one upload of the largest size is always allowed.
create function content_service.check_unfinished_uploads(quota_key text, max_bytes bigint) returns void as $$
declare
  v_uploads bigint;
  v_bytes numeric;
begin
  select count(*), coalesce(sum(bytes), 0) into v_uploads, v_bytes
    from content_service.unfinished_uploads where unfinished_uploads.quota_key = check_unfinished_uploads.quota_key;
  if v_uploads > content_service.bound('unfinished uploads of a caller')
    or v_bytes > greatest(content_service.bound('bytes of unfinished uploads of a caller'), max_bytes) then
    raise exception 'Too many unfinished uploads.'
      using errcode = 'PT429', hint = 'Finish or abort some; those of more than a day are deleted.';
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.check_unfinished_uploads is 'Throws if uploads that are not finished take more of the file store than a caller may.';

-- Roles that bypass policies are servers of the operator.
create function content_service.is_upload_bounded(role text) returns boolean
language sql stable
return not coalesce((select rolbypassrls or rolsuper from pg_roles where rolname = is_upload_bounded.role), false);
comment on function content_service.is_upload_bounded is 'Whether unfinished uploads of callers in the role are bounded.';

create function content_service.begin_upload(
  id uuid, caller text, quota_key text, role text, bucket text, name text, about jsonb, max_bytes bigint
) returns void as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('unfinished uploads of ' || begin_upload.quota_key, 0));
  insert into content_service.unfinished_uploads (id, caller, quota_key, bucket_id, name, about)
    values (begin_upload.id, begin_upload.caller, begin_upload.quota_key, bucket, begin_upload.name, begin_upload.about);
  if content_service.is_upload_bounded(begin_upload.role) then
    perform content_service.check_unfinished_uploads(begin_upload.quota_key, begin_upload.max_bytes);
  end if;
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.begin_upload is 'Begins an upload in parts.';

create function content_service.find_upload(id uuid, caller text) returns setof content_service.unfinished_uploads as $$
  select unfinished_uploads.* from content_service.unfinished_uploads
  where unfinished_uploads.id = find_upload.id and unfinished_uploads.caller = find_upload.caller;
$$ language sql stable security definer set search_path = '';
comment on function content_service.find_upload is 'An upload in parts that the caller has begun.';

create function content_service.list_uploads(bucket text, caller text, prefix text, after_name text, after_id uuid, max_rows integer)
returns setof content_service.unfinished_uploads as $$
  select unfinished_uploads.* from content_service.unfinished_uploads
  where unfinished_uploads.bucket_id = bucket and unfinished_uploads.caller = list_uploads.caller
    and starts_with(unfinished_uploads.name, prefix)
    and (after_name is null or unfinished_uploads.name collate "C" > after_name
      or (unfinished_uploads.name = after_name and unfinished_uploads.id > after_id))
  order by unfinished_uploads.name collate "C", unfinished_uploads.id limit max_rows;
$$ language sql stable security definer set search_path = '';
comment on function content_service.list_uploads is 'Uploads in parts that the caller has begun, by name.';

-- The content is stored: keep_file and this function run in one transaction.
create function content_service.put_part(id uuid, role text, number integer, hash text, bytes bigint, max_bytes bigint) returns boolean as $$
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
  return true;
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.put_part is 'Adds or replaces a part; false if the upload has ended.';

create function content_service.list_parts(id uuid, after_number integer, max_rows integer) returns setof content_service.upload_parts as $$
  select upload_parts.* from content_service.upload_parts
  where upload_parts.upload_id = list_parts.id and upload_parts.number > after_number
  order by upload_parts.number limit max_rows;
$$ language sql stable security definer set search_path = '';
comment on function content_service.list_parts is 'The parts of an upload, by number.';

create function content_service.end_upload(id uuid) returns void
language sql security definer set search_path = ''
begin atomic
  delete from content_service.unfinished_uploads where unfinished_uploads.id = end_upload.id;
end;
comment on function content_service.end_upload is 'Forgets an upload that is finished or was aborted.';

create function content_service.expire_uploads(age interval) returns void
language sql security definer set search_path = ''
begin atomic
  delete from content_service.unfinished_uploads where unfinished_uploads.started_at < now() - age;
end;
comment on function content_service.expire_uploads is 'Forgets uploads that nobody has finished.';

-- Locks what it returns until the transaction ends: nobody can name these contents meanwhile.
-- Rows that a transaction of the owner reads, such as a backup, were not deleted before it began: their contents stay as long as it runs.
create function content_service.take_unused_files(grace interval, max_files integer) returns setof text as $$
declare
  v_before timestamptz := least(
    clock_timestamp() - grace,
    (select min(xact_start) from pg_catalog.pg_stat_activity where datname = current_database() and pid <> pg_backend_pid())
  );
begin
  -- Skipping locked rows: uploads lock contents in another order, and would wait for this in a circle.
  update content_service.files set released_at = null where hash in (
    select named.hash from content_service.files as named
    where named.released_at < v_before and (
      exists (select from storage.objects where objects.content = named.hash)
      or exists (select from content_service.upload_parts where upload_parts.content = named.hash)
    ) for update skip locked
  );
  return query
    delete from content_service.files where hash in (
      select unused.hash from content_service.files as unused
      where unused.released_at < v_before
        and not exists (select from storage.objects where objects.content = unused.hash)
        and not exists (select from content_service.upload_parts where upload_parts.content = unused.hash)
      order by unused.released_at limit max_files for update skip locked
    ) returning files.hash;
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.take_unused_files is 'Forgets contents that no object has named for a while, and returns them to be deleted.';

grant execute on function
  content_service.begin_upload, content_service.find_upload, content_service.list_uploads, content_service.put_part, content_service.list_parts, content_service.end_upload
  to authenticator;

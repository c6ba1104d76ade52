-- From the histories of 24 November 2026 (commit a0c93425) to the present ones, whose schema is called content_service: platform-000055.sql
-- says what the parts are. A database that does not have a migration of files gets whole files of the present history.
--! from platform/000022 sha1:7e26a5f93d6cf60524cdbc42d7bbc39e98d54f5e
--! from content/000004 sha1:114070e9de35672f447442d7dea469d3f0f005b3
--! to platform/000026 sha1:52a04fec67e49fc1373614c9f65555707a0b6f66
--! to content/000004 sha1:4c9a063abc6a17e31df5f13e7fa08715363610fa

--! migration platform/000023 sha1:4a5c0c3850cba66c4c85a42df2f50fcf3c8f7690
--! files 000023-buckets-and-objects.sql 000024-storage-functions.sql

--! migration platform/000024 sha1:cb112058b3ae8788319e8343867cd23a1c690049
create index tasks_of_caller_by_turn on content_service.tasks (lane, caller_key, turn) where status = 'queued' and turn is not null;
drop function if exists content_service.remove_spent_jobs(text);
--! functions content_service.begin_task content_service.remove_jobs_of

--! migration platform/000025 sha1:5928b2cf733916c99bb8c7b8de2f7c81f26294c4
create table content_service.shared_queries (
  name     text constraint shared_queries_pkey primary key constraint shared_queries_name_length check (length(name) between 1 and 200),
  text     text not null constraint shared_queries_text_length check (length(text) between 1 and 100000),
  saved_by text,
  saved_at timestamptz not null default now()
);
alter table content_service.shared_queries enable row level security;
comment on table content_service.shared_queries is 'SQL that administrators share in Studio.';
comment on column content_service.shared_queries.name is 'What administrators call it.';
comment on column content_service.shared_queries.text is 'The SQL.';
comment on column content_service.shared_queries.saved_by is 'The id of the administrator who saved it last; null where nobody signs in.';
comment on column content_service.shared_queries.saved_at is 'When it was saved last.';

--! migration platform/000026 sha1:9a75af6ec8ed88d4587e906d26b2b2ea1dbd9633
--! files 000025-uploads-in-parts.sql
alter table storage.buckets
  add column if not exists max_bytes bigint check (max_bytes >= 0),
  add column if not exists max_bytes_of_owner bigint check (max_bytes_of_owner >= 0);
comment on constraint buckets_max_bytes_check on storage.buckets is 'The bound is a number of bytes from 0.';
comment on constraint buckets_max_bytes_of_owner_check on storage.buckets is 'The bound is a number of bytes from 0.';
comment on column storage.buckets.max_bytes is 'What all objects together may take, in bytes; null is without bound.';
comment on column storage.buckets.max_bytes_of_owner is 'What the objects of one owner may take, in bytes; null is without bound.';
create table if not exists content_service.bucket_usage (
  bucket_id text not null references storage.buckets on update cascade on delete cascade,
  owner_id  text not null,
  bytes     bigint not null,
  primary key (bucket_id, owner_id)
);
alter table content_service.bucket_usage enable row level security;
comment on table content_service.bucket_usage is 'What the objects of each owner take, in buckets that are bounded.';
comment on column content_service.bucket_usage.owner_id is 'The owner; empty for objects without one.';
comment on column content_service.bucket_usage.bytes is 'The bytes of the contents.';
--! functions content_service.add_bucket_usage content_service.tg_objects__count_usage content_service.tg_buckets__count_usage
--! functions content_service.take_unused_files content_service.keep_file content_service.name_content content_service.note_stray_files
--! functions content_service.bucket_terms content_service.put_signed_object
create or replace trigger _900_count_added after insert on storage.objects
  referencing new table as new_rows for each statement execute function content_service.tg_objects__count_usage();
create or replace trigger _900_count_changed after update on storage.objects
  referencing old table as old_rows new table as new_rows for each statement execute function content_service.tg_objects__count_usage();
create or replace trigger _900_count_removed after delete on storage.objects
  referencing old table as old_rows for each statement execute function content_service.tg_objects__count_usage();
create or replace trigger _900_count_usage after update of max_bytes, max_bytes_of_owner on storage.buckets
  for each row when ((OLD.max_bytes, OLD.max_bytes_of_owner) is distinct from (NEW.max_bytes, NEW.max_bytes_of_owner))
  execute function content_service.tg_buckets__count_usage();

--! migration platform/000027 sha1:e3f890478a837e4a8abe5c6d0a93253974a1aeea
--! later-files 000026-oauth-applications.sql

--! Previous: sha1:9bbd89cae85a8b8e0196e97c013fae124016a7f7
--! Hash: sha1:148aee9b222b9cd975a2f97a97769753ba51039c
--! Message: row changes

-- Row changes reach subscribers from the tables of this publication, whose name is Supabase's. A table that is dropped from it
-- stays out: "alter publication supabase_realtime drop table public.notes".
do $$
begin
  if not exists (select from pg_publication where pubname = 'supabase_realtime') then
    create publication supabase_realtime with (publish_via_partition_root = true);
  end if;
  if current_setting('server_version_num')::int >= 180000 then
    alter publication supabase_realtime set (publish_generated_columns = stored);
  end if;
exception when insufficient_privilege then
  raise warning 'Without a publication supabase_realtime that is ours, row changes are not streamed: %', sqlerrm;
end $$;

-- Subscribers receive the old row and policies are checked against it: both need all of its columns in the WAL (replica identity
-- full), which costs nothing where wal_level is below logical. Two event triggers set this up for each new table that may be
-- served. Publishing a table never prevents updates of it: see private.keep_writable.
--! Included private/is_served.sql
-- Every schema with USAGE for authenticated may be served, except schemas of this service that hold no tables of applications.
create or replace function private.is_served(class pg_class) returns boolean
language sql stable
return class.relkind in ('r', 'p')
  and class.relpersistence = 'p'
  and class.relnamespace not in ('auth'::regnamespace, 'api'::regnamespace, 'extensions'::regnamespace)
  and has_schema_privilege('authenticated', class.relnamespace, 'usage');
comment on function private.is_served is 'Whether this table may be served.';
--! EndIncluded private/is_served.sql
--! Included private/tg__log_whole_rows.sql
-- Schema private is closed to other roles that create tables.
create or replace function private.tg__log_whole_rows() returns event_trigger as $$
declare
  v_table regclass;
begin
  for v_table in
    select class.oid
    from pg_event_trigger_ddl_commands() as command
    join pg_class as class on command.classid = 'pg_class'::regclass and class.oid = command.objid
    where private.is_served(class) and not command.in_extension
  loop
    execute format('alter table %s replica identity full', v_table);
  end loop;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.tg__log_whole_rows is 'Gives a new table that may be served the replica identity full.';
--! EndIncluded private/tg__log_whole_rows.sql
--! Included private/keep_writable.sql
-- A virtual column is not in the WAL, and Postgres 18 refuses to update a published table with replica identity full that has one. Such a
-- table uses its key as replica identity; without a key it is not published.
create or replace function private.keep_writable("table" regclass) returns void as $$
begin
  if not exists (
    select from pg_attribute where attrelid = "table" and attgenerated = 'v' and not attisdropped
  ) then
    return;
  end if;
  if exists (select from pg_class where oid = "table" and relreplident = 'f') then
    execute format('alter table %s replica identity default', "table");
  end if;
  if not exists (select from pg_index where indrelid = "table" and indisprimary) and exists (
    select from pg_publication_rel
    join pg_publication on pg_publication.oid = prpubid
    where prrelid = "table" and pubname = 'supabase_realtime'
  ) then
    execute format('alter publication supabase_realtime drop table %s', "table");
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function private.keep_writable is
  'Changes the replica identity of a published table if it would prevent updates.';
--! EndIncluded private/keep_writable.sql
--! Included private/tg__publish_rows.sql
-- Rows of a partition are published as rows of its root. The publication belongs to the owner of the database, who need not be the role
-- that creates a table. An altered table is not published again: it may have been removed on purpose.
create or replace function private.tg__publish_rows() returns event_trigger as $$
declare
  v_table regclass;
  v_is_new boolean;
begin
  for v_table, v_is_new in
    select class.oid, bool_or(command.command_tag <> 'ALTER TABLE')
    from pg_event_trigger_ddl_commands() as command
    join pg_class as class on command.classid = 'pg_class'::regclass and class.oid = command.objid
    where private.is_served(class)
      and not command.in_extension
      and exists (select from pg_publication where pubname = 'supabase_realtime' and not puballtables)
    group by class.oid
  loop
    if v_is_new and not (select relispartition from pg_class where oid = v_table) then
      execute format('alter publication supabase_realtime add table %s', v_table);
    end if;
    perform private.keep_writable(member)
    from (select v_table union select relid from pg_partition_tree(v_table)) as members (member);
  end loop;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.tg__publish_rows is 'Publishes the changes of a new table that may be served.';
--! EndIncluded private/tg__publish_rows.sql

do $$
begin
  create event trigger log_whole_rows on ddl_command_end
    when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO')
    execute function private.tg__log_whole_rows();
exception when insufficient_privilege then
  raise notice 'Without event triggers: say "alter table … replica identity full" for each new table that is served'
    using hint = 'Only a superuser may create event triggers.';
end $$;

-- Event triggers run in the order of their names: log_whole_rows first.
do $$
begin
  create event trigger publish_rows on ddl_command_end
    when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE')
    execute function private.tg__publish_rows();
exception when insufficient_privilege then
  raise notice 'Without event triggers: say "alter publication supabase_realtime add table …" for each new table that is served'
    using hint = 'Only a superuser may create event triggers.';
end $$;

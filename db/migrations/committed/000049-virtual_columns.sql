--! Previous: sha1:4e7040373602537804c88a07091c20f16de77886
--! Hash: sha1:adfcf748661ed0dfaebc0e11955cb8f72f0a7603
--! Message: virtual_columns

--! split: 1-current.sql
-- Publishing the changes of a table must not keep anybody from making them.
--! Included private/is_served.sql
-- Served is every schema that signed-in callers may use, less those of ours that are not for tables of theirs.
create or replace function private.is_served(class pg_class) returns boolean
language sql stable
return class.relkind in ('r', 'p')
  and class.relpersistence = 'p'
  and class.relnamespace not in ('auth'::regnamespace, 'api'::regnamespace, 'extensions'::regnamespace)
  and has_schema_privilege('authenticated', class.relnamespace, 'usage');
comment on function private.is_served is 'Whether this is a table that may be served.';
--! EndIncluded private/is_served.sql
--! Included private/tg__log_whole_rows.sql
-- Whoever makes a table need not know the functions of ours.
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
-- A virtual column is not in the log, and Postgres 18 refuses to update a published table that is to log whole rows and has
-- one. Such a table logs its key; where it has none, it is not published.
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
comment on function private.keep_writable is 'Has a published table log what lets it be changed.';
--! EndIncluded private/keep_writable.sql
--! Included private/tg__publish_rows.sql
-- A partition's rows are published as its root's. The publication belongs to the database's owner, and whoever makes a table
-- need not. What is altered is not published again: somebody may have taken it out.
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
  drop event trigger if exists publish_rows;
  create event trigger publish_rows on ddl_command_end
    when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE')
    execute function private.tg__publish_rows();
exception when insufficient_privilege then
  raise notice 'Without event triggers: say "alter publication supabase_realtime add table …" for each new table that is served'
    using hint = 'Only a superuser may create event triggers.';
end $$;

do $$
begin
  perform private.keep_writable(prrelid)
  from pg_publication_rel
  join pg_publication on pg_publication.oid = prpubid
  where pubname = 'supabase_realtime';
exception when insufficient_privilege then
  raise warning 'A table of somebody else''s has a virtual column and may refuse to be changed: %', sqlerrm;
end $$;

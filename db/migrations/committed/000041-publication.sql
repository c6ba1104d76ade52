--! Previous: sha1:d9d677f83ede58d6976792ac2affaab22066d5c4
--! Hash: sha1:0a267c0f7ee8cb68ce618a21ab1ebcce2cf06cf1
--! Message: publication

--! split: 1-current.sql
-- Row changes reach subscribers from the tables of this publication, which has the name that Supabase gave it. A table that
-- is dropped from it stays out: "alter publication supabase_realtime drop table public.notes".
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

-- Those that log whole rows, as every table has done that was made to be served.
do $$
declare
  v_table regclass;
begin
  for v_table in
    select class.oid
    from pg_class as class
    where class.relkind in ('r', 'p')
      and class.relreplident = 'f'
      and class.relpersistence = 'p'
      and not class.relispartition
      and class.relnamespace not in ('auth'::regnamespace, 'api'::regnamespace, 'extensions'::regnamespace)
      and has_schema_privilege('authenticated', class.relnamespace, 'usage')
      and not exists (
        select from pg_publication_tables
        where pubname = 'supabase_realtime'
          and schemaname = class.relnamespace::regnamespace::name and tablename = class.relname
      )
  loop
    execute format('alter publication supabase_realtime add table %s', v_table);
  end loop;
exception when insufficient_privilege then
  raise warning 'Without a publication supabase_realtime that is ours, row changes are not streamed: %', sqlerrm;
end $$;

--! Included private/tg__publish_rows.sql
-- What logs whole rows is served (see tg__log_whole_rows, which runs before). A partition's rows are published as its root's.
-- The publication belongs to the database's owner, and whoever makes a table need not.
create or replace function private.tg__publish_rows() returns event_trigger as $$
declare
  v_table regclass;
begin
  for v_table in
    select class.oid
    from pg_event_trigger_ddl_commands() as command
    join pg_class as class on command.classid = 'pg_class'::regclass and class.oid = command.objid
    where class.relkind in ('r', 'p')
      and class.relreplident = 'f'
      and not class.relispartition
      and exists (select from pg_publication where pubname = 'supabase_realtime' and not puballtables)
  loop
    execute format('alter publication supabase_realtime add table %s', v_table);
  end loop;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.tg__publish_rows is 'Publishes the changes of a new table that may be served.';
--! EndIncluded private/tg__publish_rows.sql

do $$
begin
  create event trigger publish_rows on ddl_command_end
    when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO')
    execute function private.tg__publish_rows();
exception when insufficient_privilege then
  raise notice 'Without event triggers: say "alter publication supabase_realtime add table …" for each new table that is served'
    using hint = 'Only a superuser may create event triggers.';
end $$;

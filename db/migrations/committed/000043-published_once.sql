--! Previous: sha1:6e63cc15b3b8d8e2f065ee19a50715da4e0c358f
--! Hash: sha1:a89dc9c585024dadcdfbb4ffdfb0cfacb0e5eb1d
--! Message: published_once

--! split: 1-current.sql
-- A table that is made together with its keys is told of several times.
--! Included private/tg__publish_rows.sql
-- What logs whole rows is served (see tg__log_whole_rows, which runs before). A partition's rows are published as its root's.
-- The publication belongs to the database's owner, and whoever makes a table need not.
create or replace function private.tg__publish_rows() returns event_trigger as $$
declare
  v_table regclass;
begin
  for v_table in
    select distinct class.oid
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

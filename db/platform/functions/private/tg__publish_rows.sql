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

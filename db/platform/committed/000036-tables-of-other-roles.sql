--! Previous: sha1:ecfc41f4c2ef78caefae20c08360eeb46178464e
--! Hash: sha1:6ab70c054bfec04689855475e45e37e76e39bc3e
--! Message: tables of other roles

-- Only the owner of a table, or a superuser, may change its replica identity and publish it. Where the owner of the database is neither, a
-- role of the cluster could create no table in a served schema, because these event triggers failed: its tables are left to it.

create or replace function content_service.tg__log_whole_rows() returns event_trigger as $$
declare
  v_table regclass;
begin
  for v_table in
    select class.oid
    from pg_event_trigger_ddl_commands() as command
    join pg_class as class on command.classid = 'pg_class'::regclass and class.oid = command.objid
    where content_service.is_served(class) and not command.in_extension and pg_has_role(class.relowner, 'usage')
  loop
    execute format('alter table %s replica identity full', v_table);
  end loop;
end;
$$ language plpgsql security definer set search_path = '';

create or replace function content_service.tg__publish_rows() returns event_trigger as $$
declare
  v_table regclass;
  v_is_new boolean;
begin
  for v_table, v_is_new in
    select class.oid, bool_or(command.command_tag <> 'ALTER TABLE')
    from pg_event_trigger_ddl_commands() as command
    join pg_class as class on command.classid = 'pg_class'::regclass and class.oid = command.objid
    where content_service.is_served(class)
      and not command.in_extension
      and pg_has_role(class.relowner, 'usage')
      and exists (select from pg_publication where pubname = 'supabase_realtime' and not puballtables)
    group by class.oid
  loop
    if v_is_new and not (select relispartition from pg_class where oid = v_table) then
      execute format('alter publication supabase_realtime add table %s', v_table);
    end if;
    perform content_service.keep_writable(member)
    from (select v_table union select relid from pg_partition_tree(v_table)) as members (member);
  end loop;
end;
$$ language plpgsql security definer set search_path = '';

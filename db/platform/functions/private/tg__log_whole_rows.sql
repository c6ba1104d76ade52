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

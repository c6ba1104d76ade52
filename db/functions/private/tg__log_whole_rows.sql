-- Served is every schema that signed-in callers may use, less those of ours that are not for tables of theirs.
create or replace function private.tg__log_whole_rows() returns event_trigger as $$
declare
  v_table regclass;
begin
  for v_table in
    select class.oid
    from pg_event_trigger_ddl_commands() as command
    join pg_class as class on command.classid = 'pg_class'::regclass and class.oid = command.objid
    where class.relkind in ('r', 'p')
      and class.relpersistence = 'p'
      and not command.in_extension
      and class.relnamespace not in ('auth'::regnamespace, 'api'::regnamespace, 'extensions'::regnamespace)
      and has_schema_privilege('authenticated', class.relnamespace, 'usage')
  loop
    execute format('alter table %s replica identity full', v_table);
  end loop;
end;
$$ language plpgsql set search_path = '';
comment on function private.tg__log_whole_rows is 'Gives a new table that may be served the replica identity full.';

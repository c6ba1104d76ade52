--! Previous: sha1:b1f2f352fc3f6df89321f3b261f0dee65e10386b
--! Hash: sha1:a212a0fafb4e38b92da0ca68a2fdf3796e89c452
--! Message: row_changes

-- A subscriber to row changes is shown the old row, and policies must be able to judge it: both need all of its columns
-- in the WAL. This costs nothing where wal_level is below logical.
alter table public.users replica identity full;
alter table public.articles replica identity full;
alter table public.article_translations replica identity full;
alter table public.comments replica identity full;

--! Included private/tg__log_whole_rows.sql
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
--! EndIncluded private/tg__log_whole_rows.sql

do $$
begin
  create event trigger log_whole_rows on ddl_command_end
    when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO')
    execute function private.tg__log_whole_rows();
exception when insufficient_privilege then
  raise notice 'Without event triggers: say "alter table … replica identity full" for each new table that is served'
    using hint = 'Only a superuser may create event triggers.';
end $$;

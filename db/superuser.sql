-- For a database whose migrations were run by an owner who is no superuser: what they left out. A superuser runs it, any number of times.

alter role service_role bypassrls;

drop event trigger if exists content_service_schema_changed;
create event trigger content_service_schema_changed on ddl_command_end execute function content_service.tg__schema_changed();
drop event trigger if exists content_service_schema_dropped;
create event trigger content_service_schema_dropped on sql_drop execute function content_service.tg__schema_changed();
drop event trigger if exists content_service_log_whole_rows;
create event trigger content_service_log_whole_rows on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO')
  execute function content_service.tg__log_whole_rows();
drop event trigger if exists content_service_publish_rows;
create event trigger content_service_publish_rows on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE')
  execute function content_service.tg__publish_rows();

-- The tables that were created without these triggers; the numbers below 16384 are those of Postgres itself. Messages of Realtime are not
-- rows that clients subscribe to.
do $$
declare
  v_table regclass;
  v_is_partition boolean;
begin
  if not exists (select from pg_publication where pubname = 'supabase_realtime' and not puballtables) then
    return;
  end if;
  for v_table, v_is_partition in
    select class.oid, class.relispartition from pg_class as class
    where class.oid >= 16384
      and content_service.is_served(class)
      and class.relnamespace <> 'realtime'::regnamespace
      and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = class.oid and deptype = 'e')
      and not exists (
        select from pg_publication_rel join pg_publication on pg_publication.oid = prpubid
        where prrelid = class.oid and pubname = 'supabase_realtime'
      )
    order by class.relispartition
  loop
    execute format('alter table %s replica identity full', v_table);
    if not v_is_partition then
      execute format('alter publication supabase_realtime add table %s', v_table);
    end if;
    perform content_service.keep_writable(v_table);
  end loop;
end $$;

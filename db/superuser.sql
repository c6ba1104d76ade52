-- These statements are what migrations leave out if their owner is no superuser. A superuser may run them repeatedly. They call no
-- function of the owner with the rights of the superuser: the functions of the two event triggers run with those of the owner.

alter role service_role bypassrls;

drop event trigger if exists content_service_log_whole_rows;
create event trigger content_service_log_whole_rows on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO')
  execute function content_service.tg__log_whole_rows();
drop event trigger if exists content_service_publish_rows;
create event trigger content_service_publish_rows on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE')
  execute function content_service.tg__publish_rows();

-- The tables that were created without these triggers, as content_service.is_served finds them. Messages of Realtime are not rows that
-- clients subscribe to. Tables with virtual columns are left to their owner: the replica identity full would prevent updates of them.
do $$
declare
  v_table regclass;
  v_is_partition boolean;
begin
  if not exists (select from pg_publication where pubname = 'supabase_realtime' and not puballtables) then
    return;
  end if;
  for v_table, v_is_partition in
    select class.oid, class.relispartition
    from pg_class as class
    join pg_namespace as namespace on namespace.oid = class.relnamespace
    where class.oid >= 16384
      and class.relkind in ('r', 'p')
      and class.relpersistence = 'p'
      and namespace.nspname not in ('auth', 'api', 'extensions', 'realtime')
      and has_schema_privilege('authenticated', namespace.oid, 'usage')
      and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = class.oid and deptype = 'e')
      and not exists (select from pg_attribute where attrelid = class.oid and attgenerated = 'v' and not attisdropped)
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
  end loop;
end $$;

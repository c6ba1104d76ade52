-- A virtual column is not in the WAL, and Postgres 18 refuses to update a published table with replica identity full that has one. Such a
-- table uses its key as replica identity; without a key it is not published.
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
comment on function private.keep_writable is
  'Changes the replica identity of a published table if it would prevent updates.';

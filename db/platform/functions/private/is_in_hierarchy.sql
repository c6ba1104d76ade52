create or replace function private.is_in_hierarchy("table" oid) returns boolean
begin atomic
  select relkind = 'p' or relispartition or relhassubclass or exists (select from pg_inherits where inhrelid = pg_class.oid)
  from pg_class where pg_class.oid = is_in_hierarchy."table";
end;
comment on function private.is_in_hierarchy is 'Whether a table is partitioned, or a partition, or inherits.';

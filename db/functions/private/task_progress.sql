-- Nobody sees what a transaction has written before it ends, but locks are seen at once, go with the transaction however
-- it ends, and cost nothing: each percentage that is reported is a shared lock which nobody waits for.
create or replace function private.task_progress(id uuid) returns integer
begin atomic
  select max(objid::integer) from pg_locks
  where locktype = 'advisory' and objsubid = 2 and mode = 'ShareLock'
    and database = (select oid from pg_database where datname = current_database())
    and classid::bigint = hashtext(id::text)::bigint & 4294967295;
end;
comment on function private.task_progress is 'How far a task says that it is, in percent.';

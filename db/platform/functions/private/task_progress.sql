-- Uncommitted rows are invisible to others, but locks are visible at once, end with the transaction and cost nothing: each reported
-- percentage is a shared lock that nobody waits for.
create or replace function private.task_progress(id uuid) returns integer
begin atomic
  select max(objid::integer) from pg_locks
  where locktype = 'advisory' and objsubid = 2 and mode = 'ShareLock'
    and database = (select oid from pg_database where datname = current_database())
    and classid::bigint = hashtext(id::text)::bigint & 4294967295;
end;
comment on function private.task_progress is 'The progress that a task has reported, in percent.';

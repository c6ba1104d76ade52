-- The bounds are approximate: two calls may both be the last. Roles that bypass policies are servers of the operator.
create or replace function private.check_task_bounds(lane text, caller_key text, role text) returns void as $$
declare
  v_is_anonymous boolean := lane = 'anonymous';
  v_waiting bigint := private.bound(case when v_is_anonymous then 'tasks of an anonymous caller' else 'tasks of a caller' end);
  v_kept bigint := private.bound(case when v_is_anonymous then 'kept tasks of an anonymous caller' else 'kept tasks of a caller' end);
  v_bytes bigint := private.bound('bytes of tasks of a caller');
  v_all bigint := private.bound('tasks of all anonymous callers');
begin
  if (
    select count(*) >= v_waiting from (
      select from private.tasks
      where tasks.caller_key = check_task_bounds.caller_key and tasks.finished_at is null limit v_waiting
    ) as unfinished
  ) then
    raise exception '% tasks of yours are waiting already', v_waiting using errcode = 'TOMNY';
  end if;
  if exists (select from pg_roles where rolname = role and rolbypassrls) then
    return;
  end if;
  if (
    select count(*) >= v_kept or sum(bytes) >= v_bytes from (
      select tasks.bytes from private.tasks where tasks.caller_key = check_task_bounds.caller_key limit v_kept
    ) as kept
  ) then
    raise exception 'Too many tasks of yours are kept' using errcode = 'TOMNY',
      hint = 'Delete finished tasks, or wait: they are deleted a day after their end.';
  end if;
  if v_is_anonymous and (
    select count(*) >= v_all from (
      select from private.tasks where tasks.lane = 'anonymous' and tasks.finished_at is null limit v_all
    ) as unfinished
  ) then
    raise exception 'Too many tasks of anonymous callers are waiting' using errcode = 'TOMNY', hint = 'Sign in, or try again later.';
  end if;
end;
$$ language plpgsql stable set search_path = '';
comment on function private.check_task_bounds is 'Refuses one more task of a caller who has too many.';

-- Committed together with the changes of the task. A result beyond the quota of the caller is not kept, rather than undoing what was done.
create or replace function private.finish_task(id text, result text) returns void as $$
declare
  v_task private.tasks;
  v_bytes bigint := private.bound('bytes of tasks of a caller');
  v_is_kept boolean;
begin
  select * into v_task from private.tasks where tasks.id = finish_task.id::uuid;
  v_is_kept := v_task.lane = 'system'
    or exists (select from pg_roles where rolname = v_task.caller ->> 'role' and rolbypassrls)
    or octet_length(result) + coalesce((
      select sum(tasks.bytes) from private.tasks where tasks.caller_key = v_task.caller_key and tasks.id <> v_task.id
    ), 0) <= v_bytes;
  update private.tasks
    set status = 'done', result = case when v_is_kept then finish_task.result::json else 'null' end,
      error = case when not v_is_kept then jsonb_build_object(
        'status', 507, 'code', 'RESULT_NOT_KEPT',
        'message', 'The task is done. Its result is not kept, because the results of your tasks take too much space.',
        'hint', 'Delete finished tasks, or wait: they are deleted a day after their end.'
      ) end,
      finished_at = clock_timestamp(), expires_at = clock_timestamp() + interval '1 day',
      request = '{}', body = '', arguments = '{}', bytes = case when v_is_kept then octet_length(finish_task.result) else 0 end
    where tasks.id = v_task.id;
  perform private.wake_lane(v_task.lane, v_task.caller_key);
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.finish_task to authenticator;
comment on function private.finish_task is 'Stores the response of the task that this transaction runs.';

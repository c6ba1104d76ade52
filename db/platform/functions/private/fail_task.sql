create or replace function private.fail_task(id uuid, error jsonb) returns void as $$
declare
  v_lane text;
  v_caller_key text;
begin
  update private.tasks
    set status = 'failed', error = fail_task.error, finished_at = now(), expires_at = now() + interval '1 day',
      request = '{}', body = '', arguments = '{}', bytes = octet_length(fail_task.error::text)
    where tasks.id = fail_task.id and finished_at is null
    returning lane, caller_key into v_lane, v_caller_key;
  if found then
    perform private.wake_lane(v_lane, v_caller_key);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function private.fail_task is 'Marks a task as failed; called by the service as the owner.';

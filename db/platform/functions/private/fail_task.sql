create or replace function private.fail_task(id uuid, error jsonb) returns void
begin atomic
  update private.tasks
    set status = 'failed', error = fail_task.error, finished_at = now(), expires_at = now() + interval '1 day',
      request = '{}', body = '', arguments = '{}'
    where tasks.id = fail_task.id and finished_at is null;
end;
comment on function private.fail_task is 'Marks a task as failed; called by the service as the owner.';

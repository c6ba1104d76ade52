create or replace function private.requeue_task(id uuid, after interval) returns void as $$
declare
  v_lane text;
begin
  update private.tasks set status = 'queued', run_at = clock_timestamp() + requeue_task.after, turn = null
    where tasks.id = requeue_task.id and status = 'running'
    returning lane into v_lane;
  if found then
    perform graphile_worker.add_job('perform_' || v_lane, '{}', run_at => clock_timestamp() + requeue_task.after, max_attempts => 5);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function private.requeue_task is 'Leaves a task whose attempt failed to another attempt; called by the service as the owner.';

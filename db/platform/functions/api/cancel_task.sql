create or replace function api.cancel_task(id uuid) returns boolean as $$
declare
  v_is_cancelled boolean;
begin
  delete from private.tasks as task
    where task.id = cancel_task.id and task.status = 'queued' and private.sees_task(task.owner);
  v_is_cancelled := found;
  if v_is_cancelled then
    perform graphile_worker.remove_job(cancel_task.id::text);
  end if;
  return v_is_cancelled;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function api.cancel_task to authenticated, service_role;
comment on function api.cancel_task is 'Cancels a task of the caller''s that waits; false if it has begun or does not exist.';

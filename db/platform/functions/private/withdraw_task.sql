-- A task that has begun is not stopped: its effects may be visible already. A finished one is deleted.
create or replace function private.withdraw_task(id uuid, owner text) returns text as $$
declare
  v_status text;
begin
  select status into v_status from private.tasks
    where tasks.id = withdraw_task.id and tasks.owner = withdraw_task.owner for update skip locked;
  if not found then
    return (
      select 'running' from private.tasks where tasks.id = withdraw_task.id and tasks.owner = withdraw_task.owner
    );
  end if;
  if v_status <> 'running' then
    delete from private.tasks where tasks.id = withdraw_task.id;
    perform graphile_worker.remove_job(withdraw_task.id::text);
  end if;
  return v_status;
end;
$$ language plpgsql set search_path = '';
comment on function private.withdraw_task is
  'Withdraws a task that has not begun, and deletes a finished one; returns its status, or null when there is none.';

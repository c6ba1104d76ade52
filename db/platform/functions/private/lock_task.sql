-- Locked by the transaction that runs the task: of two attempts one does nothing. A process that dies releases the lock.
create or replace function private.lock_task(id text) returns boolean as $$
begin
  perform from private.tasks where tasks.id = lock_task.id::uuid and finished_at is null for update skip locked;
  if found then
    perform set_config('request.task', lock_task.id, true);
  end if;
  return found;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.lock_task to authenticator;
comment on function private.lock_task is 'Whether this transaction may run the task.';

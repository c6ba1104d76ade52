-- Committed with what the task has done, or not at all.
create or replace function private.finish_task(id text, result text) returns void as $$
begin
  update private.tasks
    set status = 'done', result = finish_task.result::json, finished_at = clock_timestamp(),
      expires_at = clock_timestamp() + interval '1 day', request = '{}', body = ''
    where tasks.id = finish_task.id::uuid;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.finish_task to authenticator;
comment on function private.finish_task is 'Keeps the answer of the task that the transaction holds.';

-- Committed together with the changes of the task.
create or replace function private.finish_task(id text, result text) returns void as $$
begin
  update private.tasks
    set status = 'done', result = finish_task.result::json, finished_at = clock_timestamp(),
      expires_at = clock_timestamp() + interval '1 day', request = '{}', body = '', arguments = '{}'
    where tasks.id = finish_task.id::uuid;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.finish_task to authenticator;
comment on function private.finish_task is 'Stores the response of the task that this transaction runs.';

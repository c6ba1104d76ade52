create or replace function private.sees_task(owner text) returns boolean
language sql stable
return auth.is_admin() or sees_task.owner = private.task_owner(auth.role(), auth.jwt());
comment on function private.sees_task is 'Whether a task is the caller''s own; administrators see all.';

-- For a user whose sessions have ended since the task was queued.
create or replace function private.outlives_session(id uuid) returns boolean
begin atomic
  select exists (
    select from private.tasks as task
    join auth.users as account on account.user_id = coalesce(
      substring(task.caller -> 'claims' ->> 'sub' from '^[1-9][0-9]{0,17}$'),
      substring(task.caller -> 'claims' ->> 'user_id' from '^[1-9][0-9]{0,17}$')
    )::bigint
    left join auth.user_roles on user_roles.user_id = account.user_id
    where task.id = outlives_session.id and account.password_changed_at <= task.created_at
      and task.caller ->> 'role' = coalesce(user_roles.role, 'authenticated')
  );
end;
comment on function private.outlives_session is
  'Whether the user of a task has kept the password and the role since it was queued; called by the service as the owner.';

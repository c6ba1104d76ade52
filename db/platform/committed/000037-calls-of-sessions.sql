--! Previous: sha1:6ab70c054bfec04689855475e45e37e76e39bc3e
--! Hash: sha1:448f996a470b0b4d758de779502def212a4756ee
--! Message: calls of sessions

-- The claims of a session are those of its user at each request, so a call that it has queued does not keep permissions that the user has lost.
create or replace function content_service.outlives_session(id uuid) returns boolean
begin atomic
  select exists (
    select from content_service.tasks as task
    join auth.users as account on account.user_id = coalesce(
      substring(task.caller -> 'claims' ->> 'sub' from '^[1-9][0-9]{0,17}$'),
      substring(task.caller -> 'claims' ->> 'user_id' from '^[1-9][0-9]{0,17}$')
    )::bigint
    left join auth.user_roles on user_roles.user_id = account.user_id
    where task.id = outlives_session.id and account.password_changed_at <= task.created_at
      and task.caller ->> 'role' = coalesce(user_roles.role, 'authenticated')
      and (
        not task.caller -> 'claims' ? 'session_digest' or task.caller -> 'claims' ? 'iat'
        or task.caller -> 'claims' -> 'permissions' is not distinct from auth.claims_of(account.user_id) -> 'permissions'
      )
  );
end;
comment on function content_service.outlives_session is 'Whether the user of a task has kept the password and the role since it was queued, and the permissions of a session; called by the service as the owner.';

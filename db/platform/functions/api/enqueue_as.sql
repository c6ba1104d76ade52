-- Granted to nobody: security definer functions of the owner call it, such as triggers, and the owner in psql. Without claims the task
-- belongs to the role, so that the user whose request queued it neither sees nor cancels it.
create or replace function api.enqueue_as(
  role text, function text, arguments jsonb default '{}', run_at timestamptz default now(), key text default null,
  claims jsonb default null
) returns uuid
begin atomic
  select private.queue_call(role, claims, function, arguments, run_at, key, lane => 'system');
end;
comment on function api.enqueue_as is
  'Queues a call of a function as a role of the owner''s choice. For triggers with the rights of the owner, and for the owner.';

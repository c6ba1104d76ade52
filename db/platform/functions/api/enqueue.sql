-- Runs with the owner's rights, because requests cannot write tasks. The task has the role and the claims of the request or the session,
-- also where a function with other rights calls this one: "set role" is not changed by those.
create or replace function api.enqueue(
  function text, arguments jsonb default '{}', run_at timestamptz default now(), key text default null
) returns uuid as $$
declare
  v_role text := auth.role();
  v_claims jsonb := auth.jwt();
  v_owner text := private.task_owner(v_role, v_claims);
begin
  -- Callers without a user share an owner, so one would replace the tasks of the others.
  if key is not null and v_owner not like 'user %'
    and not exists (select from pg_roles where rolname = v_role and rolbypassrls)
  then
    raise exception 'A key needs a caller with a user' using errcode = 'WRONG', detail = 'key',
      hint = 'Callers whose claims have no "sub" share their role, and would replace each other''s tasks.';
  end if;
  perform private.check_task_bounds(private.task_lane(v_role, v_claims), v_owner, v_role);
  return private.queue_call(v_role, v_claims, function, arguments, run_at, key);
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function api.enqueue to authenticated, service_role;
comment on function api.enqueue is
  'Queues a call of a function, which runs once, after the transaction has committed, with the role and the claims of who queues it. Returns the id of the task.';

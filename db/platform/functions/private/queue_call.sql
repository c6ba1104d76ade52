-- A waiting task with the same key is replaced and keeps its id. One that has begun stays: the new one waits beside it.
create or replace function private.queue_call(
  role text, claims jsonb, function text, arguments jsonb,
  run_at timestamptz default now(), key text default null, time_limit interval default null,
  lane text default null, caller_key text default null
) returns uuid as $$
#variable_conflict use_column
declare
  v_function text;
  v_id uuid;
  v_owner text := private.task_owner(queue_call.role, queue_call.claims);
  v_lane text := coalesce(queue_call.lane, private.task_lane(queue_call.role, queue_call.claims));
begin
  if to_regnamespace('graphile_worker') is null then
    raise exception 'There is no queue yet' using errcode = '55000', hint = 'Start the service: it creates the queue.';
  end if;
  perform private.check_task_role(role);
  v_function := private.callable_function(role, function, arguments)::text;
  if not isfinite(run_at) then
    raise exception 'The time to run at must be finite' using errcode = 'WRONG', detail = 'run_at';
  end if;
  if length(key) not between 1 and 200 then
    raise exception 'A key has 1 to 200 characters' using errcode = 'WRONG', detail = 'key';
  end if;

  insert into private.tasks as task (
    owner, work, caller, request, body, function, arguments, run_at, key, time_limit, lane, caller_key, bytes
  )
    values (
      v_owner, v_function,
      jsonb_build_object(
        'kind', case queue_call.role when 'anon' then 'anonymous' else 'known' end,
        'role', queue_call.role, 'claims', queue_call.claims
      ),
      '{}', '', v_function, queue_call.arguments, coalesce(queue_call.run_at, now()), queue_call.key, queue_call.time_limit,
      v_lane, coalesce(queue_call.caller_key, v_owner),
      octet_length(queue_call.arguments::text) + coalesce(octet_length(queue_call.claims::text), 0)
    )
    on conflict (owner, key) where status = 'queued' and attempts = 0 do update
      set work = excluded.work, caller = excluded.caller, function = excluded.function, arguments = excluded.arguments,
        run_at = excluded.run_at, time_limit = excluded.time_limit, created_at = excluded.created_at,
        lane = excluded.lane, caller_key = excluded.caller_key, bytes = excluded.bytes, turn = null
    returning task.id into v_id;
  perform graphile_worker.add_job(
    'perform_' || v_lane, json_build_object('task', v_id), run_at => coalesce(queue_call.run_at, now()), job_key => v_id::text,
    max_attempts => 5
  );
  return v_id;
end;
$$ language plpgsql set search_path = '';
comment on function private.queue_call is
  'Queues the call of a function as a role and with claims. For the owner only; api.enqueue is for callers.';

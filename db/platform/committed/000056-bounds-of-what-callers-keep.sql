--! Previous: sha1:fc0a08c0b94286fc915871073d3e8b5165105664
--! Hash: sha1:cf3a57cf393a6eb3bdda47b142ad93a410936971
--! Message: bounds of what callers keep

-- How much callers may make the tables of the service grow. Operators change the numbers.
create table if not exists private.bounds (
  name    text primary key,
  bound   bigint not null check (bound >= 0),
  used    bigint not null default 0,
  used_at timestamptz not null default '-infinity'
);
alter table private.bounds enable row level security;
comment on table private.bounds is 'How much callers may make the tables of the service grow. Change a number by an update; it applies at once.';
comment on column private.bounds.name is 'What is bounded.';
comment on column private.bounds.bound is 'The number of rows or bytes.';
comment on column private.bounds.used is 'How much there was when it was last counted; 0 where each request counts.';
comment on column private.bounds.used_at is 'When it was last counted.';
insert into private.bounds (name, bound) values
  ('tasks of a caller', 1000),
  ('tasks of an anonymous caller', 100),
  ('tasks of all anonymous callers', 10000),
  ('running tasks of a caller', 3),
  ('running tasks of an anonymous caller', 1),
  ('kept tasks of a caller', 10000),
  ('kept tasks of an anonymous caller', 1000),
  ('bytes of tasks of a caller', 67108864),
  ('idempotency keys of a caller', 10000),
  ('idempotency keys of an anonymous caller', 1000),
  ('idempotency keys of all anonymous callers', 200000),
  ('bytes of kept responses of a caller', 16777216),
  ('bytes of kept responses of all anonymous callers', 268435456)
  on conflict (name) do nothing;
--! Included private/bound.sql
create or replace function private.bound(name text) returns bigint
language sql stable parallel safe
return (select bounds.bound from private.bounds where bounds.name = bound.name);
comment on function private.bound is 'How much of something may be kept; changed by an update of private.bounds.';
--! EndIncluded private/bound.sql

-- The turns of each lane. Lanes have threads of their own, so that none waits for another.
create table if not exists private.task_lanes (
  name text primary key check (name in ('system', 'caller', 'anonymous')),
  turn bigint not null default 0
);
alter table private.task_lanes enable row level security;
comment on table private.task_lanes is 'Tasks that take turns: those of the service, of callers, and of anonymous callers.';
comment on column private.task_lanes.name is 'system: schedules and api.enqueue_as; caller; anonymous: callers without an account, and anonymous accounts.';
comment on column private.task_lanes.turn is 'The turn of the task that began last.';
insert into private.task_lanes (name) values ('system'), ('caller'), ('anonymous') on conflict (name) do nothing;

alter table private.tasks add if not exists lane text not null default 'caller' check (lane in ('system', 'caller', 'anonymous'));
alter table private.tasks add if not exists caller_key text not null default '';
alter table private.tasks add if not exists turn bigint;
alter table private.tasks add if not exists attempts integer not null default 0;
alter table private.tasks add if not exists bytes bigint not null default 0;
update private.tasks set caller_key = owner,
  bytes = octet_length(body) + coalesce(octet_length(result::text), 0),
  lane = case when exists (select from api.schedule_runs where schedule_runs.task = tasks.id) then 'system' else lane end;
comment on column private.tasks.lane is 'Which tasks it takes turns with.';
comment on column private.tasks.caller_key is 'The user, API key, address or schedule; tasks with the same value share bounds and take one turn.';
comment on column private.tasks.turn is 'The place among the tasks of its lane; null until it is due.';
comment on column private.tasks.attempts is 'How often it was begun.';
comment on column private.tasks.bytes is 'The approximate size of the request or of the result.';
drop index if exists private.tasks_waiting_key;
create unique index tasks_waiting_key on private.tasks (owner, key) where status = 'queued' and attempts = 0;
create index if not exists tasks_of_caller on private.tasks (caller_key) include (bytes);
create index if not exists tasks_by_turn on private.tasks (lane, turn, run_at) where status = 'queued';
create index if not exists tasks_running on private.tasks (lane, caller_key) where status = 'running';

alter table private.kept_answers add if not exists caller_key text not null default '';
alter table private.kept_answers add if not exists bytes bigint not null default 0;
comment on column private.kept_answers.caller_key is 'The user, API key or address that shares a quota.';
comment on column private.kept_answers.bytes is 'The size of the response.';
create index if not exists kept_answers_of_caller on private.kept_answers (caller_key text_pattern_ops) include (bytes);
update private.kept_answers set bytes = octet_length(sealed_answer);

drop function if exists private.claim_response(text);
drop function if exists private.store_response(text, text, integer);
--! Included private/claim_response.sql
-- A stored response is returned without claiming the id, so concurrent retries do not wait for one another. Otherwise one transaction at
-- a time has the id; a second one is told at once instead of waiting with a connection. After a rollback the id is free.
-- A caller beyond the bounds is refused before the change is made. Roles that bypass policies are servers of the operator.
create or replace function private.claim_response(
  place text, caller_key text default '', role text default null, out is_claimed boolean, out answer text
) as $$
declare
  v_id bytea := decode(place, 'hex');
  v_is_anonymous boolean := caller_key like 'address %';
  v_bound bigint;
begin
  select encode(kept.sealed_answer, 'base64') into answer
    from private.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  is_claimed := answer is null and pg_try_advisory_xact_lock(('x' || left(place, 16))::bit(64)::bigint);
  if is_claimed then
    -- A separate statement after the lock was taken: it sees what the previous transaction committed.
    select encode(kept.sealed_answer, 'base64') into answer
      from private.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  end if;
  if is_claimed and answer is null and not exists (
    select from pg_roles where rolname = claim_response.role and rolbypassrls
  ) then
    v_bound := private.bound(
      case when v_is_anonymous then 'idempotency keys of an anonymous caller' else 'idempotency keys of a caller' end
    );
    if (
      select count(*) >= v_bound from (
        select from private.kept_answers as kept where kept.caller_key = claim_response.caller_key limit v_bound
      ) as own
    ) or v_is_anonymous and exists (
      select from private.bounds where name = 'idempotency keys of all anonymous callers' and used >= bound
    ) then
      raise exception 'Too many Idempotency-Keys' using errcode = 'TOMNY', detail = 'Nothing was changed.',
        hint = 'Each key is kept for a day. Send the request without a key, or later.';
    end if;
  end if;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.claim_response to authenticator;
comment on function private.claim_response is
  'Returns the stored response; without one claims the id until the end of the transaction, unless another transaction has it.';
--! EndIncluded private/claim_response.sql
--! Included private/store_response.sql
-- Each call deletes a few expired responses; private.maintain_responses deletes the rest. The brief answer says that the change was made and with
-- which status; it is stored where the whole one would exceed a quota.
create or replace function private.store_response(
  place text, answer text, seconds integer, caller_key text default '', role text default null, brief_answer text default null
) returns void as $$
declare
  v_id bytea := decode(place, 'hex');
  v_bytes bigint := octet_length(answer) / 4 * 3;
  v_is_brief boolean := brief_answer is not null and not exists (
    select from pg_roles where rolname = store_response.role and rolbypassrls
  ) and (
    v_bytes + coalesce((
      select sum(kept.bytes) from private.kept_answers as kept where kept.caller_key = store_response.caller_key
    ), 0) > private.bound('bytes of kept responses of a caller')
    or caller_key like 'address %' and exists (
      select from private.bounds where name = 'bytes of kept responses of all anonymous callers' and used >= bound
    )
  );
  v_answer bytea := decode(case when v_is_brief then brief_answer else answer end, 'base64');
begin
  delete from private.kept_answers where id = v_id and expires_at <= now();
  insert into private.kept_answers (id, sealed_answer, expires_at, caller_key, bytes) values (
    v_id, v_answer, clock_timestamp() + make_interval(secs => seconds), store_response.caller_key, octet_length(v_answer)
  );
  -- Under stricter isolation, rows deleted by another transaction would fail this one (40001).
  if current_setting('transaction_isolation') = 'read committed' then
    delete from private.kept_answers where id in (
      select id from private.kept_answers where expires_at <= now()
      order by expires_at limit 10 for update skip locked
    );
  end if;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.store_response to authenticator;
comment on function private.store_response is 'Stores a response at the id that this transaction has claimed.';
--! EndIncluded private/store_response.sql
--! Included private/maintain_responses.sql
-- Counts what all anonymous callers have: each request would take too long for that, and those that run at the same time would wait for one
-- another. Between two counts more may be kept than the bound, as much as callers send in that time.
create or replace function private.maintain_responses() returns void as $$
declare
  v_count bigint;
  v_bytes bigint;
begin
  delete from private.kept_answers where id in (
    select id from private.kept_answers where expires_at <= now() order by expires_at limit 1000 for update skip locked
  );
  -- Of several processes one counts.
  perform from private.bounds
    where name = 'idempotency keys of all anonymous callers' and used_at < clock_timestamp() - interval '5 seconds'
    for update skip locked;
  if not found then
    return;
  end if;
  select count(*), coalesce(sum(kept.bytes), 0) into v_count, v_bytes
    from private.kept_answers as kept where kept.caller_key like 'address %';
  update private.bounds
    set used_at = clock_timestamp(),
      used = case name when 'idempotency keys of all anonymous callers' then v_count else v_bytes end
    where name in ('idempotency keys of all anonymous callers', 'bytes of kept responses of all anonymous callers');
end;
$$ language plpgsql set search_path = '';
comment on function private.maintain_responses is
  'Deletes expired responses, and counts those of anonymous callers; called by the service as the owner.';
--! EndIncluded private/maintain_responses.sql

--! Included private/task_lane.sql
-- Anonymous accounts cost nothing, so what they queue waits with that of callers without an account.
create or replace function private.task_lane(role text, claims jsonb) returns text
language sql immutable parallel safe
return case when task_lane.role = 'anon' or coalesce(claims -> 'is_anonymous' = 'true', false) then 'anonymous' else 'caller' end;
comment on function private.task_lane is 'Which tasks a task takes turns with, if it is not one of the service''s own.';
--! EndIncluded private/task_lane.sql
--! Included private/check_task_bounds.sql
-- The bounds are approximate: two calls may both be the last. Roles that bypass policies are servers of the operator.
create or replace function private.check_task_bounds(lane text, caller_key text, role text) returns void as $$
declare
  v_is_anonymous boolean := lane = 'anonymous';
  v_waiting bigint := private.bound(case when v_is_anonymous then 'tasks of an anonymous caller' else 'tasks of a caller' end);
  v_kept bigint := private.bound(case when v_is_anonymous then 'kept tasks of an anonymous caller' else 'kept tasks of a caller' end);
  v_bytes bigint := private.bound('bytes of tasks of a caller');
  v_all bigint := private.bound('tasks of all anonymous callers');
begin
  if (
    select count(*) >= v_waiting from (
      select from private.tasks
      where tasks.caller_key = check_task_bounds.caller_key and tasks.finished_at is null limit v_waiting
    ) as unfinished
  ) then
    raise exception '% tasks of yours are waiting already', v_waiting using errcode = 'TOMNY';
  end if;
  if exists (select from pg_roles where rolname = role and rolbypassrls) then
    return;
  end if;
  if (
    select count(*) >= v_kept or sum(bytes) >= v_bytes from (
      select tasks.bytes from private.tasks where tasks.caller_key = check_task_bounds.caller_key limit v_kept
    ) as kept
  ) then
    raise exception 'Too many tasks of yours are kept' using errcode = 'TOMNY',
      hint = 'Delete finished tasks, or wait: they are deleted a day after their end.';
  end if;
  if v_is_anonymous and (
    select count(*) >= v_all from (
      select from private.tasks where tasks.lane = 'anonymous' and tasks.finished_at is null limit v_all
    ) as unfinished
  ) then
    raise exception 'Too many tasks of anonymous callers are waiting' using errcode = 'TOMNY', hint = 'Sign in, or try again later.';
  end if;
end;
$$ language plpgsql stable set search_path = '';
comment on function private.check_task_bounds is 'Refuses one more task of a caller who has too many.';
--! EndIncluded private/check_task_bounds.sql
drop function if exists private.queue_task(uuid, text, text, jsonb, jsonb, bytea);
--! Included private/queue_task.sql
-- A given id is that of a retry, whose task may exist already. The key of the caller is the user, the API key, or the address of
-- anonymous callers; those who share it share its bounds and take one turn.
create or replace function private.queue_task(
  given_id uuid, owner text, work text, caller jsonb, request jsonb, body bytea,
  caller_key text default null, lane text default 'caller', out id uuid, out estimate integer
) as $$
#variable_conflict use_variable
declare
  v_waiting integer;
begin
  caller_key := coalesce(caller_key, owner);
  select count(*) into v_waiting from private.tasks
    where tasks.caller_key = queue_task.caller_key and tasks.finished_at is null;
  if not exists (select from private.tasks where tasks.id = given_id) then
    perform private.check_task_bounds(lane, caller_key, caller ->> 'role');
  end if;
  id := coalesce(given_id, gen_random_uuid());
  insert into private.tasks (id, owner, work, caller, request, body, caller_key, lane, bytes)
    values (
      queue_task.id, queue_task.owner, queue_task.work, queue_task.caller, queue_task.request, queue_task.body,
      queue_task.caller_key, queue_task.lane,
      octet_length(body) + octet_length(request::text) + octet_length(caller::text)
    )
    on conflict on constraint tasks_pkey do nothing;
  if found then
    perform graphile_worker.add_job(
      'perform_' || lane, json_build_object('task', queue_task.id), job_key => queue_task.id::text, max_attempts => 5
    );
  end if;
  -- The duration of recent tasks of its kind, after those that the caller has queued before.
  select greatest(1, ceil((v_waiting + 1) * coalesce(avg(extract(epoch from finished_at - started_at)), 1)))
    into estimate
    from (
      select tasks.started_at, tasks.finished_at from private.tasks
      where tasks.work = queue_task.work and tasks.finished_at is not null
      order by tasks.finished_at desc limit 20
    ) as latest;
end;
$$ language plpgsql set search_path = '';
comment on function private.queue_task is
  'Queues a task and estimates how many seconds it will take; called by the service as the owner.';
--! EndIncluded private/queue_task.sql
-- Its body depends on the function that gets another signature; dropped, it would take functions of projects along that call it.
create or replace function api.enqueue_as(
  role text, function text, arguments jsonb default '{}', run_at timestamptz default now(), key text default null,
  claims jsonb default null
) returns uuid
begin atomic
  select null::uuid;
end;
drop function if exists private.queue_call(text, jsonb, text, jsonb, timestamptz, text, interval);
--! Included private/queue_call.sql
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
--! EndIncluded private/queue_call.sql
--! Included api/enqueue_as.sql
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
--! EndIncluded api/enqueue_as.sql
--! Included api/enqueue.sql
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
--! EndIncluded api/enqueue.sql
--! Included private/start_schedule_run.sql
-- Faults that may pass, such as a full disk, end the transaction, and the minute is processed again. Others are those of the schedule.
create or replace function private.start_schedule_run(schedule text, planned_at timestamptz) returns text as $$
declare
  v_schedule api.schedules;
  v_message text;
  v_hint text;
begin
  update api.schedule_runs as run
    set status = 'failed', finished_at = now(), error = '{"code": "XX000", "message": "The task is gone."}'
    where run.schedule = start_schedule_run.schedule and run.status in ('queued', 'running')
      and not exists (select from private.tasks where tasks.id = run.task and tasks.finished_at is null);
  insert into api.schedule_runs (schedule, planned_at, status)
    select start_schedule_run.schedule, start_schedule_run.planned_at, case when exists (
      select from api.schedule_runs as run
      where run.schedule = start_schedule_run.schedule and run.status in ('queued', 'running')
    ) then 'skipped' else 'queued' end
    on conflict on constraint schedule_runs_pkey do nothing;
  if not found then
    return null;
  end if;
  select * into v_schedule from api.schedules where schedules.name = start_schedule_run.schedule;
  begin
    update api.schedule_runs as run
      set task = private.queue_call(
        v_schedule.role, v_schedule.claims || jsonb_build_object('role', v_schedule.role),
        v_schedule.function, v_schedule.arguments, time_limit => v_schedule.time_limit,
        lane => 'system', caller_key => 'schedule ' || v_schedule.name
      )
      where run.schedule = start_schedule_run.schedule and run.planned_at = start_schedule_run.planned_at and run.status = 'queued';
    return case when found then 'queued' else 'skipped' end;
  exception when others then
    if sqlstate ~ '^(08|40|53|55|57|58|XX)' then
      raise;
    end if;
    get stacked diagnostics v_message = message_text, v_hint = pg_exception_hint;
    update api.schedule_runs as run
      set status = 'failed', finished_at = now(),
        error = jsonb_build_object('code', sqlstate, 'message', v_message, 'hint', nullif(v_hint, ''))
      where run.schedule = start_schedule_run.schedule and run.planned_at = start_schedule_run.planned_at;
    return 'failed';
  end;
end;
$$ language plpgsql set search_path = '';
comment on function private.start_schedule_run is
  'Queues a run, unless the previous one is unfinished or this time was run before; returns the status of the run.';
--! EndIncluded private/start_schedule_run.sql
drop function if exists private.begin_task(uuid);
--! Included private/begin_task.sql
-- A job says that there is work; which task it runs is chosen here. Callers take turns (start-time fair queueing): a task is placed one turn after
-- the caller's previous waiting one, and not before the turn that the lane has reached. So hundreds of tasks of one caller are one turn
-- of another caller away from it. The lock on the lane makes attempts to begin wait for one another, for the time of this
-- statement; locked tasks are skipped, because a transaction that changes one, of a caller too, may take long.
create or replace function private.begin_task(lane text)
returns table (
  id uuid, caller jsonb, request jsonb, body bytea, function text, arguments jsonb, call_statement text, time_limit interval,
  attempts integer
) as $$
#variable_conflict use_column
declare
  v_turn bigint;
  v_limit bigint := private.bound(case begin_task.lane
    when 'anonymous' then 'running tasks of an anonymous caller' when 'caller' then 'running tasks of a caller'
  end);
  v_id uuid;
begin
  select task_lanes.turn into v_turn from private.task_lanes where name = begin_task.lane for update;
  with due as materialized (
    select tasks.id, tasks.caller_key, tasks.run_at, tasks.created_at from private.tasks
    where tasks.lane = begin_task.lane and tasks.status = 'queued' and tasks.turn is null and tasks.run_at <= clock_timestamp()
    for update skip locked
  ), placed as (
    select due.id, greatest(v_turn, latest.turn)
      + row_number() over (partition by due.caller_key order by due.run_at, due.created_at, due.id) as turn
    from due
    left join (
      select waiting.caller_key, max(waiting.turn) as turn from private.tasks as waiting
      where waiting.lane = begin_task.lane and waiting.status = 'queued' and waiting.turn is not null
        and waiting.caller_key in (select due.caller_key from due)
      group by 1
    ) as latest using (caller_key)
  )
  update private.tasks set turn = placed.turn from placed where tasks.id = placed.id;

  select waiting.id, waiting.turn into v_id, v_turn from private.tasks as waiting
    where waiting.lane = begin_task.lane and waiting.status = 'queued' and waiting.turn is not null and (
      v_limit is null
      or v_limit > (
        select count(*) from private.tasks as running
        where running.lane = waiting.lane and running.caller_key = waiting.caller_key and running.status = 'running'
      )
      or exists (select from pg_roles where rolname = waiting.caller ->> 'role' and rolbypassrls)
    )
    order by waiting.turn, waiting.run_at limit 1 for update skip locked;
  if v_id is null then
    return;
  end if;
  update private.task_lanes set turn = greatest(turn, v_turn) where name = begin_task.lane;
  return query
    update private.tasks set status = 'running', started_at = clock_timestamp(), attempts = tasks.attempts + 1
      where tasks.id = v_id
      returning tasks.id, tasks.caller, tasks.request, tasks.body, tasks.function, tasks.arguments,
        private.call_statement(tasks.function, tasks.arguments),
        tasks.time_limit, tasks.attempts;
end;
$$ language plpgsql set search_path = '';
comment on function private.begin_task is 'Chooses the task of a lane that is to run next, if one is due; called by the service as the owner.';
--! EndIncluded private/begin_task.sql
--! Included private/wake_lane.sql
-- The job of a task that could not begin, because its caller was running enough, is gone.
create or replace function private.wake_lane(lane text, caller_key text) returns void as $$
begin
  if exists (
    select from private.tasks
    where tasks.lane = wake_lane.lane and tasks.caller_key = wake_lane.caller_key and tasks.status = 'queued'
      and tasks.turn is not null
  ) then
    perform graphile_worker.add_job('perform_' || lane, '{}', max_attempts => 5);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function private.wake_lane is 'Lets the next task of a caller begin when one has ended.';
--! EndIncluded private/wake_lane.sql
--! Included private/requeue_task.sql
create or replace function private.requeue_task(id uuid, after interval) returns void as $$
declare
  v_lane text;
begin
  update private.tasks set status = 'queued', run_at = clock_timestamp() + requeue_task.after, turn = null
    where tasks.id = requeue_task.id and status = 'running'
    returning lane into v_lane;
  if found then
    perform graphile_worker.add_job('perform_' || v_lane, '{}', run_at => clock_timestamp() + requeue_task.after, max_attempts => 5);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function private.requeue_task is 'Leaves a task whose attempt failed to another attempt; called by the service as the owner.';
--! EndIncluded private/requeue_task.sql
--! Included private/fail_task.sql
create or replace function private.fail_task(id uuid, error jsonb) returns void as $$
declare
  v_lane text;
  v_caller_key text;
begin
  update private.tasks
    set status = 'failed', error = fail_task.error, finished_at = now(), expires_at = now() + interval '1 day',
      request = '{}', body = '', arguments = '{}', bytes = octet_length(fail_task.error::text)
    where tasks.id = fail_task.id and finished_at is null
    returning lane, caller_key into v_lane, v_caller_key;
  if found then
    perform private.wake_lane(v_lane, v_caller_key);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function private.fail_task is 'Marks a task as failed; called by the service as the owner.';
--! EndIncluded private/fail_task.sql
--! Included private/finish_task.sql
-- Committed together with the changes of the task. A result beyond the quota of the caller is not kept, rather than undoing what was done.
create or replace function private.finish_task(id text, result text) returns void as $$
declare
  v_task private.tasks;
  v_bytes bigint := private.bound('bytes of tasks of a caller');
  v_is_kept boolean;
begin
  select * into v_task from private.tasks where tasks.id = finish_task.id::uuid;
  v_is_kept := v_task.lane = 'system'
    or exists (select from pg_roles where rolname = v_task.caller ->> 'role' and rolbypassrls)
    or octet_length(result) + coalesce((
      select sum(tasks.bytes) from private.tasks where tasks.caller_key = v_task.caller_key and tasks.id <> v_task.id
    ), 0) <= v_bytes;
  update private.tasks
    set status = 'done', result = case when v_is_kept then finish_task.result::json else 'null' end,
      error = case when not v_is_kept then jsonb_build_object(
        'status', 507, 'code', 'RESULT_NOT_KEPT',
        'message', 'The task is done. Its result is not kept, because the results of your tasks take too much space.',
        'hint', 'Delete finished tasks, or wait: they are deleted a day after their end.'
      ) end,
      finished_at = clock_timestamp(), expires_at = clock_timestamp() + interval '1 day',
      request = '{}', body = '', arguments = '{}', bytes = case when v_is_kept then octet_length(finish_task.result) else 0 end
    where tasks.id = v_task.id;
  perform private.wake_lane(v_task.lane, v_task.caller_key);
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.finish_task to authenticator;
comment on function private.finish_task is 'Stores the response of the task that this transaction runs.';
--! EndIncluded private/finish_task.sql
--! Included private/maintain_tasks.sql
-- A task that is running but locked by no transaction has died with its process, or is about to begin; in the second case another attempt may start
-- too, and one of them does nothing. A due task without a job (of a restored backup, of a process that died, of an earlier version) gets one.
create or replace function private.maintain_tasks() returns void as $$
declare
  v_dead record;
begin
  for v_dead in
    select tasks.id, tasks.attempts from private.tasks
    where status = 'running' and finished_at is null and coalesce(started_at, created_at) < now() - interval '10 seconds'
    for update skip locked
  loop
    if v_dead.attempts < 5 then
      perform private.requeue_task(v_dead.id, '0 seconds');
    else
      perform private.fail_task(
        v_dead.id, '{"status": 500, "code": "XX000", "message": "The task was given up after several attempts."}'
      );
    end if;
  end loop;
  perform graphile_worker.add_job('perform_' || jobless.lane, '{}', max_attempts => 5)
    from (
      select name as lane, (
        select count(*) from (
          select from private.tasks where tasks.lane = name and status = 'queued' and run_at <= now() limit 10
        ) as due
      ) - (
        select count(*) from (
          select from graphile_worker.jobs
          where task_identifier = 'perform_' || name and locked_at is null and run_at <= now() and attempts < max_attempts limit 10
        ) as ready
      ) as missing
      from private.task_lanes
    ) as jobless, generate_series(1, jobless.missing);
  delete from private.tasks where tasks.id in (
    select expired.id from private.tasks as expired where expired.expires_at <= now()
    order by expired.expires_at limit 1000 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function private.maintain_tasks is
  'Requeues abandoned tasks, fails hopeless ones, adds missing jobs and deletes old tasks; called by the service as the owner.';
--! EndIncluded private/maintain_tasks.sql

--! Previous: sha1:5965d117492ce022e9db0a4602e8989607e9f415
--! Hash: sha1:1152ac528dac950aff99c80ddda4c3ac1f9a4263

-- Functions of SQL that run by the clock. The service evaluates the schedules each minute and queues what is due.
create table api.schedules (
  name        text constraint schedules_pkey primary key constraint schedules_name_length check (length(name) between 1 and 100),
  cron        text not null constraint schedules_cron_max_length check (length(cron) <= 200),
  time_zone   text not null default 'UTC',
  function    text not null,
  arguments   jsonb not null default '{}' constraint schedules_arguments_object check (jsonb_typeof(arguments) = 'object'),
  role        text not null,
  claims      jsonb not null default '{}' constraint schedules_claims_object check (jsonb_typeof(claims) = 'object'),
  is_enabled  boolean not null default true,
  time_limit  interval constraint schedules_time_limit_range check (time_limit between '1 second' and '1 day'),
  catch_up    boolean not null default false,
  changed_at  timestamptz not null default now(),
  next_run_at timestamptz
);
create index on api.schedules (role);
alter table api.schedules enable row level security;
create policy members_all on api.schedules using (pg_has_role(to_regrole(quote_ident(role)), 'member')) with check (pg_has_role(to_regrole(quote_ident(role)), 'member'));
comment on table api.schedules is 'Functions that run at certain times, once over all gateways.';
comment on column api.schedules.name is 'Identifies the schedule in its history, the log and the metrics.';
comment on column api.schedules.cron is 'Minute, hour, day, month and weekday, such as 30 3 * * *; or @hourly, @daily, @weekly, @monthly, @yearly.';
comment on column api.schedules.time_zone is 'The time zone of the cron text, such as Europe/Berlin.';
comment on column api.schedules.function is 'The function to call, with its schema.';
comment on column api.schedules.arguments is 'The named arguments of the function, as an object.';
comment on column api.schedules.role is 'The role that the function runs as. Who writes the schedule must be a member of it.';
comment on column api.schedules.claims is 'The claims that policies see, such as {"sub": "…"}.';
comment on column api.schedules.is_enabled is 'Whether the schedule runs.';
comment on column api.schedules.time_limit is 'How long a run may take, within TASK_TIMEOUT_SECONDS; null for that limit.';
comment on column api.schedules.catch_up is 'Whether the last one of the runs that were missed while no gateway ran is made up for, however long ago it was.';
comment on column api.schedules.changed_at is 'When its times were last changed. Earlier times are not run.';
comment on column api.schedules.next_run_at is 'The first time that was not processed yet. Set by the service, within a minute after a change; null if there is none.';
comment on constraint schedules_pkey on api.schedules is 'There is a schedule with this name already.';
comment on constraint schedules_name_length on api.schedules is 'A name has 1 to 100 characters.';
comment on constraint schedules_cron_max_length on api.schedules is 'A cron text has at most 200 characters.';
comment on constraint schedules_arguments_object on api.schedules is 'Arguments are an object, such as {"days": 30}.';
comment on constraint schedules_claims_object on api.schedules is 'Claims are an object, such as {"sub": "…"}.';
comment on constraint schedules_time_limit_range on api.schedules is 'A time limit is between one second and one day.';

create table api.schedule_runs (
  schedule    text not null constraint schedule_runs_schedule_fkey
                references api.schedules on update cascade on delete cascade,
  planned_at  timestamptz not null,
  status      text not null constraint schedule_runs_status_known
                check (status in ('queued', 'running', 'done', 'failed', 'skipped', 'missed')),
  task        uuid,
  started_at  timestamptz,
  finished_at timestamptz,
  error       jsonb,
  constraint schedule_runs_pkey primary key (schedule, planned_at)
);
create unique index schedule_runs_task on api.schedule_runs (task) where task is not null;
create index on api.schedule_runs (planned_at);
create unique index schedule_runs_unfinished on api.schedule_runs (schedule) where status in ('queued', 'running');
create index schedule_runs_done on api.schedule_runs (schedule, planned_at) where status = 'done';
alter table api.schedule_runs enable row level security;
create policy members_select on api.schedule_runs for select using (exists (select from api.schedules where schedules.name = schedule_runs.schedule));
 comment on table api.schedule_runs is 'The runs of the last seven days, and at least the last hundred of each schedule.';
comment on column api.schedule_runs.schedule is 'The schedule.';
comment on column api.schedule_runs.planned_at is 'The time of the schedule that this run is for.';
comment on column api.schedule_runs.status is 'queued, running, done, failed; skipped: the previous run was unfinished; missed: no gateway ran at that time.';
comment on column api.schedule_runs.task is 'The task that calls the function.';
comment on column api.schedule_runs.started_at is 'When the latest attempt began.';
comment on column api.schedule_runs.finished_at is 'When it was done or had failed.';
comment on column api.schedule_runs.error is 'Why it failed.';
comment on constraint schedule_runs_pkey on api.schedule_runs is 'This time of the schedule was run already.';
comment on constraint schedule_runs_schedule_fkey on api.schedule_runs is 'The schedule must exist.';
comment on constraint schedule_runs_status_known on api.schedule_runs is 'Unknown status.';

-- Its only row is locked while the minutes are processed, so each is processed once.
create table content_service.schedule_clock (
  is_only   boolean primary key default true check (is_only),
  processed timestamptz not null default date_trunc('minute', now())
);
insert into content_service.schedule_clock default values;
alter table content_service.schedule_clock enable row level security;
comment on table content_service.schedule_clock is 'How far the schedules are processed.';
comment on column content_service.schedule_clock.is_only is 'There is one row.';
comment on column content_service.schedule_clock.processed is 'The last minute that was processed.';

-- Accepts less than the library that evaluates cron texts; what both accept means the same.
create function content_service.cron_values(field text, unit text, low integer, high integer, names text[]) returns integer[] as $$
declare
  v_item text;
  v_match text[];
  v_bounds integer[];
  v_step integer;
  v_values integer[] := '{}';
begin
  foreach v_item in array string_to_array(lower(field), ',') loop
    v_match := regexp_match(v_item, '^(?:\*|(\d\d?|[a-z]{3})(?:-(\d\d?|[a-z]{3}))?)(?:/(\d\d?))?$');
    v_bounds := array[low, high];
    v_step := coalesce(v_match[3]::integer, 1);
    if v_match[1] is not null then
      v_bounds := array(
        select case when bound ~ '^\d' then bound::integer else array_position(names, bound) - 1 + low end
        from unnest(array[v_match[1], coalesce(v_match[2], v_match[1])]) with ordinality as bounds (bound, place)
        order by place
      );
    end if;
    if v_match is null or array_position(v_bounds, null) is not null
      or v_bounds[1] < low or v_bounds[2] > high or v_bounds[1] > v_bounds[2]
      or v_step not between 1 and coalesce(cardinality(names), high - low + 1)
      or (v_match[3] is not null and v_match[1] is not null and v_match[2] is null)
    then
      raise exception 'The % of a cron text cannot be "%"', unit, v_item using errcode = 'WRONG', detail = 'cron', hint = format(
        'Write *, numbers from %s to %s, ranges such as %s-%s, steps such as */2 or %s-%s/2, or a list of these separated by commas%s.',
        low, high, low, low + 5, low, low + 5, ', or names such as ' || names[1]
      );
    end if;
    v_values := v_values || array(select generate_series(v_bounds[1], v_bounds[2], v_step));
  end loop;
  return v_values;
end;
$$ language plpgsql immutable set search_path = '';
comment on function content_service.cron_values is 'The values of one field of a cron text. Raises if the field cannot be read.';

create function content_service.check_cron(cron text) returns void as $$
declare
  v_fields text[] := regexp_split_to_array(btrim(cron), ' +');
  v_days integer[];
  v_months integer[];
begin
  if lower(btrim(cron)) in ('@hourly', '@daily', '@weekly', '@monthly', '@yearly') then
    return;
  end if;
  if cardinality(v_fields) <> 5 then
    raise exception 'A cron text has five fields, and "%" has %', cron, cardinality(v_fields)
      using errcode = 'WRONG', detail = 'cron',
        hint = 'Write minute, hour, day, month and weekday, such as 30 3 * * *, or @hourly, @daily, @weekly, @monthly or @yearly.';
  end if;
  perform content_service.cron_values(v_fields[1], 'minute', 0, 59, null);
  perform content_service.cron_values(v_fields[2], 'hour', 0, 23, null);
  v_days := content_service.cron_values(v_fields[3], 'day', 1, 31, null);
  v_months := content_service.cron_values(v_fields[4], 'month', 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
  perform content_service.cron_values(v_fields[5], 'weekday', 0, 7, '{sun,mon,tue,wed,thu,fri,sat}');
  if v_fields[5] = '*' and not exists (
    select from unnest(v_days) as day, unnest(v_months) as month
    where day <= case when month = 2 then 29 when month in (4, 6, 9, 11) then 30 else 31 end
  ) then
    raise exception 'The months of "%" have no such day', cron using errcode = 'WRONG', detail = 'cron';
  end if;
end;
$$ language plpgsql immutable set search_path = '';
comment on function content_service.check_cron is 'Raises if the cron text cannot be read, or names no day that exists.';

-- With the rights of who writes, unlike the other checks.
create function content_service.tg__check_schedule_role() returns trigger as $$
begin
  -- A schedule whose role is gone can be disabled.
  if TG_OP = 'UPDATE' and not NEW.is_enabled and NEW.role = OLD.role then
    return NEW;
  end if;
  if NEW.role is null then
    raise exception 'A schedule must have a role' using errcode = 'WRONG', detail = 'role',
      hint = 'Write the role that the function runs as, such as service_role.';
  end if;
  if to_regrole(quote_ident(NEW.role)) is null then
    raise exception 'There is no role %', NEW.role using errcode = 'WRONG', detail = 'role';
  end if;
  if not pg_has_role(to_regrole(quote_ident(NEW.role)), 'member') then
    raise exception 'Only members of % may choose it as the role of a schedule', NEW.role
      using errcode = 'NOPER', detail = 'role', hint = format('Run as a superuser: grant %I to %I', NEW.role, current_user);
  end if;
  return NEW;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.tg__check_schedule_role is 'Refuses a role that the writer of a schedule is no member of.';

-- With the rights of the owner, because who writes schedules may not use this schema.
create function content_service.tg__check_schedule() returns trigger as $$
begin
  if TG_OP = 'UPDATE' and not NEW.is_enabled then
    return NEW;
  end if;
  perform content_service.check_cron(NEW.cron);
  if not exists (select from pg_timezone_names where name = NEW.time_zone) then
    raise exception 'There is no time zone %', NEW.time_zone using errcode = 'WRONG', detail = 'time_zone',
      hint = coalesce(
        (select format('Write %s.', name) from pg_timezone_names where lower(name) = lower(NEW.time_zone) limit 1),
        'Write a name of pg_timezone_names, such as Europe/Berlin.'
      );
  end if;
  perform content_service.check_task_role(NEW.role);
  perform content_service.callable_function(NEW.role, NEW.function, NEW.arguments);
  if TG_OP = 'INSERT' or (NEW.cron, NEW.time_zone, NEW.is_enabled) is distinct from (OLD.cron, OLD.time_zone, OLD.is_enabled) then
    NEW.changed_at := clock_timestamp();
    NEW.next_run_at := null;
  end if;
  return NEW;
end;
$$ language plpgsql security definer set search_path = '';
comment on function content_service.tg__check_schedule is 'Refuses a schedule that could not run.';
create trigger _100_check_role before insert or update of role, function, arguments, claims, cron, time_zone, is_enabled
  on api.schedules for each row execute function content_service.tg__check_schedule_role();
create trigger _200_check before insert or update of role, function, arguments, cron, time_zone, is_enabled
  on api.schedules for each row execute function content_service.tg__check_schedule();

-- The runs follow the tasks.
create function content_service.tg__follow_schedule_run() returns trigger as $$
begin
  if TG_OP = 'DELETE' then
    update api.schedule_runs
      set status = 'failed', finished_at = now(), error = '{"code": "57014", "message": "The task was deleted before it was finished."}'
      where schedule_runs.task = OLD.id;
  else
    update api.schedule_runs
      set status = NEW.status, started_at = NEW.started_at, finished_at = NEW.finished_at, error = NEW.error
      where schedule_runs.task = NEW.id;
  end if;
  return null;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.tg__follow_schedule_run is 'Copies the state of a task to the run of the schedule that queued it.';
create trigger _500_follow_run after update of status on content_service.tasks for each row when (NEW.function is not null) execute function content_service.tg__follow_schedule_run();
create trigger _500_end_run after delete on content_service.tasks
  for each row when (OLD.function is not null and OLD.finished_at is null) execute function content_service.tg__follow_schedule_run();

create function content_service.schedule_fault(schedule api.schedules, out message text, out hint text) as $$
begin
  perform content_service.check_task_role(schedule.role);
  perform content_service.callable_function(schedule.role, schedule.function, schedule.arguments);
exception when others then
  get stacked diagnostics message = message_text, hint = pg_exception_hint;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.schedule_fault is 'Why a schedule that was written before cannot run now; null if it can.';

-- The clock is the database's, so that a gateway whose clock is ahead runs nothing early. A gateway plans a minute by its own clock: one that
-- the database reaches within half a minute counts as reached. When the database's clock was set back, the times are counted anew from there.
create function content_service.begin_schedule_minutes(planned_at timestamptz, out processed timestamptz, out until timestamptz, out was_set_back boolean) as $$
declare
  v_now timestamptz;
begin
  select schedule_clock.processed into begin_schedule_minutes.processed from content_service.schedule_clock for update;
  v_now := clock_timestamp();
  until := date_trunc('minute', greatest(v_now, least(planned_at, v_now + interval '30 seconds')));
  was_set_back := until < processed - interval '1 minute';
  if was_set_back then
    update api.schedules set changed_at = until, next_run_at = null where next_run_at > until;
    processed := until;
  end if;
  until := greatest(until, processed);
end;
$$ language plpgsql set search_path = '';
comment on function content_service.begin_schedule_minutes is 'Locks the clock until the end of the transaction, and returns how far the schedules are to be processed; called by the service as the owner.';

-- Faults that may pass, such as a full disk, end the transaction, and the minute is processed again. Others are those of the schedule.
create function content_service.start_schedule_run(schedule text, planned_at timestamptz) returns text as $$
declare
  v_schedule api.schedules;
  v_message text;
  v_hint text;
begin
  -- A transaction that is starting a run is not waited for: it may be open for long.
  if not pg_try_advisory_xact_lock(hashtextextended('start_schedule_run ' || schedule, 0)) then
    insert into api.schedule_runs (schedule, planned_at, status)
      values (start_schedule_run.schedule, start_schedule_run.planned_at, 'skipped')
      on conflict on constraint schedule_runs_pkey do nothing;
    return case when found then 'skipped' end;
  end if;
  update api.schedule_runs as run
    set status = 'failed', finished_at = now(), error = '{"code": "XX000", "message": "The task is gone."}'
    where run.schedule = start_schedule_run.schedule and run.status in ('queued', 'running')
      and not exists (select from content_service.tasks where tasks.id = run.task and tasks.finished_at is null);
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
      set task = content_service.queue_call(
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
comment on function content_service.start_schedule_run is 'Queues a run, unless the previous one is unfinished or this time was run before; returns the status of the run.';

create function content_service.record_schedule_minutes(until timestamptz, outcomes jsonb) returns table (schedule text, status text, runs bigint) as $$
begin
  return query
    with outcome as (
      select * from jsonb_to_recordset(outcomes) as outcome (
        name text, due timestamptz, missed timestamptz[], next timestamptz
      )
    ), missed_run as (
      insert into api.schedule_runs (schedule, planned_at, status)
        select outcome.name, missed.planned_at, 'missed' from outcome, unnest(outcome.missed) as missed (planned_at)
        on conflict on constraint schedule_runs_pkey do nothing
        returning schedule_runs.schedule, schedule_runs.status
    ), due_run as (
      select outcome.name as schedule, content_service.start_schedule_run(outcome.name, outcome.due) as status
      from outcome where outcome.due is not null order by outcome.name
    ), processed as (
      update api.schedules set next_run_at = outcome.next from outcome where schedules.name = outcome.name
    )
    select run.schedule, run.status, count(*)
    from (table missed_run union all table due_run) as run
    where run.status is not null group by 1, 2 order by 1, 2;
  delete from api.schedule_runs as run using (
    select outcome.name as schedule, (
      select latest.planned_at from api.schedule_runs as latest
      where latest.schedule = outcome.name order by latest.planned_at desc offset 99 limit 1
    ) as planned_at
    from jsonb_to_recordset(outcomes) as outcome (name text)
  ) as oldest
    where run.schedule = oldest.schedule and run.planned_at < least(oldest.planned_at, record_schedule_minutes.until - interval '7 days')
      and oldest.planned_at is not null and run.status not in ('queued', 'running');
  update content_service.schedule_clock set processed = record_schedule_minutes.until;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.record_schedule_minutes is 'Queues what is due, records what was missed, and deletes old runs; called by the service as the owner, after begin_schedule_minutes.';

create function api.run_schedule(name text) returns text as $$
begin
  if not exists (select from api.schedules where schedules.name = run_schedule.name) then
    raise exception 'There is no schedule %', name using errcode = 'NTFND', detail = 'name';
  end if;
  return content_service.start_schedule_run(name, clock_timestamp());
end;
$$ language plpgsql set search_path = '';
comment on function api.run_schedule is 'Runs a schedule now, also a disabled one, unless its previous run is unfinished. Returns the status of the run. For the owner.';

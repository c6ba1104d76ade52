-- The job of a task that could not begin, because its caller was running enough, is gone.
create or replace function private.wake_lane(lane text, caller_key text) returns void as $$
declare
  v_limit bigint := private.bound(case wake_lane.lane
    when 'anonymous' then 'running tasks of an anonymous caller' when 'caller' then 'running tasks of a caller'
  end);
begin
  if v_limit is null then
    return;
  end if;
  -- The task that has ended does not count any more.
  if v_limit - 1 <= (
    select count(*) from private.tasks
    where tasks.lane = wake_lane.lane and tasks.caller_key = wake_lane.caller_key and tasks.status = 'running'
  ) and exists (
    select from private.tasks
    where tasks.lane = wake_lane.lane and tasks.caller_key = wake_lane.caller_key and tasks.status = 'queued'
      and tasks.turn is not null
  ) then
    perform graphile_worker.add_job('perform_' || lane, '{}', max_attempts => 5);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function private.wake_lane is 'Lets the next task of a caller begin when one has ended.';

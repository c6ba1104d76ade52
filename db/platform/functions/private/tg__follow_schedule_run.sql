create or replace function private.tg__follow_schedule_run() returns trigger as $$
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
comment on function private.tg__follow_schedule_run is 'Copies the state of a task to the run of the schedule that queued it.';

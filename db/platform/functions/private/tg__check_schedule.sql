-- With the rights of the owner, because who writes schedules may not use this schema.
create or replace function private.tg__check_schedule() returns trigger as $$
begin
  if TG_OP = 'UPDATE' and not NEW.is_enabled then
    return NEW;
  end if;
  perform private.check_cron(NEW.cron);
  if not exists (select from pg_timezone_names where name = NEW.time_zone) then
    raise exception 'There is no time zone %', NEW.time_zone using errcode = 'WRONG', detail = 'time_zone',
      hint = coalesce(
        (select format('Write %s.', name) from pg_timezone_names where lower(name) = lower(NEW.time_zone) limit 1),
        'Write a name of pg_timezone_names, such as Europe/Berlin.'
      );
  end if;
  perform private.check_task_role(NEW.role);
  perform private.callable_function(NEW.role, NEW.function, NEW.arguments);
  if TG_OP = 'INSERT' or (NEW.cron, NEW.time_zone, NEW.is_enabled) is distinct from (OLD.cron, OLD.time_zone, OLD.is_enabled) then
    NEW.changed_at := clock_timestamp();
    NEW.next_run_at := null;
  end if;
  return NEW;
end;
$$ language plpgsql security definer set search_path = '';
comment on function private.tg__check_schedule is 'Refuses a schedule that could not run.';

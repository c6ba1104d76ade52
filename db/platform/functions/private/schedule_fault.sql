create or replace function private.schedule_fault(schedule api.schedules, out message text, out hint text) as $$
begin
  perform private.check_task_role(schedule.role);
  perform private.callable_function(schedule.role, schedule.function, schedule.arguments);
exception when others then
  get stacked diagnostics message = message_text, hint = pg_exception_hint;
end;
$$ language plpgsql set search_path = '';
comment on function private.schedule_fault is 'Why a schedule that was written before cannot run now; null if it can.';

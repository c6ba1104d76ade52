-- Visible at once, before the transaction ends: see private.task_progress.
create or replace function api.report_progress(percent integer) returns void as $$
declare
  v_task text := nullif(current_setting('request.task', true), '');
begin
  if v_task is not null then
    perform pg_advisory_xact_lock_shared(hashtext(v_task), least(greatest(percent, 0), 100));
  end if;
end;
$$ language plpgsql set search_path = '';
grant execute on function api.report_progress to anon, authenticated, service_role;
comment on function api.report_progress is
  'Reports the progress of a function called with Prefer: respond-async; has no effect elsewhere.';

create or replace function api.run_schedule(name text) returns text as $$
begin
  if not exists (select from api.schedules where schedules.name = run_schedule.name) then
    raise exception 'There is no schedule %', name using errcode = 'NTFND', detail = 'name';
  end if;
  return private.start_schedule_run(name, clock_timestamp());
end;
$$ language plpgsql set search_path = '';
comment on function api.run_schedule is
  'Runs a schedule now, also a disabled one, unless its previous run is unfinished. Returns the status of the run. For the owner.';

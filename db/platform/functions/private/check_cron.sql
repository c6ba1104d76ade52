create or replace function private.check_cron(cron text) returns void as $$
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
  perform private.cron_values(v_fields[1], 'minute', 0, 59, null);
  perform private.cron_values(v_fields[2], 'hour', 0, 23, null);
  v_days := private.cron_values(v_fields[3], 'day', 1, 31, null);
  v_months := private.cron_values(v_fields[4], 'month', 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
  perform private.cron_values(v_fields[5], 'weekday', 0, 7, '{sun,mon,tue,wed,thu,fri,sat}');
  if v_fields[5] = '*' and not exists (
    select from unnest(v_days) as day, unnest(v_months) as month
    where day <= case when month = 2 then 29 when month in (4, 6, 9, 11) then 30 else 31 end
  ) then
    raise exception 'The months of "%" have no such day', cron using errcode = 'WRONG', detail = 'cron';
  end if;
end;
$$ language plpgsql immutable set search_path = '';
comment on function private.check_cron is 'Raises if the cron text cannot be read, or names no day that exists.';

create or replace function auth.end_attempt(name text, address inet, outcome text) returns void as $$
declare
  v_counter record;
begin
  for v_counter in select * from auth.login_counters(name, address) loop
    update auth.login_throttle set
      pending = greatest(pending - 1, 0),
      failures = case
        when outcome = 'failed' then failures
        -- A success clears the failures of this user at this address, except attempts in progress.
        when outcome = 'passed' and scope = 'pair' then greatest(pending - 1, 0)
        else greatest(failures - 1, 0)
      end
      where scope = v_counter.scope and key = v_counter.key;
    delete from auth.login_throttle where scope = v_counter.scope and key = v_counter.key and failures = 0;
  end loop;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_attempt is 'Records that an attempt passed, failed, or was abandoned.';

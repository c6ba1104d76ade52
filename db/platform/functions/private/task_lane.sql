-- Anonymous accounts cost nothing, so what they queue waits with that of callers without an account.
create or replace function private.task_lane(role text, claims jsonb) returns text
language sql immutable parallel safe
return case when task_lane.role = 'anon' or coalesce(claims -> 'is_anonymous' = 'true', false) then 'anonymous' else 'caller' end;
comment on function private.task_lane is 'Which tasks a task takes turns with, if it is not one of the service''s own.';

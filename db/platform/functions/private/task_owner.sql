create or replace function private.task_owner(role text, claims jsonb) returns text
language sql immutable parallel safe
return coalesce('user ' || case jsonb_typeof(claims -> 'sub') when 'string' then nullif(claims ->> 'sub', '') end, 'role ' || role);
comment on function private.task_owner is 'Whose a task is: the user''s with any credential, or the role''s where there is no user.';

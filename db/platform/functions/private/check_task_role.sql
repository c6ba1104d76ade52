-- Tasks do not run as the owner of the tables or as a superuser, whom no policy binds: psql and triggers of the service act as them
-- without having chosen so. A role that bypasses policies, such as service_role, has to be chosen.
create or replace function private.check_task_role(role text) returns void as $$
declare
  v_become text := case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
begin
  if not exists (select from pg_roles where rolname = role) then
    raise exception 'There is no role %', role using errcode = 'WRONG', detail = 'role';
  end if;
  if exists (
    select from pg_roles where rolname = role and (
      rolsuper or oid = (select relowner from pg_class where oid = 'private.tasks'::regclass)
    )
  ) then
    raise exception 'No function is queued as %, which bypasses the policies', role
      using errcode = 'NOPER', hint = 'Choose a role of requests, such as service_role: "set role service_role" before '
        'api.enqueue, the argument of api.enqueue_as, or the column "role" of a schedule.';
  end if;
  -- The logins of the service are those that may lock tasks.
  if not exists (
    select from pg_roles as login
    where not login.rolsuper and has_function_privilege(login.oid, 'private.lock_task(text)', 'execute')
      and login.oid <> (select relowner from pg_class where oid = 'private.tasks'::regclass)
      and pg_has_role(login.oid, role, v_become)
  ) then
    raise exception 'The login of the service cannot run functions as %', role
      using errcode = 'NOPER', hint = format('Run once as the owner: grant %I to authenticator', role);
  end if;
end;
$$ language plpgsql stable set search_path = '';
comment on function private.check_task_role is 'Refuses roles that tasks cannot or must not run as.';

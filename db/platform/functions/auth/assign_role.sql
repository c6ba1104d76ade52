create or replace function auth.assign_role(user_id bigint, role text, client_info auth.client_info) returns void as $$
begin
  perform auth.lock_account(assign_role.user_id);
  if not exists (select from auth.roles where roles.name = assign_role.role and assignable) then
    raise exception 'There is no role of that name for users' using errcode = 'WRONG', detail = 'role';
  end if;
  if assign_role.role = 'authenticated' then
    delete from auth.user_roles where user_roles.user_id = assign_role.user_id;
  else
    insert into auth.user_roles (user_id, role) values (assign_role.user_id, assign_role.role)
      on conflict on constraint user_roles_pkey do update set role = excluded.role, granted_at = now();
  end if;
  perform auth.log_event('role.assigned', assign_role.user_id, client_info, jsonb_build_object('role', assign_role.role));
end;
$$ language plpgsql set search_path = '';
comment on function auth.assign_role is
  'Assigns a role. Access tokens with another role end within seconds; a refresh issues new ones.';

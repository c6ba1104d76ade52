-- Of a name as much as people read: it has no bound, and a token travels in a header, which has one.
create or replace function auth.claims_of(user_id bigint) returns jsonb
language sql stable
begin atomic
  select jsonb_build_object(
    'sub', users.id::text,
    'name', left(users.name, 200),
    'role', held.role,
    'permissions', (
      select coalesce(jsonb_agg(granted.permission order by granted.permission), '[]')
      from (
        select user_permissions.permission from auth.user_permissions where user_permissions.user_id = users.id
        union
        -- An admin may do what everybody who is signed in may: permissions are inherited as Postgres's own privileges are.
        select role_permissions.permission
        from auth.role_permissions
        join pg_roles as granted_to on granted_to.rolname = role_permissions.role
        join pg_roles as own on own.rolname = held.role
        where pg_has_role(own.oid, granted_to.oid, 'usage')
      ) as granted
    )
  )
  from public.users
  cross join lateral (
    select coalesce((
      select user_roles.role from auth.user_roles join auth.roles on roles.name = user_roles.role
      where user_roles.user_id = users.id and roles.assignable
    ), 'authenticated') as role
  ) as held
  where users.id = claims_of.user_id;
end;

comment on function auth.claims_of is 'What a credential of this user says: sub, name, role and permissions.';

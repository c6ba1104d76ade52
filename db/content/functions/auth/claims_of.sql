-- The name is cut at 200 characters: a token travels in a header, whose length is limited.
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
        -- Permissions are inherited like Postgres privileges: an admin has those of authenticated.
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

comment on function auth.claims_of is 'The claims of a credential of this user: sub, name, role and permissions.';

-- The subject is what auth.uid() reads: a uuid where a project's own auth.uid() returns one, and the id is another claim then.
-- The name is cut at 200 characters: a token travels in a header, whose length is limited.
create or replace function auth.claims_of(user_id bigint) returns jsonb
language sql stable
begin atomic
  select jsonb_build_object(
    'sub', case when subject.is_uuid then account.id::text else claims_of.user_id::text end,
    'name', left(profile.name, 200),
    'role', held.role,
    'permissions', (
      select coalesce(jsonb_agg(granted.permission order by granted.permission), '[]')
      from (
        select user_permissions.permission from auth.user_permissions where user_permissions.user_id = claims_of.user_id
        union
        -- Permissions are inherited like Postgres privileges: an admin has those of authenticated.
        select role_permissions.permission
        from auth.role_permissions
        join pg_roles as granted_to on granted_to.rolname = role_permissions.role
        join pg_roles as own on own.rolname = held.role
        where pg_has_role(own.oid, granted_to.oid, 'usage')
      ) as granted
    )
  ) || case when subject.is_uuid then jsonb_build_object('user_id', claims_of.user_id::text) else '{}' end
  from auth.profile_of(claims_of.user_id) as profile
  cross join (select auth.has_uuid_subjects() as is_uuid) as subject
  left join auth.users as account on account.user_id = claims_of.user_id
  cross join lateral (
    select coalesce((
      select user_roles.role from auth.user_roles join auth.roles on roles.name = user_roles.role
      where user_roles.user_id = claims_of.user_id and roles.assignable
    ), 'authenticated') as role
  ) as held;
end;

comment on function auth.claims_of is 'The claims of a credential of this user: sub, name, role and permissions.';

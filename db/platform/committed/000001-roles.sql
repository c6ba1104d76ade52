--! Previous: -
--! Hash: sha1:de578ca582f33ba09bc65b82f4a989da35ac1448
--! Message: roles

-- Roles belong to the whole cluster: another database may have created them already, so each is created only when missing.
do $$
declare
  v_role record;
begin
  for v_role in
    select * from (values
      -- The login that requests use. It owns and inherits nothing: it can only switch to one of the four roles below.
      ('authenticator', 'login noinherit'),
      ('anon', 'nologin'),
      ('authenticated', 'nologin'),
      ('admin', 'nologin'),
      ('service_role', 'nologin')
    ) as wanted (name, attributes)
    where not exists (select from pg_roles where rolname = wanted.name)
  loop
    execute format('create role %I %s', v_role.name, v_role.attributes);
  end loop;
exception when insufficient_privilege then
  raise exception '% may not create the roles of this service', current_user
    using errcode = '42501', hint = format('As a superuser, run once: alter role %I createrole', current_user);
end $$;

-- service_role bypasses row-level security. Only a role with BYPASSRLS may grant it (before Postgres 16 only a superuser), so on
-- a hosted Postgres the operator may have to do this; until then policies apply to service_role too.
do $$
begin
  if not (select rolbypassrls from pg_roles where rolname = 'service_role') then
    alter role service_role bypassrls;
  end if;
exception when insufficient_privilege then
  raise warning 'service_role is bound by the row-level policies'
    using hint = 'As a superuser, run once: alter role service_role bypassrls';
end $$;

-- The owner becomes a member too: it tests with "set role" what a caller sees, and may itself be the login that requests use.
do $$
declare
  v_grant record;
  -- Since Postgres 16 a membership may lack the right to SET ROLE; the membership that CREATE ROLE gives its creator does.
  v_become text := case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
begin
  for v_grant in
    select * from (values
      ('authenticated', 'admin'),
      ('anon', 'authenticator'),
      ('authenticated', 'authenticator'),
      ('admin', 'authenticator'),
      ('service_role', 'authenticator'),
      ('anon', current_user),
      ('authenticated', current_user),
      ('admin', current_user),
      ('service_role', current_user)
    ) as wanted (role, member)
    where not pg_has_role(wanted.member, wanted.role, v_become)
  loop
    begin
      execute format('grant %I to %I', v_grant.role, v_grant.member);
    exception when insufficient_privilege then
      if v_grant.member <> current_user then
        raise;
      end if;
      raise warning '% cannot act as %', current_user, v_grant.role
        using hint = format('As a superuser, run once: grant %I to %I', v_grant.role, current_user);
    end;
  end loop;
end $$;

grant connect on database ":DATABASE_NAME" to authenticator;

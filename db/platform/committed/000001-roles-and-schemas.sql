--! Previous: -
--! Hash: sha1:ac05c657782b73fd538ddb879b09f6d3c420f25c

-- The roles of requests, and the schemas of the service.

-- Roles belong to the whole cluster: another database may have created them already, so each is created only when missing.
do $$
declare
  v_role record;
begin
  for v_role in
    select * from (values
      -- The login that requests use. It owns and inherits nothing: it can only switch to one of the next four roles.
      ('authenticator', 'login noinherit'),
      ('anon', 'nologin'),
      ('authenticated', 'nologin'),
      ('admin', 'nologin'),
      ('service_role', 'nologin'),
      -- Runs the function of CLAIMS_HOOK, by Supabase's name: it may do what is granted to it, and nothing else.
      ('supabase_auth_admin', 'nologin')
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
      ('service_role', current_user),
      ('supabase_auth_admin', current_user)
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

-- A schema determines how its contents can be reached: public is served by every interface; auth, api and realtime can be used by
-- name by roles that are granted something in them; content_service is closed.
revoke all on schema public from public;
grant usage on schema public to anon, authenticated, service_role;

create schema auth;
grant usage on schema auth to anon, authenticated, service_role;
comment on schema auth is 'Helpers for policies about the caller, and closed tables about credentials.';

create schema api;
grant usage on schema api to anon, authenticated, service_role;
comment on schema api is 'Versions of the conventional interface, and helpers for its responses.';

create schema content_service;
-- The login may call the few functions here that are granted to it.
grant usage on schema content_service to authenticator;
comment on schema content_service is 'Internal functions of triggers, policies and indexes, and tables of the service itself.';

create schema extensions;
grant usage on schema extensions to anon, authenticated, service_role;
comment on schema extensions is 'Extensions, apart from the tables that are served.';

-- Nothing is served by accident: a new table has no grants, and a new function loses the EXECUTE that Postgres grants to PUBLIC.
-- A table or function becomes part of the interfaces by the GRANT that names it. Default privileges apply to objects that the
-- role that runs the migrations creates; another role that creates objects needs the same statement.
alter default privileges revoke execute on functions from public;
alter default privileges in schema extensions grant execute on functions to public;

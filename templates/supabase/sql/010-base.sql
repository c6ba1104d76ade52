-- What every Supabase project has before its first migration, so that the project's migrations run here: roles, schemas, default privileges,
-- and the parts of auth that policies, triggers and foreign keys refer to. Accounts are those of this service, which signs users in;
-- files are in the schema storage of the service.
-- The roles of Supabase's dumps. What is given to them by name belongs to the owner of the migrations, who is a member of each.
do $$
declare
  v_role text;
begin
  foreach v_role in array '{
    postgres,dashboard_user,pgbouncer,pgsodium_keyholder,pgsodium_keyiduser,pgsodium_keymaker,supabase_admin,supabase_auth_admin,supabase_etl_admin,supabase_functions_admin,
    supabase_read_only_user,supabase_realtime_admin,supabase_replication_admin,supabase_storage_admin
  }'::text[] loop
    if not exists (select from pg_roles where rolname = v_role) then
      begin
        execute format('create role %I nologin', v_role);
      exception when duplicate_object or unique_violation then
        -- Roles belong to the whole cluster: another database creates it at this moment.
      end;
    end if;
    if not pg_has_role(current_user, v_role, 'member') then
      execute format('grant %I to %I', v_role, current_user);
    end if;
  end loop;
exception when insufficient_privilege then
  raise warning '% cannot act as the roles of Supabase', current_user
    using hint = 'Statements that give objects to them fail. As a superuser, grant these roles to the owner.';
end $$;

create schema if not exists extensions;
create extension if not exists pgcrypto schema extensions;
create extension if not exists "uuid-ossp" schema extensions;
-- Of later connections, and of this one.
alter database ":DATABASE_NAME" set search_path = "$user", public, extensions;
select set_config('search_path', '"$user", public, extensions', false);

-- As in Postgres and Supabase, everybody may execute a new function whose schema they may use. The migrations of the service are
-- applied without this, so none of its own functions is opened by it.
alter default privileges grant execute on functions to public;
-- As in Postgres, roles of the project may use the schema too.
grant usage on schema public to public;
grant usage on schema auth, extensions, storage, realtime to postgres, supabase_admin, dashboard_user;
grant select on auth.users to postgres, dashboard_user, supabase_read_only_user;
grant usage on schema auth to supabase_read_only_user;
alter default privileges in schema public grant all on tables to anon, authenticated, service_role;
alter default privileges in schema public grant all on functions to anon, authenticated, service_role;
alter default privileges in schema public grant all on sequences to anon, authenticated, service_role;

-- Users are named by their uuid: tokens have it as the subject, because auth.uid() returns it.
drop function auth.uid();
create function auth.uid() returns uuid language sql stable parallel safe
  return substring(auth.jwt() ->> 'sub' from '^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')::uuid;
create function auth.email() returns text language sql stable parallel safe return auth.jwt() ->> 'email';
grant execute on function auth.uid, auth.email to anon, authenticated, service_role;
-- Seeds and tests set single claims, as earlier versions of PostgREST did. Not in a request, which always has claims: what a function
-- sets for its session would stay there for the next caller.
create or replace function auth.jwt() returns jsonb language sql stable parallel safe
  return coalesce(
    nullif(current_setting('request.jwt.claims', true), ''), nullif(current_setting('request.jwt.claim', true), ''),
    nullif(jsonb_strip_nulls(jsonb_build_object(
      'sub', nullif(current_setting('request.jwt.claim.sub', true), ''), 'role', nullif(current_setting('request.jwt.claim.role', true), ''),
      'email', nullif(current_setting('request.jwt.claim.email', true), '')
    )), '{}')::text
  )::jsonb;
-- As in Supabase, null where nobody has sent a request, such as in jobs, seeds and migrations: functions that refuse other roles than
-- service_role run there. In a request it stays the role that Postgres enforces. The service's own functions keep the other one.
alter function auth.role() rename to database_role;
create function auth.role() returns text language sql stable parallel safe
  return case when auth.jwt() is not null then coalesce(nullif(current_setting('role', true), 'none'), auth.jwt() ->> 'role') end;
grant execute on function auth.role to anon, authenticated, service_role;
-- Projects define an auth.is_admin() of their own, which says nothing about the service's tasks.
create function auth.is_database_admin() returns boolean language sql stable parallel safe
  return pg_has_role(auth.database_role(), 'admin', 'usage');
do $$
declare
  v_function regprocedure;
begin
  foreach v_function in array array[
    coalesce(to_regproc('content_service.enqueue'), to_regproc('api.enqueue')), coalesce(to_regproc('content_service.list_tasks'), to_regproc('api.list_tasks')),
    'content_service.sees_task'::regproc
  ]::regprocedure[] loop
    execute replace(replace(pg_get_functiondef(v_function), 'auth.role()', 'auth.database_role()'), 'auth.is_admin()', 'auth.is_database_admin()');
  end loop;
end $$;

-- Columns that migrations and seeds write. The service reads none of them, except for a password hash, which it takes over.
alter table auth.users
  add column instance_id uuid,
  add column aud text default 'authenticated',
  add column role text default 'authenticated',
  add column encrypted_password text,
  add column confirmation_token text default '',
  add column confirmation_sent_at timestamptz,
  add column recovery_token text default '',
  add column recovery_sent_at timestamptz,
  add column email_change_token_new text default '',
  add column email_change text default '',
  add column email_change_sent_at timestamptz,
  add column is_super_admin boolean,
  add column phone_change text default '',
  add column phone_change_token text default '',
  add column phone_change_sent_at timestamptz,
  add column confirmed_at timestamptz generated always as (least(email_confirmed_at, phone_confirmed_at)) stored,
  add column email_change_token_current text default '',
  add column email_change_confirm_status smallint default 0,
  add column reauthentication_token text default '',
  add column reauthentication_sent_at timestamptz;
create function auth.tg_users__take_supabase_columns() returns trigger language plpgsql set search_path = '' as $$
begin
  NEW.username := coalesce(NEW.username, NEW.email, NEW.id::text);
  NEW.raw_user_meta_data := coalesce(NEW.raw_user_meta_data, '{}');
  NEW.raw_app_meta_data := coalesce(NEW.raw_app_meta_data, '{}');
  if NEW.encrypted_password like '$%' then
    NEW.password_hash := NEW.encrypted_password;
    NEW.encrypted_password := null;
  end if;
  return NEW;
end;
$$;
create trigger _050_content_service_take_supabase_columns before insert or update on auth.users
  for each row execute function auth.tg_users__take_supabase_columns();
-- Also after the triggers of the project, which may leave metadata null.
create trigger zz_content_service_take_supabase_columns before insert or update on auth.users
  for each row when (NEW.raw_user_meta_data is null or NEW.raw_app_meta_data is null or NEW.encrypted_password like '$%')
  execute function auth.tg_users__take_supabase_columns();
-- Also in seeds that switch triggers off, as dumps do.
alter table auth.users enable always trigger _050_content_service_take_supabase_columns;
alter table auth.users enable always trigger zz_content_service_take_supabase_columns;
-- As in Supabase, for conflicts that seeds name.
create unique index users_email_partial_key on auth.users (email) where is_sso_user = false;
-- Publications of a project, such as those of services that replicate. Each table logs whole rows here, so Postgres would reject changes of
-- rows that a publication shows without generated columns, or with some columns only.
do $do$
begin
  create function auth.tg__keep_published_tables_writable() returns event_trigger language plpgsql security definer set search_path = '' as $$
  declare
    v_name text;
  begin
    if current_setting('server_version_num')::integer >= 180000 then
      for v_name in select pubname from pg_catalog.pg_publication where to_jsonb(pg_publication) ->> 'pubgencols' = 'n' loop
        execute format('alter publication %I set (publish_generated_columns = stored)', v_name);
      end loop;
    end if;
    for v_name in
      select class.oid::regclass from pg_catalog.pg_publication_rel as member join pg_catalog.pg_class as class on class.oid = member.prrelid
      where member.prattrs is not null and class.relreplident = 'f'
    loop
      execute format('alter table %s replica identity default', v_name);
    end loop;
  end;
  $$;
  create event trigger content_service_keep_published_tables_writable on ddl_command_end when tag in ('CREATE PUBLICATION', 'ALTER PUBLICATION')
    execute function auth.tg__keep_published_tables_writable();
exception when insufficient_privilege then
  raise notice 'Publications may prevent changes of rows' using hint = 'Only a superuser may create event triggers.';
end $do$;
-- A project may drop its own schemas, and none of the service.
do $do$
begin
  create function auth.tg__keep_schemas() returns event_trigger language plpgsql set search_path = '' as $$
  declare
    v_schema text := (select object_name from pg_event_trigger_dropped_objects() where object_type = 'schema' and object_name in ('content_service', 'auth', 'api', 'storage', 'realtime')
      and (object_name <> 'api' or to_regclass('content_service.versions') is null) limit 1);
  begin
    if v_schema is not null then
      raise exception 'Schema % belongs to the service', v_schema using errcode = 'insufficient_privilege',
        hint = 'Drop the objects of your project by their names, or its schemas.';
    end if;
  end;
  $$;
  create event trigger content_service_keep_schemas on sql_drop execute function auth.tg__keep_schemas();
exception when insufficient_privilege then
  raise notice 'The schemas of the service can be dropped' using hint = 'Only a superuser may create event triggers.';
end $do$;

-- What every Supabase project has before its first migration, so that the project's migrations run here: roles, schemas, default privileges,
-- and the parts of auth that policies, triggers and foreign keys refer to. Accounts are those of this service, which signs users in;
-- files are in the schema storage of the service.
do $$
declare
  v_role text;
begin
  foreach v_role in array '{dashboard_user,supabase_admin,supabase_auth_admin,supabase_storage_admin}'::text[] loop
    if not exists (select from pg_roles where rolname = v_role) then
      execute format('create role %I nologin', v_role);
    end if;
  end loop;
end $$;

create schema if not exists extensions;
create extension if not exists pgcrypto schema extensions;
create extension if not exists "uuid-ossp" schema extensions;
-- Of later connections, and of this one.
alter database ":DATABASE_NAME" set search_path = "$user", public, extensions;
select set_config('search_path', '"$user", public, extensions', false);

grant usage on schema public to anon, authenticated, service_role;
alter default privileges in schema public grant all on tables to anon, authenticated, service_role;
alter default privileges in schema public grant all on functions to anon, authenticated, service_role;
alter default privileges in schema public grant all on sequences to anon, authenticated, service_role;

-- Users are named by their uuid: tokens have it as the subject, because auth.uid() returns it.
drop function auth.uid();
create function auth.uid() returns uuid language sql stable parallel safe
  return substring(auth.jwt() ->> 'sub' from '^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')::uuid;
create function auth.email() returns text language sql stable parallel safe return auth.jwt() ->> 'email';
grant execute on function auth.uid, auth.email to anon, authenticated, service_role;

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
create trigger _050_take_supabase_columns before insert or update on auth.users
  for each row execute function auth.tg_users__take_supabase_columns();

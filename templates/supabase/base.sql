-- What every Supabase project has before its first migration, so that the project's migrations run on a plain Postgres: roles, schemas,
-- default privileges, and the parts of auth and storage that policies and foreign keys refer to. Sign-in and files stay with Supabase or
-- another service; the tables here are for its ids.
do $$
declare
  v_role record;
begin
  for v_role in
    select * from (values
      ('authenticator', 'login noinherit'),
      ('anon', 'nologin'),
      ('authenticated', 'nologin'),
      ('service_role', 'nologin bypassrls'),
      ('dashboard_user', 'nologin'),
      ('supabase_admin', 'nologin'),
      ('supabase_auth_admin', 'nologin'),
      ('supabase_storage_admin', 'nologin')
    ) as wanted (name, attributes)
    where not exists (select from pg_roles where rolname = wanted.name)
  loop
    execute format('create role %I %s', v_role.name, v_role.attributes);
  end loop;
end $$;
grant anon, authenticated, service_role to authenticator;
grant connect on database ":DATABASE_NAME" to authenticator;

create schema extensions;
grant usage on schema extensions to anon, authenticated, service_role;
create extension pgcrypto schema extensions;
create extension "uuid-ossp" schema extensions;
-- Of later connections, and of this one.
alter database ":DATABASE_NAME" set search_path = "$user", public, extensions;
select set_config('search_path', '"$user", public, extensions', false);

grant usage on schema public to anon, authenticated, service_role;
alter default privileges in schema public grant all on tables to anon, authenticated, service_role;
alter default privileges in schema public grant all on functions to anon, authenticated, service_role;
alter default privileges in schema public grant all on sequences to anon, authenticated, service_role;

create schema auth;
grant usage on schema auth to anon, authenticated, service_role;

create function auth.jwt() returns jsonb language sql stable
  return coalesce(nullif(current_setting('request.jwt.claims', true), '')::jsonb, '{}');
create function auth.uid() returns uuid language sql stable return (auth.jwt() ->> 'sub')::uuid;
create function auth.role() returns text language sql stable return auth.jwt() ->> 'role';
create function auth.email() returns text language sql stable return auth.jwt() ->> 'email';

create table auth.users (
  instance_id uuid,
  id uuid primary key,
  aud text,
  role text,
  email text unique,
  encrypted_password text,
  email_confirmed_at timestamptz,
  invited_at timestamptz,
  confirmation_token text,
  confirmation_sent_at timestamptz,
  recovery_token text,
  recovery_sent_at timestamptz,
  email_change_token_new text,
  email_change text,
  email_change_sent_at timestamptz,
  last_sign_in_at timestamptz,
  raw_app_meta_data jsonb,
  raw_user_meta_data jsonb,
  is_super_admin boolean,
  created_at timestamptz default now(),
  updated_at timestamptz default now(),
  phone text unique,
  phone_confirmed_at timestamptz,
  phone_change text default '',
  phone_change_token text default '',
  phone_change_sent_at timestamptz,
  confirmed_at timestamptz generated always as (least(email_confirmed_at, phone_confirmed_at)) stored,
  email_change_token_current text default '',
  email_change_confirm_status smallint default 0,
  banned_until timestamptz,
  reauthentication_token text default '',
  reauthentication_sent_at timestamptz,
  is_sso_user boolean not null default false,
  deleted_at timestamptz,
  is_anonymous boolean not null default false
);
create table auth.identities (
  id uuid primary key default gen_random_uuid(),
  provider_id text not null,
  user_id uuid not null references auth.users on delete cascade,
  identity_data jsonb not null,
  provider text not null,
  last_sign_in_at timestamptz,
  created_at timestamptz,
  updated_at timestamptz,
  email text generated always as (lower(identity_data ->> 'email')) stored,
  unique (provider_id, provider)
);
alter table auth.users enable row level security;
alter table auth.identities enable row level security;
grant all on auth.users, auth.identities to service_role;

create schema storage;
grant usage on schema storage to anon, authenticated, service_role;
create table storage.buckets (
  id text primary key,
  name text not null unique,
  owner uuid,
  public boolean default false,
  avif_autodetection boolean default false,
  file_size_limit bigint,
  allowed_mime_types text[],
  owner_id text,
  created_at timestamptz default now(),
  updated_at timestamptz default now()
);
create table storage.objects (
  id uuid primary key default gen_random_uuid(),
  bucket_id text references storage.buckets,
  name text,
  owner uuid,
  owner_id text,
  metadata jsonb,
  user_metadata jsonb,
  version text,
  path_tokens text[] generated always as (string_to_array(name, '/')) stored,
  created_at timestamptz default now(),
  updated_at timestamptz default now(),
  last_accessed_at timestamptz default now(),
  unique (bucket_id, name)
);
alter table storage.buckets enable row level security;
alter table storage.objects enable row level security;
grant all on storage.buckets, storage.objects to anon, authenticated, service_role;
create function storage.foldername(name text) returns text[] language sql immutable
  return (string_to_array(name, '/'))[:array_length(string_to_array(name, '/'), 1) - 1];
create function storage.filename(name text) returns text language sql immutable
  return (string_to_array(name, '/'))[array_length(string_to_array(name, '/'), 1)];
create function storage.extension(name text) returns text language sql immutable
  return reverse(split_part(reverse(storage.filename(name)), '.', 1));

create publication supabase_realtime;

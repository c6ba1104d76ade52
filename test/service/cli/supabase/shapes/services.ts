import { ALICE, BOB, type Shape, USERS } from "./shape.ts";

/** Settings, roles and services of Supabase that projects lean on. */
export const SERVICES: readonly Shape[] = [
  {
    name: "settings, a bucket and a seed, without migrations",
    files: {
      "config.toml": "[storage.buckets.pictures]\npublic = true\n",
      "seed.sql": "insert into storage.objects (bucket_id, name) values ('pictures', 'seeded')",
    },
    checks: [
      {
        as: "owner",
        sql: "select bucket_id, public, object.name from storage.objects as object join storage.buckets as bucket on bucket_id = bucket.id",
        rows: [["pictures", true, "seeded"]],
      },
    ],
    changes: ["there is no supabase/migrations"],
  },
  {
    name: "a setting of the database, a function before each request, and roles without grants",
    files: {
      "migrations/20240101000000_settings.sql": `
        begin;
        create or replace function public.check_request() returns void language plpgsql as $$
        begin
          if current_setting('request.headers', true)::json ->> 'x-blocked' is not null then
            raise sqlstate 'PT403' using message = 'Blocked', hint = 'Ask for access';
          end if;
        end $$;
        alter database postgres set "app.settings.site" to 'https://example.org';
        create table public.pages (id int primary key, title text);
        alter table pages enable row level security;
        grant select on pages to pg_monitor;
        create policy "tools read" on pages for select to pg_monitor using (true);
        notify pgrst, 'reload config'; notify pgrst, 'reload schema';
        commit;`,
    },
    checks: [
      {
        as: "owner",
        sql: "select current_setting('app.settings.site'), has_schema_privilege('pg_monitor', 'public', 'usage')",
        rows: [["https://example.org", true]],
      },
      {
        as: "anon",
        sql: `select check_request() from set_config('request.headers', '{"x-blocked": "1"}', true)`,
        error: "PT403",
      },
      { as: "anon", sql: "select * from pages", rows: [] },
    ],
  },
  {
    name: "row-level security that an event trigger enables for new tables",
    files: {
      "migrations/20240101000000_rls.sql": `
        create or replace function public.rls_auto_enable() returns event_trigger language plpgsql security definer set search_path to 'pg_catalog' as $$
        declare cmd record;
        begin
          for cmd in select * from pg_event_trigger_ddl_commands() where command_tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO') and object_type in ('table', 'partitioned table') loop
            if cmd.schema_name is not null and cmd.schema_name in ('public') then
              execute format('alter table if exists %s enable row level security', cmd.object_identity);
            end if;
          end loop;
        end $$;
        drop event trigger if exists ensure_rls;
        create event trigger ensure_rls on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO') execute function public.rls_auto_enable();
        create table public.secrets_of_shapes (id int primary key);
        insert into secrets_of_shapes values (1);`,
    },
    checks: [
      { as: "owner", sql: "select relrowsecurity from pg_class where relname = 'secrets_of_shapes'", rows: [[true]] },
      { as: "anon", sql: "select id from secrets_of_shapes", rows: [] },
    ],
  },
  {
    name: "custom claims that functions write into app metadata",
    files: {
      "migrations/20240101000000_claims.sql": `
        create or replace function is_claims_admin() returns bool language plpgsql as $$
        begin
          if session_user = 'authenticator' then
            if extract(epoch from now()) > coalesce((current_setting('request.jwt.claims', true)::jsonb) ->> 'exp', '0')::numeric then return false; end if;
            return coalesce((current_setting('request.jwt.claims', true)::jsonb -> 'app_metadata' -> 'claims_admin')::bool, false);
          end if;
          return true;
        end $$;
        create or replace function get_my_claim(claim text) returns jsonb language sql stable as $$
          select coalesce(nullif(current_setting('request.jwt.claims', true), '')::jsonb -> 'app_metadata' -> claim, null) $$;
        create or replace function set_claim(uid uuid, claim text, value jsonb) returns text language plpgsql security definer set search_path = public as $$
        begin
          if not is_claims_admin() then return 'error: access denied'; end if;
          if not exists (select id from auth.users where id = uid) then return 'error: user not found'; end if;
          update auth.users set raw_app_meta_data = raw_app_meta_data || json_build_object(claim, value)::jsonb where id = uid;
          return 'OK';
        end $$;
        create or replace function delete_claim(uid uuid, claim text) returns text language plpgsql security definer set search_path = public as $$
        begin
          update auth.users set raw_app_meta_data = raw_app_meta_data - claim where id = uid;
          return 'OK';
        end $$;
        revoke execute on function delete_claim from public, anon, authenticated;
        notify pgrst, 'reload schema';`,
      "seed.sql": `${USERS} select set_claim('${ALICE}', 'plan', '"gold"'); select delete_claim('${BOB}', 'providers');`,
    },
    checks: [
      {
        as: "owner",
        sql: `select raw_app_meta_data ->> 'plan' from auth.users where id = '${ALICE}'`,
        rows: [["gold"]],
      },
      { as: ALICE, claims: { app_metadata: { plan: "gold" } }, sql: "select get_my_claim('plan')", rows: [["gold"]] },
      { as: ALICE, sql: `select delete_claim('${ALICE}', 'plan')`, error: "42501" },
    ],
  },
  {
    name: "publications that are made again, and what realtime sends by column",
    files: {
      "migrations/20240101000000_realtime.sql": `
        begin;
          drop publication if exists supabase_realtime;
          create publication supabase_realtime;
        commit;
        create table public.messages (id bigint generated always as identity primary key, body text, secret text);
        create table public.presence (id bigint primary key, seen timestamptz default now());
        alter publication supabase_realtime add table public.messages, public.presence;
        alter publication supabase_realtime drop table only public.presence;
        alter publication supabase_realtime set (publish = 'insert, update');
        alter table messages replica identity full;
        do $$ begin
          alter publication supabase_realtime add table public.messages;
        exception when duplicate_object then null; end $$;`,
    },
    checks: [
      {
        as: "owner",
        sql: "select tablename::text from pg_publication_tables where pubname = 'supabase_realtime' and schemaname = 'public'",
        rows: [["messages"]],
      },
    ],
  },
  {
    name: "policies on files by the operation of the request, and triggers on objects",
    files: {
      "migrations/20240101000000_files.sql": `
        insert into storage.buckets (id, name, public, avif_autodetection, file_size_limit, allowed_mime_types) values ('proofs', 'proofs', false, false, 1000, '{image/*}') on conflict (id) do update set public = excluded.public;
        drop policy if exists "Anyone can upload" on storage.objects;
        create policy "Owners delete, and do not list" on storage.objects for select to authenticated using (bucket_id = 'proofs' and owner_id = (select auth.uid()::text) and storage.allow_any_operation(array['object.delete_many', 'object.get_authenticated']));
        create policy "Uploads only" on storage.objects for insert to authenticated with check (bucket_id = 'proofs' and storage.allow_only_operation('storage.object.upload') and (storage.foldername(name))[1] = auth.uid()::text and lower(storage.extension(name)) in ('png', 'jpg'));
        create table public.attachments (id uuid primary key default gen_random_uuid(), object_id uuid references storage.objects (id) on delete cascade, path text unique);
        create or replace function public.note_object() returns trigger language plpgsql security definer set search_path = '' as $$
        begin
          insert into public.attachments (object_id, path) values (new.id, new.bucket_id || '/' || new.name);
          return new;
        end $$;
        create trigger on_object_created after insert on storage.objects for each row when (new.bucket_id = 'proofs') execute procedure public.note_object();
        comment on policy "Uploads only" on storage.objects is 'Nothing but uploads.';`,
      "seed.sql": `${USERS} insert into storage.objects (bucket_id, name, owner, owner_id, metadata) values ('proofs', '${ALICE}/a.png', '${ALICE}', '${ALICE}', '{"size": 3}');`,
    },
    checks: [
      { as: "owner", sql: "select path from attachments", rows: [[`proofs/${ALICE}/a.png`]] },
      { as: ALICE, sql: "select name from storage.objects", rows: [] },
      {
        as: ALICE,
        sql: "select name from set_config('storage.operation', 'storage.object.delete_many', true), storage.objects",
        rows: [[`${ALICE}/a.png`]],
      },
      {
        as: ALICE,
        sql: `insert into storage.objects (bucket_id, name) values ('proofs', '${ALICE}/b.png')`,
        error: "42501",
      },
    ],
  },
  {
    name: "tokens of pgjwt, and the extension of statistics",
    files: {
      "migrations/20240101000000_tokens.sql": `
        create extension if not exists pgjwt with schema extensions;
        create extension if not exists pg_stat_statements with schema extensions;
        create or replace function public.make_token(payload json) returns text language sql stable security definer set search_path = public, extensions as $$
          select extensions.sign(payload, 'secret-of-the-shape') $$;
        create or replace function public.read_token(token text) returns json language sql stable security definer set search_path = public, extensions as $$
          select payload from extensions.verify(token, 'secret-of-the-shape') where valid $$;`,
    },
    checks: [{ as: "anon", sql: `select read_token(make_token('{"sub": "1"}')) ->> 'sub'`, rows: [["1"]] }],
  },
  {
    name: "seeds in several files, with functions that act as a user",
    files: {
      "config.toml": '[db.seed]\nenabled = true\nsql_paths = ["./seeds/*.sql"]\n',
      "migrations/20240101000000_notes.sql": `
        create table public.notes (id int generated always as identity primary key, owner uuid not null default auth.uid() references auth.users (id) on delete cascade, body text check (char_length(body) between 1 and 100));
        alter table notes enable row level security;
        create policy own on notes for all to authenticated using (owner = (select auth.uid())) with check (owner = (select auth.uid()));`,
      "seeds/01-users.sql": USERS,
      "seeds/02-notes.sql": `
        create schema if not exists tests;
        create or replace function tests.act_as(p_id uuid) returns void language plpgsql as $$
        begin
          perform set_config('role', 'authenticated', true);
          perform set_config('request.jwt.claims', json_build_object('sub', p_id, 'role', 'authenticated')::text, true);
        end $$;
        do $$ begin
          perform tests.act_as('${ALICE}');
          insert into public.notes (body) values ('from the seed');
          reset role;
        end $$;
        drop schema tests cascade;`,
    },
    checks: [
      { as: ALICE, sql: "select body from notes", rows: [["from the seed"]] },
      { as: BOB, sql: "select body from notes", rows: [] },
    ],
  },
];

import { ALICE, BOB, type Shape, USERS } from "./shape.ts";

/** Statements that the advisors of Supabase recommend, and that services beside Supabase need in the database. */
export const TOOLS: readonly Shape[] = [
  {
    name: "extensions that move out of schema public, as the security advisor recommends",
    files: {
      "migrations/20240101000000_public.sql": `
        create extension vector;
        create extension pgjwt with schema public;
        create extension pg_trgm;
        create table documents (id int primary key, embedding "public"."vector"(2));
        create index on documents using hnsw (embedding vector_cosine_ops);
        create function match_documents(query vector(2)) returns setof documents language sql stable as $$
          select * from documents order by embedding <=> query $$;
        insert into documents values (1, '[1,0]'), (2, '[0,1]');`,
      "migrations/20240201000000_move.sql": `
        create schema if not exists extensions;
        alter extension vector set schema extensions;
        alter extension pg_trgm set schema extensions;
        alter function public.match_documents(extensions.vector) set search_path = public, extensions;
        create table notes (id int primary key, embedding extensions.vector(2) unique);
        create function nearest(query extensions.vector) returns bigint language sql stable set search_path = '' as $$
          select id from public.notes order by embedding operator(extensions.<->) query limit 1 $$;
        insert into notes values (1, '[1,0]'), (2, '[0,1]');
        do $$
        declare place text;
        begin
          select n.nspname into place from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pgjwt';
          if place = 'public' then
            alter extension pgjwt set schema extensions;
          end if;
          execute 'alter extension vector set schema extensions';
        exception when feature_not_supported then raise notice 'not moved';
        end $$;
        create function token() returns text language sql set search_path = '' as $$ select extensions.sign('{"a":1}', 'secret') $$;`,
    },
    changes: ["moves the extension vector", "moves the extension pgjwt"],
    checks: [
      { as: "anon", sql: "select id from match_documents('[0,1]')", rows: [[2], [1]] },
      { as: "anon", sql: "select nearest('[0,2]')::int", rows: [[2]] },
      {
        as: "anon",
        sql: "select avg(embedding)::text, to_regtype('public.vector') is null from notes",
        rows: [["[0.5,0.5]", true]],
      },
      { as: "owner", sql: "insert into documents values (3, '[1,2,3]')", error: "22000" },
      { as: "owner", sql: "insert into notes values (3, '[1,0]')", error: "23505" },
      {
        as: "anon",
        sql: "select token() like 'ey%', extensions.verify(token(), 'secret') is not null",
        rows: [[true, true]],
      },
    ],
  },
  {
    name: "extensions that are dropped, and created in another schema",
    files: {
      "migrations/20240101000000_again.sql": `
        create extension vector with schema public;
        create extension http with schema public;
        create table documents (id int primary key, embedding vector(2));
        drop extension if exists vector cascade;
        drop extension http;
        create extension vector with schema extensions;
        create extension http with schema extensions;
        create extension if not exists "hstore" with schema "extensions" version '1.0';
        alter table documents add column embedding extensions.vector(2);
        create function call() returns int language sql as $$ select status from extensions.http_get('https://example.org') $$;`,
    },
    changes: ["creates the version of the extension hstore"],
    checks: [
      { as: "anon", sql: "insert into documents values (1, '[1,2]') returning embedding::text", rows: [["[1,2]"]] },
      {
        as: "owner",
        sql: "select to_regtype('public.vector'), to_regtype('public.http_request')",
        rows: [[null, null]],
      },
    ],
  },
  {
    name: "packages of database.dev, which are installed by pg_tle, and extensions that a project enables without using them",
    files: {
      "migrations/20240101000000_install.sql": `
        create extension if not exists http with schema extensions;
        create extension if not exists pg_tle;
        select pgtle.uninstall_extension_if_exists('supabase-dbdev');
        drop extension if exists "supabase-dbdev";
        select
          pgtle.install_extension('supabase-dbdev', found.contents ->> 'version', 'PostgreSQL package manager', found.contents ->> 'sql')
          from extensions.http(('GET', 'https://api.database.dev/rest/v1/package_versions', null, null, null)::extensions.http_request) as response,
            lateral (select (row_to_json(response) ->> 'content')::json -> 0) as found (contents);
        create extension "supabase-dbdev";
        select dbdev.install('supabase-dbdev');
        select
          dbdev.install ('basejump-supabase_test_helpers');
        create extension if not exists "basejump-supabase_test_helpers" version '0.0.6';
        create extension "supabase@dbdev" with schema public;
        comment on extension "supabase@dbdev" is 'PostgreSQL package manager';
        create extension if not exists "mansueli-supa_queue" with schema "public" version '1.0.4';
        create extension if not exists "postgis" with schema "extensions";
        comment on extension postgis is 'PostGIS geometry and geography spatial types and functions';
        create extension if not exists "pgroonga" with schema "extensions" version '2.4.0';
        create table pages (id int, st_x int);`,
    },
    changes: ["removed a call of pg_tle"],
    checks: [{ as: "anon", sql: "select count(*)::int from pages", rows: [[0]] }],
  },
  {
    name: "publications of services that replicate, and of whole schemas",
    files: {
      "migrations/20240101000000_publish.sql": `
        create table public.customers (id int primary key, name text, secret text, label text generated always as (upper(name)) stored);
        create table public.orders (id int primary key, total int, with_tax int generated always as (total * 2) stored);
        alter publication supabase_realtime add tables in schema public;
        create publication powersync for all tables;
        create publication "etl 1" for table public.customers (id, name);
        do $$ begin
          if not exists (select from pg_publication where pubname = 'zero') then create publication zero for tables in schema public; end if;
        end $$;`,
      "seed.sql": `${USERS}
        insert into customers values (1, 'a', 's'); insert into orders values (1, 2);`,
    },
    changes: ["removed a statement about the publication supabase_realtime"],
    checks: [
      { as: "anon", sql: "update customers set name = 'b' returning label", rows: [["B"]] },
      { as: "anon", sql: "delete from orders returning with_tax", rows: [[4]] },
      {
        as: "owner",
        sql: `delete from auth.users where id = '${ALICE}' returning email`,
        rows: [["alice@example.org"]],
      },
      {
        as: "owner",
        sql: "select count(*)::int from pg_publication_tables where pubname = 'supabase_realtime' and schemaname = 'public'",
        rows: [[2]],
      },
    ],
  },
  {
    name: "settings of the database in blocks and functions",
    files: {
      "migrations/20240101000000_settings.sql": `
        do $$ begin
          if current_database() = 'postgres' then
            alter database postgres set tcp_keepalives_idle = 60;
          end if;
          execute 'alter database "postgres" set app.settings.endpoint = ''https://example.org''';
          execute format('alter database postgres set app.settings.key = %L', 'k');
        exception when insufficient_privilege then raise notice 'skipped';
        end $$;
        create function set_endpoint() returns void language plpgsql as $$ begin alter database postgres set app.settings.endpoint = 'x'; end $$;
        create table hints (hint text);
        insert into hints values ('alter database postgres set a');`,
    },
    changes: ["the database has its own name"],
    checks: [
      {
        as: "owner",
        sql: "select unnest(setconfig) from pg_db_role_setting join pg_database on setdatabase = pg_database.oid where datname = current_database() and setrole = 0 order by 1",
        rows: [
          ["app.settings.endpoint=https://example.org"],
          ["app.settings.key=k"],
          ['search_path="$user", public, extensions'],
          ["tcp_keepalives_idle=60"],
        ],
      },
      { as: "owner", sql: "select hint from hints", rows: [["alter database postgres set a"]] },
    ],
  },
  {
    name: "accounts of seeds: their instance, single sign-on, and conflicts of addresses",
    files: {
      "migrations/20240101000000_sso.sql": `
        create table tenants (id int primary key, sso_provider_id uuid references auth.sso_providers (id) on delete set null);
        create function sso_tenant(email text) returns int language sql stable security definer set search_path = '' as $$
          select tenants.id from auth.sso_domains join public.tenants using (sso_provider_id) where domain = split_part(email, '@', 2) $$;
        grant select on auth.sso_domains to supabase_auth_admin;
        alter table auth.mfa_factors enable row level security;
        comment on table auth.identities is 'Auth: Stores identities associated to a user.';
        comment on column auth.sessions.not_after is 'Auth: When the session ends.';`,
      "seed.sql": `${USERS}
        do $$ declare instance uuid; begin
          select id into instance from auth.instances limit 1;
          insert into auth.users (instance_id, id, email) values (coalesce(instance, '00000000-0000-0000-0000-000000000000'), gen_random_uuid(), 'alice@example.org')
            on conflict (email) where is_sso_user = false do update set raw_user_meta_data = '{"name":"Alice 2"}';
        end $$;
        insert into tenants values (1);`,
    },
    checks: [
      {
        as: "owner",
        sql: "select id::text, raw_user_meta_data ->> 'name' from auth.users order by email",
        rows: [
          [ALICE, "Alice 2"],
          [BOB, null],
        ],
      },
      { as: ALICE, sql: "select sso_tenant('alice@example.org')", rows: [[null]] },
      { as: "supabase_auth_admin", sql: "select count(*)::int from auth.sso_domains", rows: [[0]] },
      { as: ALICE, sql: "select from auth.instances", error: "42501" },
    ],
  },
  {
    name: "maintenance in migrations, and a role that a migration keeps",
    files: {
      "migrations/20240101000000_pages.sql": `
        create table pages (id int primary key);
        grant all on pages to authenticated;
        set local role authenticated;
        insert into pages values (1);`,
      "migrations/03082024,093259PM_draft.sql": "drop table nothing;",
      "migrations/draft.sql": "drop table nothing;",
      "migrations/20240102000000_vacuum.sql": `
        vacuum analyze public.pages;
        VACUUM (full, analyze) pages;
        analyze pages;
        set role authenticated;
        insert into pages values (2);`,
      "migrations/20240103000000_last.sql": "create table last (id int) -- the last; without a semicolon",
    },
    changes: ["removed a vacuum", "draft.sql: skipped"],
    checks: [
      { as: "owner", sql: "select count(*)::int from supabase_migrations.schema_migrations", rows: [[3]] },
      { as: "owner", sql: "select tableowner = current_user from pg_tables where tablename = 'last'", rows: [[true]] },
    ],
  },
  {
    name: "dumps that include the schemas auth and storage, and blocks that act as a role of Supabase",
    files: {
      "migrations/20240101000000_schemas.sql": `
        CREATE SCHEMA IF NOT EXISTS "auth";
        ALTER SCHEMA "auth" OWNER TO "supabase_admin";
        CREATE TYPE "auth"."code_challenge_method" AS ENUM ('s256', 'plain');
        CREATE TABLE "auth"."users" ("id" uuid NOT NULL, "email" character varying(255));
        ALTER TABLE "auth"."users" OWNER TO "supabase_auth_admin";
        CREATE TABLE IF NOT EXISTS "auth"."identities" ("provider_id" text NOT NULL, "user_id" uuid NOT NULL);
        ALTER TABLE "auth"."identities" OWNER TO "supabase_auth_admin";
        COMMENT ON TABLE "auth"."identities" IS 'Auth: Stores identities associated to a user.';
        COMMENT ON COLUMN "auth"."identities"."email" IS 'Auth: Email is a generated column';
        CREATE TABLE IF NOT EXISTS "auth"."refresh_tokens" ("id" bigint NOT NULL);
        CREATE SEQUENCE IF NOT EXISTS "auth"."refresh_tokens_id_seq" START WITH 1;
        ALTER SEQUENCE "auth"."refresh_tokens_id_seq" OWNED BY "auth"."refresh_tokens"."id";
        ALTER TABLE ONLY "auth"."refresh_tokens" ALTER COLUMN "id" SET DEFAULT nextval('auth.refresh_tokens_id_seq'::regclass);
        ALTER TABLE ONLY "auth"."users" ADD CONSTRAINT "users_pkey" PRIMARY KEY ("id");
        ALTER TABLE ONLY "auth"."users" ADD CONSTRAINT "users_phone_key" UNIQUE ("phone");
        ALTER TABLE ONLY "auth"."identities" ADD CONSTRAINT "identities_pkey" PRIMARY KEY ("id");
        ALTER TABLE ONLY "auth"."sessions" ADD CONSTRAINT "sessions_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "auth"."users"("id") ON DELETE CASCADE;
        CREATE INDEX "identities_email_idx" ON "auth"."identities" USING "btree" ("email" "text_pattern_ops");
        CREATE UNIQUE INDEX "confirmation_token_idx" ON "auth"."users" USING "btree" ("confirmation_token") WHERE (("confirmation_token")::"text" !~ '^[0-9 ]*$'::"text");
        ALTER TABLE "auth"."identities" ENABLE ROW LEVEL SECURITY;
        DROP POLICY IF EXISTS "Users can manage their identities" ON auth.identities;
        ALTER TABLE IF EXISTS auth.sessions DISABLE ROW LEVEL SECURITY;
        GRANT ALL ON SEQUENCE "auth"."refresh_tokens_id_seq" TO "dashboard_user";
        GRANT ALL ON TABLE "auth"."identities" TO "dashboard_user";
        CREATE TABLE "storage"."buckets" ("id" text NOT NULL, "name" text NOT NULL);
        ALTER TABLE "storage"."buckets" OWNER TO "supabase_storage_admin";
        CREATE EVENT TRIGGER issue_pg_cron_access ON ddl_command_end WHEN TAG IN ('CREATE EXTENSION') EXECUTE FUNCTION extensions.grant_pg_cron_access();
        create table profiles (id uuid primary key references auth.users);`,
      "migrations/20240201000000_storage.sql": `
        insert into storage.buckets (id, name) values ('evidence', 'evidence');
        do $$
        begin
          execute 'set role supabase_storage_admin';
          execute 'create policy "read evidence" on storage.objects for select using (bucket_id = ''evidence'')';
        exception when insufficient_privilege then
          raise exception 'not the owner';
        end $$;
        do $$ begin set local role supabase_storage_admin; alter table storage.objects add column if not exists note text; end $$;
        create table later (id int);`,
      "seed.sql": `${USERS} insert into storage.objects (bucket_id, name) values ('evidence', 'a.png'), ('evidence', 'b.png');`,
    },
    changes: ["which is a view here", "the definition of a table of Supabase", "run as the owner of the migrations"],
    checks: [
      { as: "anon", sql: "select count(*)::int from storage.objects", rows: [[2]] },
      { as: "owner", sql: "select tableowner = current_user from pg_tables where tablename = 'later'", rows: [[true]] },
      { as: "owner", sql: "select count(*)::int from supabase_auth.identities", rows: [[2]] },
      { as: "owner", sql: `insert into profiles values ('${ALICE}') returning id`, rows: [[ALICE]] },
    ],
  },
  {
    name: "queues that functions create when they are first used, with a job that the first message schedules",
    files: {
      "migrations/20240101000000_queue.sql": `
        create extension if not exists pgmq; create extension if not exists pg_cron;
        create function enqueue(queue_name text, payload jsonb) returns bigint language plpgsql security definer set search_path = public as $$
        begin
          return pgmq.send(queue_name, payload);
        exception when undefined_table then
          perform pgmq.create(queue_name);
          return pgmq.send(queue_name, payload);
        end $$;
        create function read_batch(queue_name text, batch_size int, vt int) returns table (msg_id bigint, read_ct int, message jsonb)
        language plpgsql security definer set search_path = public as $$
        begin
          return query select r.msg_id, r.read_ct, r.message from pgmq.read(queue_name, vt, batch_size) r;
        exception when undefined_table then
          perform pgmq.create(queue_name);
        end $$;
        create function delete_message(queue_name text, message_id bigint) returns boolean language plpgsql security definer as $$
        begin return pgmq.delete(queue_name, message_id); exception when undefined_table then return false; end $$;
        select pgmq.create('mails');
        create function wake() returns trigger language plpgsql security definer set search_path = '' as $$
        begin
          if not exists (select 1 from cron.job where jobname = 'send-mails') then
            perform cron.schedule('send-mails', '5 seconds', $cron$ select public.dispatch(); $cron$);
          end if;
          return null;
        end $$;
        create trigger wake after insert on pgmq.q_mails for each statement execute function wake();`,
    },
    checks: [
      {
        as: ALICE,
        sql: "select enqueue('letters', '{\"to\": 1}')::int, (select count(*)::int from read_batch('missing', 1, 0)), delete_message('none', 1)",
        rows: [[1, 0, false]],
      },
      { as: "anon", sql: "select enqueue('mails', '{}')::int", rows: [[1]] },
      {
        as: "owner",
        sql: "do $$ begin perform enqueue('mails', '{}'); assert exists (select from cron.job where jobname = 'send-mails'); end $$",
      },
    ],
  },
];

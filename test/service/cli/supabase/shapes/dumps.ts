import { ALICE, BOB, type Shape, USERS } from "./shape.ts";

/** Files that tools write: dumps, comparisons of schemas, and migrations that also run where extensions are missing. */
export const DUMPS: readonly Shape[] = [
  {
    name: "blocks that ask for extensions, and create them",
    files: {
      "migrations/20240101000000_guards.sql": `
        do $$ begin
          if not exists (select 1 from pg_extension where extname = 'pg_cron') then
            -- create extension needs the right
            create extension pg_cron;
          end if;
          if exists (select 1 from pg_catalog.pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_cron') then
            perform cron.unschedule(jobid) from cron.job where jobname = 'nightly';
            perform cron.schedule('nightly', '0 3 * * *', 'select 1');
          else
            raise notice 'create extension pg_cron first';
          end if;
        end $$;
        do $$ declare has_net boolean; begin
          select exists (select 1 from pg_available_extensions where name = 'pg_net') into has_net;
          if has_net then execute 'create extension if not exists pg_net with schema extensions'; end if;
          begin create extension if not exists plv8; exception when others then null; end;
          if not exists (select from pg_extension where extname = 'vector') then
            create extension vector with schema extensions;
          end if;
          perform cron.schedule('call', '* * * * *', 'select 2') where has_net;
        end $$;
        create function url_encode(data text) returns text language sql as 'select data';
        create function http_head(uri text) returns text language sql as 'select uri';
        do $$ begin if not exists (select from pg_extension where extname = 'pgjwt') then create extension pgjwt with schema extensions; end if; end $$;
        create extension pg_jsonschema with schema extensions;
        create table items (id int primary key, embedding extensions.vector(2), small extensions.halfvec(2));
        create index on items using hnsw (small extensions.halfvec_cosine_ops);
        create function has_extension(name text) returns boolean language sql stable as $$
          select exists (select 1 from pg_extension where extname = name and name in ('pg_cron', 'pgmq', 'http')); $$;`,
    },
    changes: ["lists the extensions that have a stand-in", "schema cron stands in for it"],
    checks: [
      { as: "owner", sql: "select jobname from cron.job order by 1", rows: [["call"], ["nightly"]] },
      { as: "anon", sql: "select has_extension('pg_cron'), has_extension('http')", rows: [[true, false]] },
      {
        as: "owner",
        sql: "select extname::text, extnamespace::regnamespace::text from extensions.pg_extension where extname in ('vector', 'pgjwt', 'pg_jsonschema', 'http') order by 1",
        rows: ["pg_jsonschema", "pgjwt", "vector"].map((name) => [name, "extensions"]),
      },
      {
        as: "owner",
        sql: "insert into items values (1, '[1,2]', '[3,4]') returning (small <-> '[0,0]'), (embedding <-> small::vector) > 2",
        rows: [[5, true]],
      },
      { as: "owner", sql: "insert into items (id, small) values (1, '[1,2,3]')", error: "22000" },
    ],
  },
  {
    name: "comparisons of schemas that include the services of Supabase",
    files: {
      "migrations/20240101000000_difference.sql": `
        drop trigger if exists "tr_check_filters" on "realtime"."subscription";
        drop trigger if exists "prefixes_create_hierarchy" on "storage"."prefixes";
        drop trigger "objects_delete_delete_prefix" on "storage"."objects";
        revoke delete on table "storage"."prefixes" from "anon";
        revoke select on table "storage"."iceberg_namespaces" from "service_role";
        grant select on table "storage"."s3_multipart_uploads" to "authenticated";
        revoke select on table "auth"."schema_migrations" from "postgres";
        alter table "storage"."prefixes" drop constraint "prefixes_bucketId_fkey";
        alter table "storage"."objects" drop constraint "objects_owner_fkey";
        alter table "storage"."objects" drop column "version";
        alter table "storage"."buckets" drop column "allowed_mime_types";
        drop function if exists "storage"."can_insert_object"(bucketid text, name text, owner uuid, metadata jsonb);
        drop function if exists "storage"."foldername"(name text);
        drop index if exists "storage"."bucketid_objname";
        drop table "storage"."prefixes";
        set check_function_bodies = off;
        create or replace function storage.extension(name text) returns text language plpgsql as $function$ begin return ''; end $function$;
        create trigger protect_objects_delete before delete on storage.objects for each statement execute function storage.protect_delete();
        create trigger enforce_bucket_name_length_trigger before insert or update of name on storage.buckets for each row execute function storage.enforce_bucket_name_length();
        alter publication supabase_realtime_messages_publication add table only realtime.messages;
        grant pgsodium_keyiduser to "postgres" with admin option;
        alter table storage.objects add column caption text;
        create table docs (id int primary key, updated_at timestamptz default '2000-01-01');
        create trigger touch before update on public.docs for each row execute function storage.update_updated_at_column();
        insert into docs values (1);
        create table uploads (name text);
        create function note_upload() returns trigger language plpgsql security definer set search_path = '' as $$ begin insert into public.uploads values (new.name); return new; end $$;
        create trigger note_upload after insert on storage.objects for each row execute function public.note_upload();
        insert into storage.buckets (id, name, allowed_mime_types) values ('files', 'files', '{image/png}');
        create policy "own folder" on "storage"."objects" as permissive for all to authenticated
          using (((storage.foldername(name))[1] = (auth.uid())::text) and (storage.extension(name) = 'png'::text));`,
      "seed.sql": `${USERS} insert into storage.objects (bucket_id, name) values ('files', '${ALICE}/a.png'), ('files', '${BOB}/b.png');`,
    },
    changes: [
      "a table of Supabase's services",
      "a trigger of Supabase's services",
      "a function of storage",
      "a change of a table",
    ],
    checks: [
      { as: ALICE, sql: "select name from storage.objects", rows: [[`${ALICE}/a.png`]] },
      { as: "owner", sql: "select count(*)::int from uploads", rows: [[2]] },
      { as: "owner", sql: "select allowed_mime_types from storage.buckets", rows: [[["image/png"]]] },
      { as: "owner", sql: "select caption from storage.objects where false", rows: [] },
      { as: "owner", sql: "update docs set id = 2 returning updated_at > '2020-01-01'", rows: [[true]] },
    ],
  },
  {
    name: "policies on the second factor as dumps print them, with the types of Supabase Auth",
    files: {
      "migrations/20240101000000_factors.sql": `
        CREATE TYPE "auth"."factor_status" AS ENUM ('unverified', 'verified');
        ALTER TYPE "auth"."factor_status" OWNER TO "supabase_auth_admin";
        CREATE TABLE "public"."accounts" ("id" integer PRIMARY KEY, "level" "auth"."aal_level" DEFAULT 'aal1'::"auth"."aal_level");
        ALTER TABLE "public"."accounts" ENABLE ROW LEVEL SECURITY;
        CREATE POLICY "all" ON "public"."accounts" USING (true);
        CREATE POLICY "factor" ON "public"."accounts" AS RESTRICTIVE TO "authenticated" USING ((ARRAY[( SELECT ("auth"."jwt"() ->> 'aal'::"text"))] <@ ( SELECT
          CASE WHEN ("count"("mfa_factors"."id") > 0) THEN ARRAY['aal2'::"text"] ELSE ARRAY['aal1'::"text", 'aal2'::"text"] END AS "aal"
          FROM "auth"."mfa_factors" WHERE ((( SELECT "auth"."uid"() AS "uid") = "mfa_factors"."user_id") AND ("mfa_factors"."status" = 'verified'::"auth"."factor_status")))));`,
      "seed.sql": `${USERS} insert into accounts values (1);`,
    },
    changes: ["type auth.factor_status exists"],
    checks: [
      { as: ALICE, claims: { aal: "aal1" }, sql: "select id, level from accounts", rows: [[1, "aal1"]] },
      { as: ALICE, claims: { aal: "aal0" }, sql: "select id from accounts", rows: [] },
      {
        as: "owner",
        sql: "select 'aal2'::auth.aal_level in (select aal from supabase_auth.sessions)",
        rows: [[false]],
      },
    ],
  },
  {
    name: "rows of dumps: copy from stdin, of accounts too",
    files: {
      "migrations/20240101000000_tables.sql": `
        create table public.pages (id bigint generated always as identity primary key, title text, tags text[], data jsonb, created_at timestamptz default now());
        create table public."Odd Table" ("a,b" text);
        create view public.lines as select 'COPY public.pages (id) FROM stdin;' as line;`,
      "seed.sql": `SET session_replication_role = replica;
COPY "auth"."users" ("instance_id", "id", "aud", "role", "email", "encrypted_password", "raw_user_meta_data", "confirmation_token") FROM stdin;
00000000-0000-0000-0000-000000000000\t${ALICE}\tauthenticated\tauthenticated\talice@example.org\t$2a$10$abcdefghijklmnopqrstuv\t{"name": "A \\\\"quoted\\\\" name"}\t
\\.

COPY auth.audit_log_entries (instance_id, id, payload) FROM stdin;
00000000-0000-0000-0000-000000000000\t${BOB}\t{}
\\.
COPY public.pages (id, title, tags, data) FROM stdin;
7\tline 1\\nline 2\\\\; it's\t{a,"b c"}\t{"k": "\\\\u00e9"}
8\t\\N\t{}\t\\N
9\t\t\\N\t1
\\.
COPY public."Odd Table" ("a,b") FROM stdin;
\\303\\244\\x41 \\T
\\.
COPY public.lines (line) FROM stdin;
\\.
SELECT pg_catalog.setval('public.pages_id_seq', 9, true);
`,
    },
    changes: ['seed.sql: rows of "copy ... from stdin" are inserted', "removed rows of auth.audit_log_entries"],
    checks: [
      {
        as: "owner",
        sql: "select id::int, title, tags, data, created_at is not null from pages order by id",
        rows: [
          [7, "line 1\nline 2\\; it's", ["a", "b c"], { k: "é" }, true],
          [8, null, [], null, true],
          [9, "", null, 1, true],
        ],
      },
      { as: "owner", sql: `select "a,b" from "Odd Table"`, rows: [["äA T"]] },
      {
        as: "owner",
        sql: "select raw_user_meta_data ->> 'name', password_hash from auth.users",
        rows: [['A "quoted" name', "$2a$10$abcdefghijklmnopqrstuv"]],
      },
      { as: "owner", sql: "insert into pages (title) values ('next') returning id::int", rows: [[10]] },
    ],
  },
  {
    name: "what names the database, policies of pg_cron, and functions of pg_graphql and storage",
    files: {
      "migrations/20240101000000_dump.sql": `
        do $$ begin
          if current_database() <> 'postgres' then raise exception 'Not the database of the project'; end if;
          execute 'create table public.hosted (id int)';
        end $$;
        drop policy if exists cron_job_policy on cron.job;
        CREATE POLICY "cron_job_policy" ON "cron"."job" USING ((username = CURRENT_USER));
        CREATE POLICY "cron_job_run_details_policy" ON "cron"."job_run_details" USING ((username = CURRENT_USER));
        select graphql.rebuild_schema();
        insert into storage.buckets (id, name) values ('photos', 'photos');
        create policy "own folder" on storage.objects for insert to authenticated
          with check (bucket_id = 'photos' and (storage.foldername(name))[1] = auth.uid()::text);`,
    },
    checks: [
      { as: "owner", sql: "select count(*)::int from hosted", rows: [[0]] },
      { as: "owner", sql: "select count(*)::int from pg_policies where schemaname = 'cron'", rows: [[2]] },
      {
        as: "anon",
        sql: `select graphql.comment_directive('A table. @graphql({"totalCount": {"enabled": true}})')`,
        rows: [[{ totalCount: { enabled: true } }]],
      },
      { as: ALICE, sql: `select storage.can_insert_object('photos', '${ALICE}/a.png', null, '{}')`, error: "PT200" },
      { as: ALICE, sql: `select storage.can_insert_object('photos', '${BOB}/a.png', null, '{}')`, error: "42501" },
    ],
  },
];

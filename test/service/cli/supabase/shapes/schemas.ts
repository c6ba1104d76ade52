import { ALICE, BOB, type Shape, USERS } from "./shape.ts";

/** Definitions of projects in SQL besides tables and policies. */
export const SCHEMAS: readonly Shape[] = [
  {
    name: "analytics: partitions, materialized views that a job refreshes, statistics and windows",
    files: {
      "migrations/20240101000000_events.sql": `
        create table public.events (id uuid default gen_random_uuid(), team_id int not null, name text not null, at timestamptz not null, props jsonb default '{}'::jsonb, primary key (id, at)) partition by range (at);
        create table public.events_2024 partition of public.events for values from ('2024-01-01') to ('2025-01-01');
        create table public.events_default partition of public.events default;
        create index events_props_idx on public.events using gin (props jsonb_path_ops);
        create statistics events_stats (dependencies) on team_id, name from public.events;
        create materialized view public.daily as select team_id, date_trunc('day', at) as day, count(*) as events, count(distinct name) as names from public.events group by 1, 2 with no data;
        create unique index daily_key on public.daily (team_id, day);
        revoke all on public.daily from anon, authenticated;
        create or replace procedure public.refresh_daily() language plpgsql as $$
        begin
          refresh materialized view public.daily;
        end $$;
        select cron.schedule('refresh-daily', '*/15 * * * *', $$call public.refresh_daily()$$);
        create or replace function public.running_total(p_team int) returns table (day timestamptz, total numeric) language sql stable security definer set search_path to 'public' as $$
          select day, sum(events) over (order by day rows between unbounded preceding and current row) from daily where team_id = p_team $$;
        alter table events enable row level security; alter table events_2024 enable row level security; alter table events_default enable row level security;`,
      "migrations/20240102000000_concurrently.sql":
        "create index concurrently if not exists events_name_idx on public.events_2024 (name);",
      "seed.sql":
        "insert into events (team_id, name, at) values (1, 'a', '2024-05-01'), (1, 'b', '2024-05-02'), (1, 'b', '2030-05-02'); call refresh_daily();",
    },
    checks: [
      { as: ALICE, sql: "select total::int from running_total(1)", rows: [[1], [2], [3]] },
      { as: ALICE, sql: "select * from daily", error: "42501" },
      { as: ALICE, sql: "select id from events", rows: [] },
    ],
  },
  {
    name: "types of the project: domains, composites, aggregates, operators, casts and trees",
    files: {
      "migrations/20240101000000_types.sql": `
        create extension if not exists ltree with schema extensions; create extension if not exists citext with schema extensions;
        create extension if not exists hstore with schema extensions; create extension if not exists btree_gin with schema extensions; create extension if not exists fuzzystrmatch with schema extensions; create extension if not exists tablefunc with schema extensions; create extension if not exists intarray with schema extensions;
        create domain public.email as extensions.citext check (value ~ '^[^@]+@[^@]+$');
        create type public.money_of as (amount numeric(12, 2), currency char(3));
        create type public.period as range (subtype = date);
        create or replace function public.add_money(a public.money_of, b public.money_of) returns public.money_of language sql immutable as $$ select row(coalesce((a).amount, 0) + (b).amount, (b).currency)::public.money_of $$;
        create aggregate public.total (public.money_of) (sfunc = public.add_money, stype = public.money_of);
        create operator public.+ (leftarg = public.money_of, rightarg = public.money_of, function = public.add_money);
        create function public.money_text(public.money_of) returns text language sql immutable as $$ select ($1).amount || ' ' || ($1).currency $$;
        create cast (public.money_of as text) with function public.money_text(public.money_of) as assignment;
        create collation if not exists public.by_number (provider = icu, locale = 'en-u-kn-true');
        create text search configuration public.simple_unaccent (copy = pg_catalog.simple);
        create table public.sections (id bigserial primary key, path extensions.ltree not null, contact public.email, price public.money_of, valid public.period, label text collate public.by_number, tags extensions.hstore default ''::extensions.hstore,
          search tsvector generated always as (to_tsvector('public.simple_unaccent', coalesce(label, ''))) stored);
        create index sections_path on public.sections using gist (path);
        alter table sections enable row level security;
        create policy "everyone reads" on sections for select using (true);`,
      "seed.sql": `insert into sections (path, contact, price, valid, label) values ('top.science', 'Ada@Example.org', row(2.5, 'EUR'), '[2024-01-01,2025-01-01)', 'part 10'), ('top.science.physics', null, row(3, 'EUR'), null, 'part 9'), ('top.art', null, null, null, 'part 1');`,
    },
    checks: [
      {
        as: "anon",
        sql: "select label from sections where path <@ 'top.science' order by label",
        rows: [["part 9"], ["part 10"]],
      },
      { as: "anon", sql: "select total(price)::text from sections where price is not null", rows: [["5.50 EUR"]] },
      { as: "anon", sql: "select count(*)::int from sections where contact = 'ada@example.ORG'", rows: [[1]] },
      { as: "owner", sql: "insert into sections (path, contact) values ('x', 'nonsense')", error: "23514" },
    ],
  },
  {
    name: "dumps that pg_dump restricts, with settings of the session and sequences",
    files: {
      "migrations/20240101000000_schema.sql": `
\\restrict aBcDeF
        SET statement_timeout = 0;
        SET client_encoding = 'UTF8';
        SELECT pg_catalog.set_config('search_path', '', false);
        SET xmloption = content;
        SET row_security = off;
        COMMENT ON SCHEMA "public" IS 'standard public schema';
        CREATE TABLE IF NOT EXISTS "public"."countries" ("id" bigint NOT NULL, "name" "text", "iso2" character varying(2) DEFAULT NULL::character varying);
        ALTER TABLE "public"."countries" OWNER TO "postgres";
        ALTER TABLE "public"."countries" ALTER COLUMN "id" ADD GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME "public"."countries_id_seq" START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1);
        ALTER TABLE ONLY "public"."countries" ADD CONSTRAINT "countries_pkey" PRIMARY KEY ("id");
        ALTER TABLE "public"."countries" ENABLE ROW LEVEL SECURITY;
        CREATE POLICY "read" ON "public"."countries" FOR SELECT USING (true);
        GRANT ALL ON TABLE "public"."countries" TO "anon"; GRANT ALL ON SEQUENCE "public"."countries_id_seq" TO "anon";
        ALTER DEFAULT PRIVILEGES FOR ROLE "postgres" IN SCHEMA "public" GRANT ALL ON TABLES TO "anon";
        RESET ALL;
\\unrestrict aBcDeF`,
      "seed.sql": `SET session_replication_role = replica;
INSERT INTO "public"."countries" ("id", "name", "iso2") VALUES
(1, 'Åland', 'AX'),
(2, E'line\\nbreak', NULL);
SELECT pg_catalog.setval('"public"."countries_id_seq"', 2, true);
RESET ALL;
insert into public.countries (name) values ('Third');`,
    },
    checks: [
      {
        as: "anon",
        sql: "select id::int, name, iso2 from countries order by id",
        rows: [
          [1, "Åland", "AX"],
          [2, "line\nbreak", null],
          [3, "Third", null],
        ],
      },
    ],
  },
  {
    name: "multi-tenant accounts in a schema of their own, with invitations and slugs",
    files: {
      "migrations/20240101000000_accounts.sql": `
        create schema if not exists accounts;
        grant usage on schema accounts to authenticated; grant usage on schema accounts to service_role;
        alter default privileges in schema accounts revoke execute on functions from public;
        alter default privileges revoke execute on functions from public;
        create type accounts.account_role as enum ('owner', 'member');
        create table accounts.account (id uuid unique not null default extensions.uuid_generate_v4(), primary_owner uuid references auth.users not null default auth.uid(), name text, slug text unique, personal boolean default false not null, primary key (id),
          constraint slug_if_team check ((personal = true and slug is null) or (personal = false and slug is not null)));
        create table accounts.account_user (user_id uuid references auth.users on delete cascade not null, account_id uuid references accounts.account on delete cascade not null, account_role accounts.account_role not null, constraint account_user_pkey primary key (user_id, account_id));
        create or replace function accounts.slugify() returns trigger as $$
        begin
          if new.slug is not null then new.slug = lower(regexp_replace(new.slug, '[^a-zA-Z0-9-]+', '-', 'g')); end if;
          return new;
        end $$ language plpgsql;
        create trigger slugify before insert or update on accounts.account for each row execute function accounts.slugify();
        create or replace function accounts.run_new_user() returns trigger language plpgsql security definer set search_path = public as $$
        declare first_id uuid;
        begin
          insert into accounts.account (name, primary_owner, personal, id) values (split_part(new.email, '@', 1), new.id, true, new.id) returning id into first_id;
          insert into accounts.account_user (account_id, user_id, account_role) values (first_id, new.id, 'owner');
          return new;
        end $$;
        create trigger on_auth_user_created after insert on auth.users for each row execute procedure accounts.run_new_user();
        create or replace function accounts.has_role(account_id uuid, account_role accounts.account_role default null) returns boolean language sql security definer set search_path = public as $$
          select exists (select 1 from accounts.account_user wu where wu.user_id = auth.uid() and wu.account_id = has_role.account_id and (wu.account_role = has_role.account_role or has_role.account_role is null)) $$;
        grant execute on function accounts.has_role(uuid, accounts.account_role) to authenticated, anon, public, service_role;
        grant select, insert, update, delete on table accounts.account, accounts.account_user to authenticated, service_role;
        alter table accounts.account enable row level security; alter table accounts.account_user enable row level security;
        create policy "members view" on accounts.account for select to authenticated using (accounts.has_role(id) = true);
        create policy "own" on accounts.account_user for select to authenticated using (user_id = auth.uid());
        create or replace function public.get_accounts() returns json language sql as $$
          select coalesce(json_agg(json_build_object('name', a.name, 'role', wu.account_role)), '[]'::json) from accounts.account_user wu join accounts.account a on a.id = wu.account_id where wu.user_id = auth.uid() $$;
        grant execute on function public.get_accounts() to authenticated;`,
      "seed.sql": USERS,
    },
    checks: [
      { as: ALICE, sql: "select get_accounts()", rows: [[[{ name: "alice", role: "owner" }]]] },
      { as: BOB, sql: `select accounts.has_role('${ALICE}')`, rows: [[false]] },
      { as: "anon", sql: "select get_accounts()", error: "42501" },
      {
        as: "owner",
        sql: `insert into accounts.account (primary_owner, slug) values ('${BOB}', 'A b!c') returning slug`,
        rows: [["a-b-c"]],
      },
    ],
  },
  {
    name: "history of rows by triggers with transition tables, rules and notifications",
    files: {
      "migrations/20240101000000_history.sql": `
        create table public.documents (id int generated always as identity primary key, owner uuid default auth.uid(), body text, revision int not null default 1, deleted_at timestamptz);
        create table public.document_versions (like public.documents including defaults, changed_at timestamptz default clock_timestamp());
        create or replace function public.keep_versions() returns trigger language plpgsql security definer set search_path = '' as $$
        begin
          insert into public.document_versions (id, owner, body, revision, deleted_at) overriding system value select id, owner, body, revision, deleted_at from old_rows;
          perform pg_notify('documents', (select count(*)::text from old_rows));
          return null;
        end $$;
        create trigger keep_versions after update on public.documents referencing old table as old_rows new table as new_rows for each statement execute function public.keep_versions();
        create or replace function public.bump() returns trigger language plpgsql as $$ begin new.revision := old.revision + 1; return new; end $$;
        create trigger bump before update of body on public.documents for each row when (old.body is distinct from new.body) execute function public.bump();
        create view public.live_documents with (security_barrier, security_invoker) as select * from public.documents where deleted_at is null;
        create rule soft_delete as on delete to public.live_documents do instead update public.documents set deleted_at = now() where id = old.id;
        alter table documents enable row level security; alter table document_versions enable row level security;
        create policy own on documents using (owner = (select auth.uid()));
        create policy own on document_versions for select using (owner = (select auth.uid()));`,
      "seed.sql": `${USERS} insert into documents (owner, body) values ('${ALICE}', 'one'); update documents set body = 'two';`,
    },
    checks: [
      { as: ALICE, sql: "select body, revision from documents", rows: [["two", 2]] },
      { as: ALICE, sql: "select body, revision from document_versions", rows: [["one", 1]] },
      {
        as: ALICE,
        sql: "with gone as (delete from documents where false returning 1) select count(*)::int from gone, live_documents",
        rows: [[0]],
      },
      { as: BOB, sql: "select * from live_documents", rows: [] },
    ],
  },
  {
    name: "permissions in tables, read by policies through jsonb of the token, with idempotent blocks",
    files: {
      "migrations/20240101000000_roles.sql": `
        do $$ begin create type public.app_permission as enum ('posts.read', 'posts.write'); exception when duplicate_object then null; end $$;
        alter type public.app_permission add value if not exists 'posts.publish';
        create table if not exists public.role_permissions (role text not null, permission public.app_permission not null, unique (role, permission));`,
      "migrations/20240102000000_uses.sql": `
        insert into public.role_permissions values ('editor', 'posts.publish'), ('editor', 'posts.write') on conflict do nothing;
        create table if not exists public.posts (id int primary key, published boolean default false);
        alter table public.posts enable row level security;
        alter table public.posts force row level security;
        create or replace function public.authorize(requested public.app_permission) returns boolean language plpgsql stable security definer set search_path = '' as $$
        declare bind int;
        begin
          select count(*) into bind from public.role_permissions where permission = requested and role in (select jsonb_array_elements_text(auth.jwt() -> 'app_metadata' -> 'roles'));
          return bind > 0;
        end $$;
        do $$ declare t text; begin
          foreach t in array array['posts'] loop
            execute format('drop policy if exists "read" on public.%I', t);
            execute format('create policy "read" on public.%I for select to authenticated using ((select auth.jwt() -> ''app_metadata'' -> ''roles'') ? ''editor'' or published)', t);
            execute format('create policy "write" on public.%I for all to authenticated using ((select authorize(''posts.write''))) with check ((select authorize(''posts.publish'')))', t);
          end loop;
        end $$;`,
      "seed.sql": `${USERS} alter table posts no force row level security; insert into posts values (1), (2); alter table posts force row level security;`,
    },
    checks: [
      {
        as: ALICE,
        claims: { app_metadata: { roles: ["editor"] } },
        sql: "update posts set published = true returning id",
        rows: [[1], [2]],
      },
      { as: BOB, sql: "select id from posts", rows: [] },
      { as: BOB, claims: { app_metadata: { roles: ["reader"] } }, sql: "insert into posts values (3)", error: "42501" },
    ],
  },
  {
    name: "migrations of an ORM: breakpoints, quoted names, indexes with operator classes",
    files: {
      "migrations/0000_sudden_hulk.sql": `
        CREATE TYPE "public"."status" AS ENUM('active', 'archived');--> statement-breakpoint
        CREATE TABLE "authors" ("id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL, "userId" uuid NOT NULL, "status" "status" DEFAULT 'active' NOT NULL, "createdAt" timestamp (3) with time zone DEFAULT now() NOT NULL, CONSTRAINT "authors_userId_unique" UNIQUE("userId"));--> statement-breakpoint
        ALTER TABLE "authors" ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
        DO $$ BEGIN
          ALTER TABLE "authors" ADD CONSTRAINT "authors_userId_users_id_fk" FOREIGN KEY ("userId") REFERENCES "auth"."users"("id") ON DELETE cascade ON UPDATE no action;
        EXCEPTION WHEN duplicate_object THEN null; END $$;
        --> statement-breakpoint
        CREATE INDEX IF NOT EXISTS "authors_created_idx" ON "authors" USING btree ("createdAt" DESC NULLS LAST, "status" enum_ops);`,
      "migrations/0001_policies.sql": `
        CREATE POLICY "authors-own" ON "authors" AS PERMISSIVE FOR ALL TO "authenticated" USING ((select auth.uid()) = "authors"."userId") WITH CHECK ((select auth.uid()) = "authors"."userId");--> statement-breakpoint
        ALTER TABLE "authors" ALTER COLUMN "status" SET DATA TYPE text;--> statement-breakpoint
        ALTER TABLE "authors" ALTER COLUMN "status" SET DEFAULT 'active'::text;--> statement-breakpoint
        DROP TYPE "public"."status";--> statement-breakpoint
        CREATE TYPE "public"."status" AS ENUM('active', 'archived', 'deleted');--> statement-breakpoint
        ALTER TABLE "authors" ALTER COLUMN "status" SET DEFAULT 'active'::"public"."status";--> statement-breakpoint
        ALTER TABLE "authors" ALTER COLUMN "status" SET DATA TYPE "public"."status" USING "status"::"public"."status";`,
      "seed.sql": `${USERS} insert into authors ("userId") values ('${ALICE}'), ('${BOB}');`,
    },
    checks: [{ as: ALICE, sql: 'select "userId", status from authors', rows: [[ALICE, "active"]] }],
  },
  {
    name: "bookings: advisory locks, exclusion of overlaps, deferred constraints and procedures",
    files: {
      "migrations/20240101000000_bookings.sql": `
        create extension if not exists btree_gist with schema extensions;
        create table public.rooms (id int primary key, next_id int references public.rooms (id) deferrable initially deferred);
        create table public.bookings (id bigint generated by default as identity primary key, room_id int not null references rooms, guest uuid not null default auth.uid() references auth.users, during tstzrange not null, status text not null default 'held' check (status in ('held', 'paid')),
          exclude using gist (room_id with =, during with &&) where (status = 'paid') deferrable initially immediate);
        create unique index one_hold on bookings (guest) nulls not distinct where status = 'held';
        create or replace function public.book(p_room int, p_from timestamptz, p_to timestamptz) returns bookings language plpgsql security invoker set search_path = public as $$
        declare v bookings;
        begin
          perform pg_advisory_xact_lock(hashtextextended('room:' || p_room, 0));
          if exists (select from bookings where room_id = p_room and during && tstzrange(p_from, p_to)) then
            raise exception using errcode = 'P0409', message = 'taken', detail = format('room %s', p_room);
          end if;
          insert into bookings (room_id, during) values (p_room, tstzrange(p_from, p_to)) returning * into strict v;
          return v;
        end $$;
        alter table bookings enable row level security; alter table rooms enable row level security;
        create policy own on bookings using (guest = auth.uid()) with check (guest = auth.uid());
        create policy seen on rooms for select using (true);
        revoke truncate, trigger, references on all tables in schema public from anon, authenticated;`,
      "seed.sql": `${USERS} begin; insert into rooms values (1, 2); insert into rooms values (2, 1); commit; insert into bookings (room_id, guest, during, status) values (1, '${BOB}', '[2024-01-01, 2024-01-03)', 'paid');`,
    },
    checks: [
      { as: ALICE, sql: "select (book(2, '2024-01-01', '2024-01-02')).status", rows: [["held"]] },
      { as: BOB, sql: "select (book(1, '2024-01-02', '2024-01-04')).status", error: "P0409" },
      {
        as: "owner",
        sql: `insert into bookings (room_id, guest, during, status) values (1, '${ALICE}', '[2024-01-02, 2024-01-05)', 'paid')`,
        error: "23P01",
      },
    ],
  },
];

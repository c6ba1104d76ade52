import { ALICE, type Shape, USERS } from "./shape.ts";

/** Statements about the cluster or the connection, and about objects that are here already. */
export const ROLES: readonly Shape[] = [
  {
    name: "memberships of roles as roles of Supabase have granted them",
    files: {
      "roles.sql": `
        CREATE ROLE "cli_login_postgres";
        ALTER ROLE "cli_login_postgres" WITH NOINHERIT NOCREATEROLE NOCREATEDB LOGIN NOBYPASSRLS VALID UNTIL '2025-09-15 13:45:04.835226+00';
        CREATE ROLE "shape_member";
        GRANT "postgres" TO "cli_login_postgres" WITH INHERIT FALSE GRANTED BY "supabase_admin";
        GRANT "shape_member" TO "authenticator" WITH INHERIT FALSE, SET TRUE GRANTED BY "postgres";
        GRANT shape_member TO authenticator GRANTED BY supabase_admin;
        RESET ALL;`,
    },
    changes: ["roles.sql: removed a membership in a role of Supabase"],
    checks: [
      {
        as: "owner",
        sql: "select pg_has_role('authenticator', 'shape_member', 'member'), pg_has_role('cli_login_postgres', 'postgres', 'member')",
        rows: [[true, false]],
      },
    ],
  },
  {
    name: "roles of roles.sql and of migrations that exist already, and migrations that act as roles of Supabase",
    files: {
      "roles.sql": `
        SET default_transaction_read_only = off;
        CREATE ROLE "supabase_realtime_admin";
        ALTER ROLE "supabase_realtime_admin" WITH NOINHERIT NOLOGIN;
        create role shape_reader nologin noinherit;
        RESET ALL;`,
      "migrations/20240101000000_roles.sql": `
        create role shape_reader;
        CREATE USER "Shape reader" NOLOGIN;
        do $$ begin
          create role shape_reader;
          execute format('create role %I nologin', 'Shape reader');
        end $$;
        create table public.reports (id int primary key);
        grant select on reports to shape_reader, "Shape reader";
        grant shape_reader to authenticator;
        grant connect on database postgres to shape_reader;
        comment on database postgres is 'Reports.';
        set role supabase_storage_admin;
        create policy "everybody lists" on storage.objects for select using (true);
        reset role;
        set local role to 'postgres';
        create table public.made_by_postgres (id int primary key);
        reset role;`,
    },
    changes: ["roles.sql: creates a role only where it does not exist"],
    checks: [
      { as: "shape_reader", sql: "select from reports", rows: [] },
      { as: "shape_reader", sql: "select from made_by_postgres", error: "42501" },
      {
        as: "owner",
        sql: "select has_database_privilege('shape_reader', current_database(), 'connect'), shobj_description(oid, 'pg_database') from pg_database where datname = current_database()",
        rows: [[true, "Reports."]],
      },
    ],
  },
  {
    name: "tables that migrations and their blocks add to the publication, some of them twice or after they were taken out",
    files: {
      "migrations/20240101000000_publication.sql": `
        create table public.messages (id int primary key, body text);
        create table public."Room" (id int primary key);
        create table public.presence (id int primary key);
        alter publication supabase_realtime add table public.messages, only public."Room" (id);
        alter publication supabase_realtime drop table public.presence;
        alter publication supabase_realtime drop table public.messages;
        ALTER PUBLICATION "supabase_realtime" ADD TABLE ONLY "public"."messages";
        do $$
        declare name text;
        begin
          if not exists (select from pg_publication where pubname = 'supabase_realtime') then create publication supabase_realtime; end if;
          alter publication supabase_realtime add table public.messages;
          foreach name in array array['messages', 'Room'] loop
            execute format('alter publication supabase_realtime add table public.%I', name);
          end loop;
        end $$;`,
    },
    checks: [
      {
        as: "owner",
        sql: "select tablename::text from pg_publication_tables where pubname = 'supabase_realtime' and schemaname = 'public' order by 1",
        rows: [["Room"], ["messages"]],
      },
    ],
  },
  {
    name: "a dump that changes settings of its connection, before other migrations and between seeds",
    files: {
      "config.toml": '[db.seed]\nsql_paths = ["./seeds/*.sql"]\n',
      "migrations/20240101000000_dump.sql": `
        SELECT pg_catalog.set_config('search_path', '', false);
        SET check_function_bodies = false;
        SET row_security = off;
        SET session_replication_role = replica;
        CREATE TABLE "public"."items" ("id" integer PRIMARY KEY, "touched" boolean DEFAULT false);
        ALTER TABLE "public"."items" ENABLE ROW LEVEL SECURITY;
        CREATE POLICY "read" ON "public"."items" FOR SELECT TO "authenticated" USING ("id" < 10);`,
      "migrations/20240102000000_after.sql": `
        create function touch() returns trigger language plpgsql as $$ begin new.touched := true; return new; end $$;
        create trigger touch before insert on items for each row execute function touch();
        insert into items values (1), (11);
        create table seen as select id from items where false;
        do $$ begin
          set local role authenticated;
          perform from items;
          reset role;
        end $$;`,
      "seeds/1.sql": `SELECT pg_catalog.set_config('search_path', '', false);\nSET session_replication_role = replica;\nINSERT INTO "public"."items" VALUES (2);`,
      "seeds/2.sql": `${USERS} insert into items values (3);`,
    },
    checks: [
      {
        as: ALICE,
        sql: "select id, touched from items order by id",
        rows: [
          [1, true],
          [2, false],
          [3, true],
        ],
      },
    ],
  },
];

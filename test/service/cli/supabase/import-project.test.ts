import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { importSupabase, parseApis } from "../../../../service/cli/supabase/import-project.ts";
import { importConfig } from "../../../../service/cli/supabase/supabase-config.ts";
import { REPOSITORY } from "../../../repository.ts";

async function importSql(
  sql: string,
  apis?: string,
): Promise<{ readonly sql: string; readonly changes: readonly string[] }> {
  const projectFolder = await mkdtemp(join(tmpdir(), "import-"));
  try {
    await mkdir(join(projectFolder, "supabase/migrations"), { recursive: true });
    await writeFile(join(projectFolder, "supabase/migrations/1_a.sql"), sql);
    const templateFolder = join(REPOSITORY, "templates/supabase");
    const { files, changes } = await importSupabase({ projectFolder, templateFolder, apis: parseApis(apis) });
    const text = files[1]!.text;
    const settings = "reset session_replication_role;\n";
    const start = text.indexOf(settings) + settings.length;
    return { sql: text.slice(start, text.indexOf("\nreset role; insert into supabase_migrations")).trim(), changes };
  } finally {
    await rm(projectFolder, { recursive: true });
  }
}

test.each([
  ["alter table a owner to postgres", "alter table a owner to current_user"],
  ['ALTER FUNCTION "public"."f"() OWNER TO "supabase_admin"', 'ALTER FUNCTION "public"."f"() OWNER TO current_user'],
  ["alter table a owner to editor", "alter table a owner to editor"],
  ["set session role 'supabase_admin'", "reset role"],
  ["set role editor", "set role editor"],
  [
    "revoke all on schema public, private from a; grant connect on database postgres to a",
    'revoke all on schema public, private from a; grant connect on database ":DATABASE_NAME" to a',
  ],
  [
    "create trigger t after insert on auth.sessions for each row execute function f()",
    "create trigger t after insert on supabase_auth.session_mirror for each row execute function f()",
  ],
  [
    "create trigger t after insert on auth.mfa_factors for each row execute function f()",
    "create trigger t after insert on supabase_auth.mfa_factor_mirror for each row execute function f()",
  ],
  [
    "do $$ begin execute 'create trigger t after update on auth.mfa_factors for each row execute function f()'; end $$",
    "do $$ begin execute 'create trigger t after update on supabase_auth.mfa_factor_mirror for each row execute function f()'; end $$",
  ],
  [
    "do $$ begin execute format('create trigger %I after update on auth.mfa_factors for each row execute function f()', 'a'); end $$",
    "do $$ begin execute format('create trigger %I after update on supabase_auth.mfa_factor_mirror for each row execute function f()', 'a'); end $$",
  ],
  [
    "do $$ begin if true then execute 'alter table auth.mfa_factors enable row level security;'; end if; create policy p on auth.sessions; end $$",
    "do $$ begin if true then null; end if; null; end $$",
  ],
  [
    "do $$ begin execute $q$ create trigger t after insert on auth.flow_state for each row execute function f() $q$; end $$",
    "do $$ begin null; end $$",
  ],
  [
    "do $do$ begin execute 'alter table storage.objects add column version text, add column caption text default ''a'''; end $do$",
    "do $do$ begin execute $statement$alter table storage.objects add column caption text default 'a'$statement$; end $do$",
  ],
  [
    "do $$ begin grant select on storage.migrations, public.mine to anon; raise notice 'drop table storage.prefixes'; end $$",
    "do $$ begin grant select on public.mine to anon; raise notice 'drop table storage.prefixes'; end $$",
  ],
  ["drop trigger t on auth.identities", "drop trigger t on supabase_auth.identity_mirror"],
  [
    "alter table auth.sessions enable always trigger t",
    "alter table supabase_auth.session_mirror enable always trigger t",
  ],
  ["select from a join auth.sessions on true", "select from a join supabase_auth.sessions on true"],
  [
    "create trigger t before insert on auth.audit_log_entries for each row execute function f()",
    "create trigger t before insert on supabase_auth.audit_log_mirror for each row execute function f()",
  ],
  [
    "do $$ begin if current_database() <> 'postgres' then raise 'no'; end if; end $$",
    "do $$ begin if current_database() <> ':DATABASE_NAME' then raise 'no'; end if; end $$",
  ],
  [
    "do $$ begin alter publication supabase_realtime add table a; end $$",
    "do $$ begin begin alter publication supabase_realtime add table a; exception when duplicate_object then null; end; end $$",
  ],
  [
    "do $$ begin set role postgres; execute 'set local role editor'; end $$",
    "do $$ begin reset role; execute 'set local role editor'; end $$",
  ],
  [
    "do $$ begin execute 'alter database postgres set a.b = 1'; end $$",
    "do $$ begin execute 'alter database \":DATABASE_NAME\" set a.b = 1'; end $$",
  ],
  [
    "create extension if not exists \"hstore\" with schema extensions version '1.0'",
    'create extension if not exists "hstore" with schema extensions',
  ],
  ["create schema auth", "create schema if not exists auth"],
  ["create schema if not exists app authorization postgres", "create schema if not exists app"],
  [
    "alter default privileges for role postgres in schema x grant all on tables to anon",
    "alter default privileges for role current_user in schema x grant all on tables to anon",
  ],
  [
    'alter default privileges for role "postgres", editor, supabase_admin grant all on tables to postgres',
    "alter default privileges for role current_user, editor grant all on tables to postgres",
  ],
  [
    "create function auth.is_admin() returns boolean language sql as 'select false'",
    "create or replace function auth.is_admin() returns boolean language sql as 'select false'",
  ],
  ["create table a (b uuid references auth.users)", "create table a (b uuid references auth.users (id))"],
  ["create table a (b uuid references auth.sessions)", "create table a (b uuid references auth.token_sessions (id))"],
  [
    "create table a (b uuid references auth.mfa_factors (id))",
    "create table a (b uuid references auth.mfa_factors (id))",
  ],
  [
    'select * from auth.identities, "auth"."mfa_factors"',
    "select * from supabase_auth.identities, supabase_auth.mfa_factors",
  ],
  ["insert into auth.identities (id) values (1)", "insert into supabase_auth.identity_rows (id) values (1)"],
  ["select auth.identities_of(1)", "select auth.identities_of(1)"],
  ["drop extension pg_net", "drop extension if exists pg_net"],
  ["select 'a private.thing'", "select 'a private.thing'"],
  ["grant select on storage.migrations, public.mine to anon", "grant select on public.mine to anon"],
  ['drop table mine, "storage"."prefixes" cascade', "drop table mine cascade"],
  [
    "alter table storage.objects drop column version, add column caption text, add column level integer",
    "alter table storage.objects add column caption text",
  ],
  ["drop index storage.captions", "drop index if exists storage.captions"],
  ["do $$ begin execute 'create extension pg_cron;' ; end $$", "do $$ begin null ; end $$"],
  ["do $$ begin execute $q$create extension pg_cron$q$; end $$", "do $$ begin null; end $$"],
])("%s", async (statement, expected) => {
  expect((await importSql(`${statement};`)).sql).toBe(`${expected};`);
});

test.each([
  "create trigger t before update on public.docs for each row execute function storage.update_updated_at_column()",
  'alter table "storage"."objects" add column "caption" text',
  "alter table storage.buckets alter column caption set default 'a, b', drop column if exists note",
  "alter table storage.objects drop constraint caption_is_short",
  "do $$ begin execute 'create extension vector' || ' with schema x'; end $$",
  "do $$ begin raise notice 'first; create extension pg_cron now'; /* begin create extension pgmq */ end $$",
  "do $$ begin execute format($q$ begin create extension pg_cron; $q$); end $$",
])("%s stays", async (statement) => {
  expect((await importSql(`${statement};`)).sql).toBe(`${statement};`);
});

test.each([
  "grant select on storage.migrations, auth.sso_domains to anon",
  "drop table if exists storage.prefixes",
  "create trigger t before update on storage.objects for each row execute function storage.update_updated_at_column()",
  'alter table "storage"."objects" drop constraint "objects_bucketId_fkey"',
  "alter table storage.objects add column if not exists user_metadata jsonb, alter column owner drop not null",
  "drop index storage.bucketid_objname",
  "vacuum (analyze) a",
  "alter publication supabase_realtime add tables in schema public",
  "drop policy if exists p on auth.identities",
  "create constraint trigger t after insert on auth.refresh_tokens deferrable for each row execute function f()",
  "drop trigger if exists t on auth.one_time_tokens",
  "alter table auth.mfa_challenges disable trigger t",
  "alter table only auth.users add constraint users_pkey primary key (id)",
])("%s is removed", async (statement) => {
  expect((await importSql(`${statement};`)).sql).toBe("");
});

test.each([
  ["begin; create table a (); commit;", "create table a ();"],
  ["begin; create table a (); rollback;", "begin; create table a (); rollback;"],
  [
    "alter type mood add value 'glad'; commit; begin; insert into a values ('glad'); commit;",
    "alter type mood add value 'glad'; commit; begin; insert into a values ('glad'); commit;",
  ],
])("transactions of %s", async (statements, expected) => {
  expect((await importSql(statements)).sql).toBe(expected);
});

test("a schema private of the project keeps its name", async () => {
  const text = `create schema private;
    grant usage on schema public, private to authenticated;
    create function "private".f() returns text language sql set search_path = private, public as 'select private.g()';
    drop schema if exists private cascade;`;
  expect(await importSql(text)).toMatchObject({ sql: text, changes: [] });
});

test("an API that SUPABASE_APIS does not name has no schema, and its extension is told", async () => {
  const { changes } = await importSql("create extension pg_cron; create extension pgmq;", "queues");
  expect(changes).toContain(
    "1_a.sql: removed the extension pg_cron: SUPABASE_APIS does not name cron, so statements that need it fail",
  );
  expect(changes).toContain("1_a.sql: removed the extension pgmq: schema pgmq and pgmq_public stands in for it");
  expect(() => parseApis("cron, queue")).toThrow('SUPABASE_APIS has no "queue"');
});

test("config.toml becomes settings, and what has no counterpart is told", () => {
  const { settings, changes, seeds, buckets } = importConfig(`
    project_id = "app"
    [api]
    schemas = ["public", "app"]
    max_rows = 1000
    [db.seed]
    sql_paths = ["./seeds/*.sql"]
    [auth]
    site_url = "http://localhost:3000"
    additional_redirect_urls = ["https://example.org/**", "http://127.0.0.1:3000"]
    enable_signup = false
    minimum_password_length = 10
    [auth.email]
    enable_confirmations = true
    max_frequency = "1m"
    [auth.external.github]
    enabled = true
    client_id = "env(ID)"
    [auth.sessions]
    timebox = "24h"
    [storage.buckets.images]
    public = true
    file_size_limit = "50MiB"
    [functions.hello]
    verify_jwt = true`);
  expect(settings).toEqual({
    PGRST_DB_SCHEMAS: "public,app",
    PGRST_DB_MAX_ROWS: "1000",
    SITE_URL: "http://localhost:3000",
    SIGN_IN_REDIRECTS: "https://example.org/*,http://127.0.0.1:3000",
    AUTH_SIGN_UPS: "false",
    AUTH_AUTOCONFIRM: "false",
    MAIL_INTERVAL_SECONDS: "60",
    PASSWORD_POLICY: "strict",
  });
  expect(seeds).toEqual(["./seeds/*.sql"]);
  expect(buckets[0]).toContain("values ('images', 'images', true, 52428800, null)");
  expect(changes).toEqual([
    "config.toml: passwords of 10 characters become PASSWORD_POLICY=strict",
    'config.toml: add the provider github by "npm run provider", its secrets are not in this file',
    "config.toml: auth.sessions.timebox has no counterpart here",
  ]);
});

describe("a project without migrations", () => {
  const templateFolder = join(REPOSITORY, "templates/supabase");

  async function importFiles(files: Readonly<Record<string, string>>) {
    const projectFolder = await mkdtemp(join(tmpdir(), "import-"));
    try {
      await mkdir(join(projectFolder, "supabase"));
      for (const [name, text] of Object.entries(files)) await writeFile(join(projectFolder, "supabase", name), text);
      return await importSupabase({ projectFolder, templateFolder, apis: parseApis(undefined) });
    } finally {
      await rm(projectFolder, { recursive: true });
    }
  }

  const seed = "insert into storage.buckets (id, name) values ('a', 'a');\n";

  test.each([
    ["config.toml and seed.sql", { "config.toml": 'project_id = "a"\n', "seed.sql": seed }, seed],
    ["config.toml", { "config.toml": 'project_id = "a"\n' }, null],
    ["seed.sql", { "seed.sql": seed }, seed],
  ])("is imported with its %s", async (_, sources, expected) => {
    const { files, changes } = await importFiles(sources);
    const paths = files.map(({ path }) => path);
    expect(paths).toEqual(["db/migrations/committed/000001-supabase.sql", ...(expected ? ["db/seed.sql"] : [])]);
    expect(files[1]?.text ?? null).toEqual(expected && expect.stringContaining(expected));
    expect(changes).toContainEqual(expect.stringContaining("there is no supabase/migrations"));
  });

  test("is refused if it has nothing that is read", async () => {
    await expect(importFiles({ "README.md": "x" })).rejects.toThrow(/has none of migrations, config\.toml, seed\.sql/);
  });
});

test("anonymous sign-ins without sign-ups are told", () => {
  const { changes } = importConfig("[auth]\nenable_signup = false\nenable_anonymous_sign_ins = true");
  expect(changes).toEqual(["config.toml: anonymous sign-ins are refused while auth.enable_signup is false"]);
});

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@supabase/supabase-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../postgres/client/with-client.ts";
import { useFixture, useFolder } from "../fixture.ts";
import { tokenFor } from "../graphql.ts";
import { startReceiver } from "../jobs/webhooks/receiver.ts";
import { type Program, startGateway } from "../program.ts";
import { anonKey } from "../realtime/service.ts";
import { REPOSITORY } from "../repository.ts";
import { startServer } from "../server-binaries.ts";
import { runCommand } from "../service/cli/run-command.ts";
import { until } from "../until.ts";

/** The main user of a managed Postgres, with less than usual: it may create no roles. */
const MANAGED_OWNER = `
  create role cloud_superuser;
  grant pg_monitor, pg_signal_backend, pg_read_all_data to cloud_superuser;
  create role managed login createdb in role cloud_superuser`;

/** The administrator of the server creates the roles instead. */
const ROLES = `
  create role anon; create role authenticated; create role admin in role authenticated; create role service_role bypassrls;
  create role authenticator login noinherit; create role supabase_auth_admin;
  grant anon, authenticated, admin, service_role to authenticator;
  grant anon, authenticated, admin, service_role, authenticator, supabase_auth_admin to managed with admin option`;

const SCHEMA = `
  create table public.notes (id int generated always as identity primary key, author text not null default auth.uid()::text, words text);
  alter table public.notes enable row level security;
  create policy own on public.notes to authenticated using (author = auth.uid()::text) with check (author = auth.uid()::text);
  grant select, insert, update, delete on public.notes to authenticated, service_role;
  create function public.count_notes() returns bigint language sql stable as 'select count(*) from public.notes';
  grant execute on function public.count_notes to service_role;
  insert into api.schedules (name, cron, function, role) values ('notes', '0 0 1 1 *', 'public.count_notes', 'service_role');`;

let gateway: Program;
const databaseOf = (name: string) => ({
  url: cluster.url("authenticator", name),
  ownerUrl: cluster.url("managed", name),
});
const run = (login: string, name: string, text: string) =>
  withClient(cluster.url(login, name), (client) => client.query(text));

const folder = useFolder("managed-owner-");
const dataDir = join(folder, "postgres");
const cluster = useFixture(() => startServer({ dataDir, port: null, settings: { fsync: "off" } }));
const receiver = useFixture(startReceiver);
beforeAll(async () => {
  await run("postgres", "postgres", MANAGED_OWNER);
  for (const name of ["content", "restored"])
    await run("postgres", "postgres", `create database ${name} owner managed`);
});

afterAll(() => gateway?.kill());

describe("an owner without superuser rights, CREATEROLE, REPLICATION and ALTER SYSTEM", () => {
  test("is told which privilege its migrations lack, and has changed nothing", async () => {
    const { code, stderr } = await runCommand("migrate", [], databaseOf("content"));
    expect(code).toBe(1);
    expect(stderr).toContain("managed may not create the roles of this service (42501)");
    expect(stderr).toContain("Hint: As a superuser, run once: alter role managed createrole");
    const { rowCount } = await run(
      "managed",
      "content",
      "select from pg_namespace where nspname in ('auth', 'content_service', 'api')",
    );
    expect(rowCount).toBe(0);
  });

  test("migrates where the roles exist, and says what only a superuser may do", async () => {
    await run("postgres", "postgres", ROLES);
    const { code, stdout } = await runCommand("migrate", [], databaseOf("content"));
    expect(code).toBe(0);
    expect(stdout).toMatch(/^All \d+ migrations are applied\.$/m);
    expect(stdout).toContain("As a superuser, run: npm run migrate -- --watch-only");
    await expect(run("managed", "content", "alter system set wal_level = logical")).rejects.toThrow(
      "permission denied",
    );
  });

  test("has its schema served on all interfaces, new tables too, without an event trigger", async () => {
    gateway = await startGateway(databaseOf("content"), {
      REST_REQUIRE_APIKEY: "false",
      WEBHOOK_NETWORK: "loopback",
      LOG_LEVEL: "info",
    });
    await run("managed", "content", SCHEMA);
    const send = async (path: string, body?: object, user = "1") => {
      const response = await fetch(`${gateway.url}${path}`, {
        method: body ? "POST" : "GET",
        headers: {
          Authorization: `Bearer ${tokenFor(user)}`,
          ...(body && { "Content-Type": "application/json", Prefer: "return=representation" }),
        },
        ...(body && { body: JSON.stringify(body) }),
      });
      // biome-ignore lint/suspicious/noExplicitAny: what a response has is what the test says.
      return { status: response.status, body: (await response.json()) as any };
    };
    await until(async () => (await send("/rest/v1/notes")).status === 200);
    const byTable = await send("/rest/v1/notes", { words: "by the table interface" });
    expect([byTable.status, byTable.body]).toEqual([201, [{ id: 1, author: "1", words: "by the table interface" }]]);
    expect((await send("/api/v1/notes", { words: "by the resource interface" })).status).toBe(201);
    const document = { query: `mutation { createNote(input: { words: "by GraphQL" }) { id author } }` };
    await until(async () => (await send("/graphql", document, "2")).body.data !== undefined);
    expect(
      (await send("/graphql", { query: "{ notes { edges { node { id words } } } }" }, "2")).body.data.notes.edges,
    ).toEqual([{ node: { id: "3", words: "by GraphQL" } }]);
    expect((await send("/rest/v1/notes?select=id")).body).toEqual([{ id: 1 }, { id: 2 }]);
    expect((await send("/rest/v1/notes", { words: "of somebody else", author: "2" })).status).toBe(403);
    expect((await send("/users")).status).toBe(200);
    expect(await (await fetch(`${gateway.url}/health`)).json()).toEqual({ status: "ok" });
  });

  test("has accounts, webhooks and schedules", async () => {
    const { code, stdout } = await runCommand(
      "user",
      ["add", "--email", "ada@example.org", "--name", "Ada", "--admin"],
      databaseOf("content"),
    );
    expect([code, stdout]).toEqual([0, expect.stringContaining("Created administrator 1")]);
    const client = createClient(gateway.url, anonKey, { auth: { persistSession: false } });
    const password = /password: (\S+)/.exec(stdout)![1]!;
    expect((await client.auth.signInWithPassword({ email: "ada@example.org", password })).error).toBeNull();
    await run(
      "managed",
      "content",
      `insert into api.webhooks (name, table_name, url, role) values ('notes', 'public.notes', '${receiver.url}', 'service_role')`,
    );
    await run("managed", "content", "insert into public.notes (author, words) values ('1', 'by the owner')");
    await until(() => receiver.requests.some(({ body }) => body.includes("by the owner")));
    expect((await run("managed", "content", "select api.run_schedule('notes') as status")).rows).toEqual([
      { status: "queued" },
    ]);
    const runs = "select status, error from api.schedule_runs where status not in ('queued', 'running')";
    await until(async () => (await run("managed", "content", runs)).rows.length === 1);
    expect((await run("managed", "content", runs)).rows).toEqual([{ status: "done", error: null }]);
  });

  test("has no row changes, which the refusal and doctor explain", async () => {
    const client = createClient(gateway.url, anonKey);
    await client.realtime.setAuth(tokenFor("1"));
    const messages: string[] = [];
    const channel = client
      .channel("changes")
      .on("system", {}, ({ message }: { message: string }) => void messages.push(message))
      .on("postgres_changes", { event: "*", schema: "public", table: "notes" }, () => {});
    channel.subscribe((_status, error) => void (error && messages.push(error.message)));
    await until(() => messages.length > 0);
    await client.realtime.disconnect();
    expect(messages[0]).toMatch(/replication|wal_level/i);
    const { code, stdout } = await runCommand("doctor", [], databaseOf("content"));
    expect(code).toBe(0);
    expect(stdout).toContain("Row changes are unavailable");
    expect(stdout).toContain("Schema changes are detected by polling every few seconds");
    expect(stdout).not.toMatch(/^danger/m);
  });

  test("backs up, and restores into another database of its own", async () => {
    const file = join(folder, "backup.gz");
    expect(await runCommand("backup", [file], databaseOf("content"))).toMatchObject({ code: 0 });
    expect(await runCommand("restore", [file], databaseOf("restored"))).toMatchObject({ code: 0, stderr: "" });
    const count = "select author, words from public.notes order by id";
    expect((await run("managed", "restored", count)).rows).toEqual((await run("managed", "content", count)).rows);
    const owned = `select proowner::regrole::text as owner, has_schema_privilege('supabase_auth_admin', 'auth', 'create') as may
      from pg_proc where oid = 'auth.call_claims_hook'::regproc`;
    expect((await run("managed", "restored", owned)).rows).toEqual([{ owner: "supabase_auth_admin", may: false }]);
    expect((await run("managed", "content", owned)).rows).toEqual([{ owner: "supabase_auth_admin", may: false }]);
  });

  test("has what its migrations left out after one command of a superuser", async () => {
    const superuser = { ...databaseOf("content"), ownerUrl: cluster.url("postgres", "content") };
    const { code, stdout, stderr } = await runCommand("migrate", ["--watch-only"], superuser);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^Created event triggers/),
      stderr: "",
    });
    await run("managed", "content", "create table public.later (id int primary key)");
    // A table of another role is left to that role.
    await run("postgres", "content", "create table public.of_postgres (id int primary key)");
    const published = `select format('%s.%s', schemaname, tablename) as name, relreplident as identity
      from pg_publication_tables join pg_class on pg_class.oid = format('%I.%I', schemaname, tablename)::regclass
      where pubname = 'supabase_realtime' order by name`;
    const whole = [...(await publishedByMigrations()), "public.later", "public.notes"].sort();
    expect((await run("managed", "content", published)).rows).toEqual(whole.map((name) => ({ name, identity: "f" })));
    expect((await runCommand("doctor", [], databaseOf("content"))).stdout).not.toContain("polling every few seconds");
    expect((await runCommand("migrate", ["--watch-only"], superuser)).stdout).toContain("Nothing was changed");
  });
});

/** The tables that the migrations publish if a superuser runs them. */
async function publishedByMigrations(): Promise<readonly string[]> {
  const schema = await readFile(join(REPOSITORY, "db/schema.sql"), "utf8");
  const [, tables] = /^create publication supabase_realtime for (.*) with /m.exec(schema)!;
  return tables!.split(", ").map((table) => table.replace("table only ", ""));
}

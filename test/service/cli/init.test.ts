import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import { describe, expect, test } from "vitest";
import { committedMigrations } from "../../../migrate/committed-migrations.ts";
import { useDatabase } from "../../database.ts";
import { REPOSITORY } from "../../repository.ts";
import { SECRET } from "../../secret.ts";
import { BIN, makeProjectFolder, type ProjectFolder } from "./project.ts";

/** Tests that need no Postgres of their own use that of the run. */
const database = useDatabase({ template: "empty" });
const onDatabase = { DATABASE_URL: database.ownerUrl, JWT_SECRET: SECRET };

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return paths
    .map((path) => path.slice(folder.length + 1))
    .filter((path) => !path.startsWith("node_modules"))
    .sort();
}

const readText = ({ folder }: ProjectFolder, path: string) => readFile(join(folder, path), "utf8");

/** Starts the service in the project, and gives its address to the work. */
async function whileServing(
  { folder, environment }: ProjectFolder,
  work: (address: string) => Promise<void>,
  [program, ...args]: readonly [string, ...string[]] = [process.execPath, BIN, "start"],
) {
  const service = spawn(program, args, { cwd: folder, env: environment, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(service, "exit");
  try {
    await work(await announcedAddress(service));
  } finally {
    service.kill("SIGTERM");
    await ended;
  }
}

async function announcedAddress(service: ChildProcess): Promise<string> {
  let address = "";
  for await (const line of createInterface({ input: service.stdout! })) {
    address ||= /^ +address +(\S+)/.exec(line)?.[1] ?? "";
    if (line.includes("ready in")) return address;
  }
  throw new Error("The service ended before it was ready.");
}

describe("content-service init", () => {
  test("creates a blank project whose start and test work at once, and whose first table is served", async () => {
    await using project = await makeProjectFolder();
    expect(await project.run("init", "--name", "shop")).toMatchObject({ code: 0, stderr: "" });
    expect(await filesOf(project.folder)).toEqual([
      ".env.example",
      ".github/workflows/ci.yml",
      ".gitignore",
      ".npmrc",
      "README.md",
      "db/migrations/README.md",
      "db/migrations/current/0010-notes.sql",
      "package.json",
      "test/policies/notes.sql",
    ]);
    const description = JSON.parse(await readText(project, "package.json"));
    expect(description).toMatchObject({
      name: "shop",
      private: true,
      "content-service": { BASE_SCHEMA: "platform" },
      dependencies: { "content-service": expect.stringMatching(/^file:/) },
    });
    expect(await readText(project, "README.md")).toMatch(/^# shop\n/);

    const tested = await project.npm("test");
    expect(tested).toMatchObject({ code: 0 });
    expect(tested.stdout).toMatch(/^anon +4 +0\nauthenticated +5 +0\nadmin +4 +0\nservice_role +1 +0$/m);

    await whileServing(
      project,
      async (address) => {
        const anonKey = (await project.npm("run", "--silent", "keys")).stdout.split("\n")[1]!;
        const read = (path: string) => fetch(`${address}${path}`, { headers: { apikey: anonKey } });
        const added = await project.run("user", "add", "--email", "ada@example.org", "--name", "Ada");
        expect(added).toMatchObject({ code: 0 });
        const password = /^password: (.+)$/m.exec(added.stdout)![1];
        const login = await postJson(`${address}/auth/login`, { username: "ada@example.org", password });
        expect(login.status).toBe(200);
        const { accessToken } = (await login.json()) as { accessToken: string };
        expect((await read("/rest/v1/articles")).status).toBe(404);
        expect((await read("/rest/v1/notes")).status).toBe(404);
        expect(await project.npm("run", "migrate", "--", "commit", "add notes")).toMatchObject({ code: 0 });
        await expect.poll(async () => (await read("/rest/v1/notes")).status).toBe(200);
        const own = { apikey: anonKey, Authorization: `Bearer ${accessToken}`, Prefer: "return=representation" };
        const written = await postJson(`${address}/rest/v1/notes`, { words: "Mine." }, own);
        expect(await written.json()).toMatchObject([{ author_id: 1, words: "Mine.", is_public: false }]);
        expect(await (await read("/rest/v1/notes")).json()).toEqual([]);
        expect(await project.npm("run", "types")).toMatchObject({ code: 0 });
        expect(await readText(project, "database.types.ts")).toContain("is_public: boolean");
      },
      ["npm", "start"],
    );
    expect(await readdir(join(project.folder, "db/migrations/committed"))).toEqual(["000001-add-notes.sql"]);
    expect(await readText(project, "db/migrations/schema.sql")).toContain("create table public.notes");
  });

  test("gives a project a script for each command that the pages call by npm", async () => {
    await using project = await makeProjectFolder();
    await project.run("init");
    const { scripts } = JSON.parse(await readText(project, "package.json"));
    const repository = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8")).scripts;
    const commands = Object.keys(repository).filter((name) =>
      repository[name].includes("service/cli/compile-cache.js"),
    );
    expect(commands).toContain("why");
    expect(commands.filter((name) => scripts[name] === undefined)).toEqual([]);
    const help = await project.npm("run", "--silent", "why", "--", "--help");
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining("npx content-service why") });
  });

  test("creates a project with the example application", async () => {
    await using project = await makeProjectFolder(onDatabase);
    expect(await project.run("init", "--template", "content")).toMatchObject({ code: 0 });
    const tested = await project.run("test");
    expect(tested).toMatchObject({ code: 0 });
    expect(tested.stdout).toContain("authenticated ben@example.org");
  });

  test("overwrites nothing without --force, and with it replaces symbolic links instead of their targets", async () => {
    await using project = await makeProjectFolder();
    const outside = join(project.folder, "outside.md");
    await writeFile(outside, "mine");
    await symlink(outside, join(project.folder, "README.md"));
    await writeFile(join(project.folder, ".gitignore"), "mine");
    const before = await filesOf(project.folder);
    const refused = await project.run("init");
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toMatch(
      /Nothing was written, because .* has these files already: \.gitignore, README\.md\./,
    );
    expect(await filesOf(project.folder)).toEqual(before);

    expect(await project.run("init", "--force")).toMatchObject({ code: 0 });
    expect(await readText(project, ".gitignore")).toContain("node_modules/");
    expect(await readText(project, "README.md")).toContain("npm install");
    expect(await readFile(outside, "utf8")).toBe("mine");
  });

  test("completes the package.json of npm install, and overwrites none of its values", async () => {
    await using project = await makeProjectFolder();
    const installed = {
      name: "mine",
      scripts: { start: "node mine.js", test: 'echo "Error: no test specified" && exit 1' },
      dependencies: { "content-service": "0.1.0", other: "1.0.0" },
    };
    await writeFile(join(project.folder, "package.json"), JSON.stringify(installed));
    expect(await project.run("init")).toMatchObject({ code: 0, stderr: "" });
    const description = JSON.parse(await readText(project, "package.json"));
    expect(description).toMatchObject({
      name: "mine",
      scripts: { start: "node mine.js", test: "content-service test", dev: "content-service dev" },
      dependencies: installed.dependencies,
      "content-service": { BASE_SCHEMA: "platform" },
    });
    const other = join(project.folder, "other");
    await mkdir(other);
    await writeFile(join(other, "package.json"), "{}");
    expect(await project.run("init", "other")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("package.json"),
    });
    expect(await readdir(other)).toEqual(["package.json"]);
  });

  test("derives a valid package name from the folder, and refuses an invalid one", async () => {
    await using project = await makeProjectFolder();
    const nameIn = async (folder: string) => {
      expect(await project.run("init", folder)).toMatchObject({ code: 0 });
      return JSON.parse(await readText(project, `${folder}/package.json`)).name;
    };
    expect(await nameIn('My "App"; rm -rf $HOME')).toBe("my-app-rm--rf-home");
    expect(await nameIn("content-service")).toBe("my-project");
    for (const name of ["../x", "A", "{{name}}", "", "content-service", "node_modules"]) {
      expect(await project.run("init", "other", "--name", name)).toMatchObject({ code: 2 });
    }
    expect(await project.run("init", "other", "--template", "../every-template")).toMatchObject({ code: 2 });
    expect(await readdir(project.folder)).not.toContain("other");
  });
});

function postJson(url: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

/** Resolves with a client's own message to a private channel. */
function firstBroadcast(client: SupabaseClient, topic: string): Promise<unknown> {
  const channel = client.channel(topic, { config: { private: true, broadcast: { self: true } } });
  return new Promise((resolve, reject) => {
    channel.on("broadcast", { event: "note" }, ({ payload }) => resolve(payload));
    channel.subscribe((status, error) => {
      if (status === "SUBSCRIBED") void channel.send({ type: "broadcast", event: "note", payload: { text: "Hello" } });
      if (status === "CHANNEL_ERROR") reject(error);
    });
  });
}

const SUPABASE_FILES = {
  "20240101000000_create_todos.sql": `
    create table public.todos (
      id uuid primary key default uuid_generate_v4(),
      user_id uuid not null default auth.uid() references auth.users,
      task text not null
    );
    alter table public.todos enable row level security;
    create policy "own" on todos using ((select auth.uid()) = user_id) with check ((select auth.uid()) = user_id);
    alter publication supabase_realtime add table todos;
    create function public.handle_new_user() returns trigger language plpgsql security definer set search_path = '' as $$
      begin
        insert into public.todos (user_id, task) values (new.id, 'Welcome');
        return new;
      end $$;
    create trigger on_auth_user_created after insert on auth.users for each row execute function public.handle_new_user();`,
  // "supabase db pull" writes such a file, with statements that refuse a transaction.
  "20240201000000_remote_schema.sql": `SET statement_timeout = 0;
    SELECT pg_catalog.set_config('search_path', '', false);
    CREATE EXTENSION IF NOT EXISTS "pg_net" WITH SCHEMA "extensions";
    begin;
    create index concurrently todos_of_user on public.todos (user_id);
    commit;
    insert into storage.buckets (id, name) values ('avatars', 'avatars');
    create policy "avatar" on storage.objects for select
      using (bucket_id = 'avatars' and (storage.foldername(name))[1] = (select auth.uid())::text);`,
  "20240301000000.sql": "create view todo_count with (security_invoker = true) as select count(*) from todos;",
  "20240401000000_channels.sql": `
    create policy "rooms are read" on "realtime"."messages" for select to authenticated using (realtime.topic() like 'room-%');
    create policy "rooms are written" on "realtime"."messages" for insert to authenticated
      with check (realtime.topic() like 'room-%');`,
};
const CLAIMS_MIGRATION = `
  create table public.members (user_id uuid primary key references auth.users (id), role text not null);
  grant select on public.members to supabase_auth_admin;
  create or replace function public.custom_access_token_hook(event jsonb) returns jsonb language sql stable as $$
    select jsonb_set(event, '{claims,user_role}', '"editor"')
  $$;
  grant usage on schema public to supabase_auth_admin;
  grant execute on function public.custom_access_token_hook to supabase_auth_admin;
  revoke execute on function public.custom_access_token_hook from authenticated, anon, public;`;

const BOB = "5f0c3b1e-95a8-4b53-8a5c-0f5d0e2a9b02";
const SEED = `insert into auth.users (id, email, encrypted_password) values ('${BOB}', 'bob@example.org', crypt('x', gen_salt('bf')));`;

describe("content-service init --template supabase", () => {
  test("turns a project's migrations and seed into committed migrations, which are served", async () => {
    await using project = await makeProjectFolder();
    const migrations = join(project.folder, "app/supabase/migrations");
    await mkdir(migrations, { recursive: true });
    for (const [name, sql] of Object.entries(SUPABASE_FILES)) await writeFile(join(migrations, name), sql);
    await writeFile(join(migrations, "notes.txt"), "no migration");
    await writeFile(join(project.folder, "app/supabase/seed.sql"), SEED);

    const created = await project.run("init", "--template", "supabase", "--from", "app");
    expect(created).toMatchObject({ code: 0, stderr: "" });
    expect(created.stdout).toContain('added the column "id" to "references auth.users"');
    for (const change of ["the extension pg_net", '"concurrently" from an index']) {
      expect(created.stdout).toContain(`20240201000000_remote_schema.sql: removed ${change}`);
    }
    const folder = join(project.folder, "db/migrations");
    const committed = await committedMigrations({ name: "project", folder });
    expect(committed.map(({ name }) => name)).toEqual([
      "000001-supabase.sql",
      "000002-create_todos.sql",
      "000003-remote_schema.sql",
      "000004-20240301000000.sql",
      "000005-channels.sql",
    ]);

    await writeFile(
      join(project.folder, "test/policies/todos.sql"),
      `--! as anon\nselect * from todos; --! expect no rows\n--! as user ${BOB}\nselect * from todos; --! expect 1 row\n`,
    );
    const tested = await project.run("test");
    expect(tested).toMatchObject({ code: 0 });
    expect(tested.stdout).toMatch(/^anon +2 +0\nauthenticated +3 +0$/m);

    await whileServing(project, async (address) => {
      expect(await project.run("migrate", "seed")).toMatchObject({ code: 0 });
      const keys = (await project.run("keys")).stdout.split("\n");
      const [anonKey, serviceKey] = [keys[1]!, keys[4]!];
      const response = await fetch(`${address}/rest/v1/todos?select=task`, { headers: { apikey: serviceKey } });
      expect(await response.json()).toEqual([{ task: "Welcome" }]);

      const client = createClient(address, anonKey, { auth: { persistSession: false, autoRefreshToken: false } });
      const credentials = { email: "eve@example.org", password: "Tangerine-Boat-7" };
      const { data, error } = await client.auth.signUp({ ...credentials, options: { data: { full_name: "Eve" } } });
      expect(error).toBeNull();
      const { sub, user_id: userId } = JSON.parse(
        Buffer.from(data.session!.access_token.split(".")[1]!, "base64url").toString(),
      );
      expect([sub, userId]).toEqual([data.user!.id, expect.stringMatching(/^\d+$/)]);
      // The trigger of the project has written it, and the policy shows it to its user alone.
      const { data: todos } = await client.from("todos").select("user_id, task");
      expect(todos).toEqual([{ user_id: data.user!.id, task: "Welcome" }]);
      expect((await client.from("todos").insert({ task: "Write" }).select("user_id")).data).toEqual([
        { user_id: data.user!.id },
      ]);
      expect((await client.from("todos").insert({ task: "Theirs", user_id: BOB })).error).toMatchObject({
        code: "42501",
      });
      const bob = await client.auth.signInWithPassword({ email: "bob@example.org", password: "x" });
      expect(bob.data.user).toMatchObject({ id: BOB });
      expect((await client.from("todos").select("task")).data).toEqual([{ task: "Welcome" }]);

      // Private channels are authorized by the session of the client.
      expect(await firstBroadcast(client, "room-1")).toEqual({ text: "Hello" });
      await expect(firstBroadcast(client, "office")).rejects.toThrow("office");
      await client.removeAllChannels();
    });
  });

  test("keeps the claims of the project's access token hook, which config.toml names or its documented name shows", async () => {
    const initialize = async (config: string | null, sql = CLAIMS_MIGRATION) => {
      const project = await makeProjectFolder();
      const supabase = join(project.folder, "app/supabase");
      await mkdir(join(supabase, "migrations"), { recursive: true });
      await writeFile(join(supabase, "migrations/20240101000000_claims.sql"), sql);
      if (config !== null) await writeFile(join(supabase, "config.toml"), config);
      const { stdout } = await project.run("init", "--template", "supabase", "--from", "app");
      const { "content-service": settings } = JSON.parse(await readFile(join(project.folder, "package.json"), "utf8"));
      return { project, stdout, hook: settings.CLAIMS_HOOK as string | undefined };
    };
    const section = (lines: string) =>
      `[auth]\nenabled = true\n[auth.hook.custom_access_token]\n${lines}\n[auth.sms]\n`;
    const named = await initialize(
      section('enabled = true\nuri = "pg-functions://postgres/hooks/add_claims"'),
      'create schema hooks; create function "hooks"."add_claims"(event jsonb) returns jsonb language sql as \'select event\';',
    );
    const disabled = await initialize(section("enabled = false"));
    const remote = await initialize(section('enabled = true\nuri = "https://example.org/hook"'), "select 1;");
    const found = await initialize(null);
    await using _stack = new AsyncDisposableStack();
    for (const { project } of [named, disabled, remote, found]) _stack.use(project);
    expect([named.hook, disabled.hook, remote.hook, found.hook]).toEqual([
      "hooks.add_claims",
      undefined,
      undefined,
      "public.custom_access_token_hook",
    ]);
    expect(disabled.stdout).toContain("to use it, set CLAIMS_HOOK=public.custom_access_token_hook");
    expect(remote.stdout).toContain("the hook https://example.org/hook is not called");
    expect(found.stdout).toContain("set CLAIMS_HOOK to public.custom_access_token_hook");
    await whileServing(found.project, async (address) => {
      const anonKey = (await found.project.run("keys")).stdout.split("\n")[1]!;
      const client = createClient(address, anonKey, { auth: { persistSession: false, autoRefreshToken: false } });
      const { data } = await client.auth.signUp({ email: "eve@example.org", password: "Tangerine-Boat-7" });
      const [, claims] = data.session!.access_token.split(".");
      expect(JSON.parse(Buffer.from(claims!, "base64url").toString())).toMatchObject({ user_role: "editor" });
    });
  });

  test("names what config.toml asks for and does not get", async () => {
    await using project = await makeProjectFolder();
    const supabase = join(project.folder, "app/supabase");
    await mkdir(join(supabase, "migrations"), { recursive: true });
    await writeFile(
      join(supabase, "config.toml"),
      `[auth]\nenable_anonymous_sign_ins = true
[auth.hook.before_user_created]\nenabled = true\nuri = "pg-functions://postgres/public/check_account"\n`,
    );
    const settings = { AUTH_ANONYMOUS_SIGN_INS: "false" };
    await writeFile(
      join(project.folder, "package.json"),
      JSON.stringify({ dependencies: { "content-service": "*" }, "content-service": settings }),
    );
    const { stdout } = await project.run("init", "--template", "supabase", "--from", "app");
    expect(stdout).toContain("asks for AUTH_ANONYMOUS_SIGN_INS=true, but it is set to false already");
    expect(stdout).toContain("the hook public.check_account is not called, because no migration creates it");
  });

  test("names the folder that has no migrations", async () => {
    await using project = await makeProjectFolder();
    const refused = await project.run("init", "api", "--template", "supabase", "--from", ".");
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("Name the folder of the Supabase project"),
    });
    expect(await readdir(project.folder)).toEqual(["node_modules"]);
  });
});

test("the example of docs/policy-tests.md has the documented result", async () => {
  const page = await readFile(join(REPOSITORY, "docs/policy-tests.md"), "utf8");
  const [, example, output] = /```sql\n(.*?)```\n\n```\n(.*?)```/s.exec(page)!;
  await using project = await makeProjectFolder(onDatabase);
  await project.run("init");
  await writeFile(join(project.folder, "test/policies/notes.sql"), example!);
  const { stdout } = await project.run("test");
  expect(stdout).toBe(output);
});

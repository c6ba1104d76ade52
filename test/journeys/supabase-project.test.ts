import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { createClient } from "@supabase/supabase-js";
import { expect, test } from "vitest";
import { startReceiver } from "../jobs/webhooks/receiver.ts";
import { makeProjectFolder, type ProjectFolder } from "../service/cli/project.ts";
import { until } from "../until.ts";

const CONFIG = `
  [api]
  schemas = ["public", "graphql_public", "pgmq_public"]
  [auth]
  minimum_password_length = 6
  [functions.hello]
  verify_jwt = true`;

const migration = (receiver: string) => `
  create extension if not exists pg_cron; create extension if not exists pg_net with schema extensions; create extension pgmq;
  create role reporting nologin; create schema private;
  grant usage on schema private to authenticated;
  create table public.profiles (id uuid primary key references auth.users on delete cascade, name text);
  create table public.ticks (at timestamptz primary key default clock_timestamp());
  alter table public.profiles enable row level security;
  alter table public.ticks enable row level security;
  create policy "ticks are public" on ticks for select using (true);
  create function private.is_self(id uuid) returns boolean language sql stable as $$ select id = (select auth.uid()) $$;
  create policy "own profile" on profiles to authenticated using (private.is_self(id));
  create function public.handle_new_user() returns trigger language plpgsql security definer set search_path = '' as $$
  begin
    insert into public.profiles values (new.id, new.raw_user_meta_data ->> 'name');
    perform net.http_post(url := '${receiver}', body := jsonb_build_object('new', new.email));
    return new;
  end $$;
  create trigger on_auth_user_created after insert on auth.users for each row execute function public.handle_new_user();
  select cron.schedule('tick', '1 second', 'insert into public.ticks default values');
  select pgmq.create('mails');
  grant select, insert, update, delete on pgmq.q_mails to authenticated;
  create function public.my_sessions() returns bigint language sql security definer stable as $$
    select count(*) from auth.sessions where user_id = auth.uid() $$;`;

async function whileServing({ folder, environment }: ProjectFolder, work: (address: string) => Promise<void>) {
  const service = spawn("npm", ["start"], { cwd: folder, env: environment, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(service, "exit");
  try {
    let address = "";
    for await (const line of createInterface({ input: service.stdout! })) {
      address ||= /^ +address +(\S+)/.exec(line)?.[1] ?? "";
      if (line.includes("ready in")) break;
    }
    await work(address);
  } finally {
    service.kill("SIGTERM");
    await ended;
  }
}

async function writeProject({ folder }: ProjectFolder, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, "app/supabase", path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
}

test("a project with jobs, requests, a queue and private helpers works for a user of supabase-js as it was", async () => {
  const receiver = await startReceiver();
  await using project = await makeProjectFolder();
  await writeProject(project, {
    "config.toml": CONFIG,
    "migrations/20240101000000_init.sql": migration(receiver.url),
    "seed.sql":
      "set session_replication_role = replica; insert into auth.users (id, email, encrypted_password) values (gen_random_uuid(), 'seed@example.org', crypt('secret', gen_salt('bf')));",
  });
  const created = await project.run("init", "--template", "supabase", "--from", "app");
  expect(created).toMatchObject({ code: 0, stderr: "" });
  expect(await project.npm("run", "migrate")).toMatchObject({ code: 0 });
  expect(await project.npm("run", "migrate", "--", "seed")).toMatchObject({ code: 0 });
  await whileServing(project, async (address) => {
    const anonKey = (await project.npm("run", "--silent", "keys", "--", "--anon")).stdout.trim();
    const client = createClient(address, anonKey, { auth: { persistSession: false, autoRefreshToken: false } });
    const { data, error } = await client.auth.signUp({
      email: "eve@example.org",
      password: "secret",
      options: { data: { name: "Eve" } },
    });
    expect(error).toBeNull();
    expect((await client.from("profiles").select("name")).data).toEqual([{ name: "Eve" }]);
    expect((await client.rpc("my_sessions")).data).toBe(1);
    await until(() => receiver.requests.length > 0);
    expect(receiver.requests.map(({ body }) => JSON.parse(body))).toEqual([{ new: data.user!.email }]);

    const queue = client.schema("pgmq_public" as "public");
    expect(await queue.rpc("send", { queue_name: "mails", message: { to: "x" } })).toMatchObject({ data: [1] });
    const read = await queue.rpc("read", { queue_name: "mails", sleep_seconds: 0, n: 1 });
    expect(read.data).toMatchObject([{ msg_id: 1, message: { to: "x" } }]);
    const graphql = await client.schema("graphql_public" as "public").rpc("graphql", { query: "{ a }" });
    expect(graphql.data).toMatchObject({ errors: [{ message: expect.stringContaining("not enabled") }] });

    await until(async () => (await client.from("ticks").select("at")).data!.length > 1);
    const seeded = await client.auth.signInWithPassword({ email: "seed@example.org", password: "secret" });
    expect(seeded.error).toBeNull();
  });
  await receiver.close();
});

test("what a project needs and nobody creates is listed at once, before anything is applied", async () => {
  await using project = await makeProjectFolder();
  await writeProject(project, {
    "migrations/20240101000000_a.sql":
      "create extension postgis;\ncreate table a (id int);\ncreate table places (g geography);",
    "migrations/20240102000000_b.sql": "alter table missing add column b int;",
    "seed.sql": "insert into a values (1);\ninsert into nothing values (1);",
  });
  expect(await project.run("init", "--template", "supabase", "--from", "app")).toMatchObject({ code: 0 });
  const refused = await project.npm("run", "migrate");
  expect(refused.code).toBe(1);
  const faults = [
    /4 statements of the imported project cannot run\. Nothing was changed\./,
    /000002-a\.sql:\d+: extension "postgis" is not available/,
    /000002-a\.sql:\d+: type "geography" does not exist/,
    /000003-b\.sql:\d+: relation "missing" does not exist/,
    /seed\.sql:2: relation "nothing" does not exist/,
  ];
  for (const fault of faults) expect(refused.stderr).toMatch(fault);
});

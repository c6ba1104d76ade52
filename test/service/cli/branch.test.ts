import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { archiveLines } from "../../../cluster/archive/write-archive.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase, urlOf, useDatabase } from "../../database.ts";
import { REPOSITORY } from "../../repository.ts";
import { serve } from "../../serve.ts";
import { makeSupabaseProject } from "../../supabase-template.ts";
import { runCommand } from "./run-command.ts";

const database = useDatabase({ template: "platform" });
beforeAll(async () => {
  await rows(
    database.name,
    `create table public.notes (id int primary key, text text); insert into public.notes values (1, 'first');
     grant select on public.notes to anon;
     create function public.nightly() returns void language sql as 'select';
     grant execute on function public.nightly to service_role;
     insert into api.schedules (name, cron, function, role) values ('hourly', '@hourly', 'public.nightly', 'service_role');
     alter database ${database.name} set "app.note" = 'kept'`,
  );
});
afterAll(async () => {
  for (const name of ["likes", "empty", "busy", "tenth"])
    await rows("postgres", `drop database if exists ${database.name}_branch_${name} with (force)`);
});

function rows(name: string, sql: string): Promise<Record<string, unknown>[]> {
  return withClient(urlOf("postgres", name), async (client) => (await client.query(sql)).rows ?? []);
}

/** The rows of all tables, as texts. */
async function textsOf(name: string): Promise<readonly string[]> {
  const tables = await rows(
    name,
    "select oid::regclass::text as name from pg_class where relkind in ('r', 'm') and relnamespace::regnamespace::text !~ '^(pg_|information_schema)'",
  );
  const texts = await Promise.all(tables.map((table) => rows(name, `select t::text as text from ${table.name} t`)));
  return texts.flat().map(({ text }) => String(text));
}

const branch = (...words: string[]) =>
  runCommand("branch", words, database, { ROOT_DATABASE_URL: urlOf("postgres", "postgres") });

test("is a copy of the database that is served on its own", async () => {
  const created = await branch("create", "likes");
  expect([created.stdout, created.stderr]).toEqual([
    expect.stringMatching(/^Created the branch likes \(copied( by the file system)?\)/),
    "",
  ]);
  const copy = `${database.name}_branch_likes`;
  expect(await rows(copy, "select is_enabled from api.schedules")).toEqual([{ is_enabled: false }]);
  expect(await rows(copy, "select current_setting('app.note') as note")).toEqual([{ note: "kept" }]);
  expect(
    await rows(copy, "select has_database_privilege('authenticator', current_database(), 'connect') as may"),
  ).toEqual(
    await rows(database.name, "select has_database_privilege('authenticator', current_database(), 'connect') as may"),
  );

  const service = await serve(database, {
    DATABASE_BRANCH: "likes",
    BASE_SCHEMA: "platform",
    REST_REQUIRE_APIKEY: "false",
  });
  try {
    await rows(copy, "insert into public.notes values (2, 'second')");
    const response = await fetch(`${service.url}/rest/v1/notes?select=id&order=id`);
    expect(await response.json()).toEqual([{ id: 1 }, { id: 2 }]);
    expect((await branch("drop", "likes")).stderr).toContain('The branch "likes" is used by');
  } finally {
    await service.stop();
  }
  expect(await rows(database.name, "select id from public.notes")).toEqual([{ id: 1 }]);
});

test("can be without rows, but knows the applied migrations", async () => {
  expect((await branch("create", "empty", "--schema-only")).stdout).toContain("(without rows)");
  expect(await rows(`${database.name}_branch_empty`, "select * from public.notes")).toEqual([]);
  const status = await runCommand("migrate", ["status"], database, {
    DATABASE_BRANCH: "empty",
    BASE_SCHEMA: "platform",
  });
  expect(status.stdout).toMatch(/^All \d+ migrations are applied/);
});

test("is read by a session while others use the database", async () => {
  await withClient(database.ownerUrl, async (client) => {
    await client.query("select 1");
    expect((await branch("create", "busy")).stdout).toContain("(read)");
  });
  const copy = `${database.name}_branch_busy`;
  expect(await rows(copy, "select * from public.notes")).toEqual([{ id: 1, text: "first" }]);
  const privileges =
    "select has_database_privilege('authenticator', current_database(), 'connect') as may, has_database_privilege('public', current_database(), 'create') as create";
  expect(await rows(copy, privileges)).toEqual(await rows(database.name, privileges));
  expect(await rows(copy, privileges)).toEqual([{ may: true, create: false }]);
});

test("can have a sample of the rows, while others use the database", async () => {
  await rows(
    database.name,
    `create table public.likes (id int primary key, account bigint references auth.users);
     insert into auth.users (user_id, username) select n, 'user' || n from generate_series(1, 50) n;
     insert into public.likes select n, case when n % 2 = 0 then 7 end from generate_series(1, 3000) n`,
  );
  const copy = `${database.name}_branch_tenth`;
  await withClient(database.ownerUrl, async (client) => {
    await client.query("select 1");
    const { stdout, stderr } = await branch("create", "tenth", "--sample", "7%", "--seed", "5");
    expect([stdout, stderr]).toEqual([expect.stringContaining("(sampled, 7 %, seed 5)"), ""]);
  });
  const [{ likes } = {}] = await rows(copy, "select count(*)::int as likes from public.likes");
  expect(likes).toBeGreaterThan(140);
  expect(likes).toBeLessThan(290);
  expect(await rows(copy, "select username from auth.users")).toEqual([{ username: "user7" }]);
  const service = await serve(database, {
    DATABASE_BRANCH: "tenth",
    BASE_SCHEMA: "platform",
    REST_REQUIRE_APIKEY: "false",
  });
  try {
    const response = await fetch(`${service.url}/rest/v1/notes`);
    expect(await response.json()).toEqual([{ id: 1, text: "first" }]);
  } finally {
    await service.stop();
  }
  expect((await branch("create", "tenth2", "--sample", "0%")).code).toBe(2);
  expect((await branch("create", "tenth2", "--seed", "1")).code).toBe(2);
  expect((await branch("create", "tenth2", "--sample", "1%", "--schema-only")).code).toBe(2);
});

test("can be anonymized: no personal value is left, and nobody can sign in", async () => {
  const content = await cloneDatabase("content");
  const copy = `${content.name}_branch_safe`;
  const settings = { ROOT_DATABASE_URL: urlOf("postgres", "postgres") };
  try {
    const original = await serve(content, {});
    const signIn = (service: { readonly url: string }, username: string) =>
      fetch(`${service.url}/auth/login`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ username, password: "Correct horse 77 battery!" }),
      });
    const words = [
      "add",
      "--email",
      "ada.original@example.org",
      "--name",
      "Ada Original",
      "--password",
      "Correct horse 77 battery!",
    ];
    try {
      expect(await runCommand("user", words, content)).toMatchObject({ stderr: "", code: 0 });
      expect((await signIn(original, "ada.original@example.org")).status).toBe(200);
    } finally {
      await original.stop();
    }
    expect((await rows(content.name, "select * from auth.audit_log")).length).toBeGreaterThan(0);
    await rows(
      content.name,
      `update public.users set age = 77;
       insert into api.webhooks (name, table_name, url, role) values ('receiver', 'articles', 'https://original.example', 'service_role');
       create function public.nightly(note text) returns void language sql as 'select';
       grant execute on function public.nightly to service_role;
       insert into api.schedules (name, cron, function, role, arguments)
         values ('hourly', '@hourly', 'public.nightly', 'service_role', '{"note": "original"}');
       insert into auth.providers (name, kind, issuer, client_id, client_secret)
         values ('company', 'oidc', 'https://id.example.org', 'us', 'original secret')`,
    );
    const created = await runCommand("branch", ["create", "safe", "--anonymize"], content, settings);
    expect([created.stdout, created.stderr]).toEqual([expect.stringContaining("(read, anonymized)"), ""]);

    const texts = await textsOf(copy);
    expect(texts.length).toBeGreaterThan(30);
    expect(texts.filter((text) => /original|127\.0\.0\.1|\$argon2/i.test(text))).toEqual([]);
    const [account] = await rows(
      copy,
      "select u.email, u.age, a.username, a.password_hash from public.users u join auth.users a on user_id = u.id",
    );
    expect(account).toEqual({
      email: expect.stringMatching(/^[0-9a-f]{20}@example\.invalid$/),
      age: null,
      username: account!.email,
      password_hash: null,
    });

    const service = await serve(content, { DATABASE_BRANCH: "safe" });
    try {
      expect((await fetch(`${service.url}/api/v1/articles`)).status).toBe(200);
      for (const name of ["ada.original@example.org", String(account!.email)])
        expect((await signIn(service, name)).status).toBe(401);
    } finally {
      await service.stop();
    }

    await rows(content.name, "comment on column public.users.age is '@anonymize hash'");
    const refused = await runCommand("branch", ["create", "other", "--anonymize"], content, settings);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('"public"."users".age: "hash" is for text'),
    ]);
    expect(await rows("postgres", `select from pg_database where datname = '${content.name}_branch_other'`)).toEqual(
      [],
    );
  } finally {
    await rows("postgres", `drop database if exists ${copy} with (force)`);
    await content.drop();
  }
});

test("is not used before it is complete", async () => {
  const note = (text: string) =>
    rows(
      "postgres",
      `comment on database ${database.name}_branch_empty is 'A branch of the database ${database.name}.${text}'`,
    );
  await note('\n{"isIncomplete": true}');
  expect((await branch("list")).stdout).toMatch(/^empty .* interrupted$/m);
  const settings = { DATABASE_BRANCH: "empty", BASE_SCHEMA: "platform" };
  const message = 'The branch "empty" is not complete. See npm run branch -- list.';
  expect((await runCommand("migrate", ["status"], database, settings)).stderr).toContain(message);
  await expect(serve(database, settings)).rejects.toThrow(message);
  await note("");
  expect((await runCommand("migrate", ["status"], database, settings)).code).toBe(0);
});

test("is no branch any more where a backup of it is restored", async () => {
  const objects: string[] = [];
  await withClient(urlOf("postgres", `${database.name}_branch_empty`), async (client) => {
    for await (const line of archiveLines(client, { selectRows: () => [] })) {
      if (typeof line === "object" && "statement" in line) objects.push(line.object);
    }
  });
  expect(objects).toContain("settings of the database");
  expect(objects).not.toContain("comment of the database");
});

test("is listed and dropped, and no other database is", async () => {
  expect((await branch("list")).stdout).toMatch(
    /^branch +size +sessions +state\nbusy +\d+ MiB +0 +complete\nempty .*\nlikes .*\ntenth /,
  );
  expect(await branch("drop", "busy")).toMatchObject({ stdout: "Dropped the branch busy.\n", code: 0 });
  await rows("postgres", `create database ${database.name}_branch_busy`);
  expect(await branch("drop", "busy")).toMatchObject({
    stderr: expect.stringContaining('There is no branch "busy"'),
    code: 1,
  });
  expect((await branch("create", "Not a name")).code).toBe(1);
  expect((await branch("create")).code).toBe(2);
  expect((await branch("create", "likes")).stderr).toContain("already");
});

test("of a Supabase project that is anonymized has no secret, request, message or command of the project", async () => {
  const { database: project } = await makeSupabaseProject({
    "migrations/20240101000000_secrets.sql": `
      select vault.create_secret('original of the vault', 'original name');
      select cron.schedule('original', '0 0 1 1 *', 'select $$original$$');
      insert into cron.job_run_details (jobid, command) values (1, 'original');
      insert into net.http_request_queue (method, url, timeout_milliseconds) values ('GET', 'http://original.example/', 1);
      insert into net._http_response (id, content) values (1, 'original');
      insert into supabase_functions.hooks (hook_table_id, hook_name) values (1, 'original');
      select pgmq.create('orders');
      select pgmq.send('orders', '{"to": "original"}');
      select pgmq.archive('orders', pgmq.send('orders', '{"to": "original"}'));
      select realtime.send('{"to": "original"}', 'event', 'original', true);`,
  });
  const copy = `${project.name}_branch_safe`;
  try {
    const ofProject = async (name: string) =>
      (await textsOf(name)).filter((text) => text.includes("original") && !text.includes("create_secret"));
    expect((await ofProject(project.name)).length).toBeGreaterThanOrEqual(9);
    // A project that was imported earlier has no tags before the migration.
    await rows(project.name, "comment on table vault.secrets is 'Secrets.'; comment on table pgmq.q_orders is null");
    const [migration] = globSync(join(REPOSITORY, "db/platform/committed/*-tags-of-supabase-s-tables.sql"));
    await rows(project.name, readFileSync(migration!, "utf8"));
    const settings = { ROOT_DATABASE_URL: urlOf("postgres", "postgres"), BASE_SCHEMA: "platform" };
    const created = await runCommand("branch", ["create", "safe", "--anonymize"], project, settings);
    expect([created.stdout, created.stderr]).toEqual([expect.stringContaining("(read, anonymized)"), ""]);
    expect(await ofProject(copy)).toEqual([]);
    expect(await rows(copy, "select from vault.secrets")).toEqual([]);
    expect(await rows(copy, "select queue_name from pgmq.meta")).toEqual([{ queue_name: "orders" }]);
  } finally {
    await rows("postgres", `drop database if exists ${copy} with (force)`);
    await project.drop();
  }
});

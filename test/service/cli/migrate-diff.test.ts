import { randomUUID } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runMigrations } from "../../../migrate/migrate.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { urlOf } from "../../database.ts";
import { aroundTests, useFixture } from "../../fixture.ts";
import { ownHistories } from "../../migrate/own-histories.ts";
import { serve } from "../../serve.ts";
import { runCommand } from "./run-command.ts";

const snapshot = join(tmpdir(), `snapshot-${process.pid}.json`);

/** A login of its own: `authenticator` may use roles that other tests create, in the same cluster, between two reads. */
const LOGIN = `diff_${randomUUID().slice(0, 8)}`;
const asSuperuser = (sql: string) => withClient(urlOf("postgres", "postgres"), (client) => client.query(sql));
aroundTests(
  async () => {
    await asSuperuser(`create role ${LOGIN} login noinherit; grant anon, authenticated, service_role to ${LOGIN}`);
  },
  async () => {
    await asSuperuser(`drop role ${LOGIN}`);
  },
);

const own = useFixture(() => ownHistories(["platform"], { isMigrated: true }));
beforeAll(async () => {
  await own.add(
    "project",
    "notes",
    "create table public.notes (id int primary key, text text); grant select on public.notes to anon",
  );
  await runMigrations({ name: "migrate" }, own.settings);
});
afterAll(() => rm(snapshot, { force: true }));

function diff(...words: string[]) {
  const { url, shadowUrl, rootUrl } = own.settings;
  const settings = {
    BASE_SCHEMA: "platform",
    MIGRATIONS_DIR: own.history("project").folder,
    SHADOW_DATABASE_URL: shadowUrl,
    ROOT_DATABASE_URL: rootUrl,
  };
  const requestUrl = own.requestUrl.replace("authenticator", LOGIN);
  return runCommand("migrate", ["diff", ...words], { url: requestUrl, ownerUrl: url }, settings);
}

test("compares the database with its pending migrations, and leaves it as it is", async () => {
  expect(await diff("--save", snapshot)).toMatchObject({ stdout: `wrote ${snapshot}\n`, code: 0 });

  await own.add("project", "likes", "alter table public.notes add column likes int");
  const added = await diff("--fail-on", "breaking");
  expect(added.stdout).toContain("- **compatible** `public.notes.likes`: The column is new.");
  expect(added.code).toBe(0);

  await own.write("project", "0010-drop.sql", "alter table public.notes drop column text");
  const dropped = await diff("--fail-on", "breaking");
  expect(dropped.stdout).toContain("- **breaking** `FIELD_REMOVED`: Note.text was removed.");
  expect(dropped.code).toBe(3);

  expect(await own.rows("select text from public.notes")).toEqual([]);
  expect(await own.shadowExists()).toBe(false);
});

test("compares with a snapshot in place of the database, as JSON", async () => {
  await runMigrations({ name: "current" }, own.settings);
  const unchanged = await diff("--fail-on", "dangerous");
  expect([unchanged.stdout, unchanged.code]).toEqual(["No interface changes.\n", 0]);
  const { stdout, code } = await diff("--against", snapshot, "--fail-on", "breaking", "--json");
  expect(code).toBe(3);
  expect(JSON.parse(stdout)).toContainEqual({
    surface: "types",
    level: "breaking",
    object: "Database.public.Tables.notes.Row.text",
    message: "The member is no longer there.",
  });
  await writeFile(snapshot, (await readFile(snapshot, "utf8")).replace('"format":1', '"format":0'));
  expect(await diff("--against", snapshot)).toMatchObject({
    stderr: expect.stringContaining("is not a snapshot"),
    code: 1,
  });
});

test("says which recorded requests a breaking change concerns", async () => {
  await own.write("project", "0010-drop.sql", "");
  await withClient(own.settings.url, (client) => client.query("alter table public.notes add column title text"));
  const service = await serve(
    { url: own.requestUrl, ownerUrl: own.settings.url },
    { BASE_SCHEMA: "platform", MIGRATIONS_DIR: own.history("project").folder, REST_REQUIRE_APIKEY: "false" },
  );
  expect((await fetch(`${service.url}/rest/v1/notes?select=title&id=gt.0`)).status).toBe(200);
  await service.stop();

  await own.write("project", "0010-drop.sql", "alter table public.notes drop column title");
  const used = await diff("--fail-on", "used");
  expect(used.stdout).toContain(
    "`GET /rest/v1/notes?select=title&id=gt` as anon, 1 in the last hour: refused: column notes.title does not exist",
  );
  expect(used.stdout).toContain("No recorded request uses it.");
  expect(used.code).toBe(3);

  await own.write("project", "0010-drop.sql", "alter table public.notes drop constraint notes_pkey");
  const unused = await diff("--fail-on", "used", "--json");
  const breaking = JSON.parse(unused.stdout).filter(({ level }: { level: string }) => level === "breaking");
  expect(breaking).not.toEqual([]);
  expect(breaking.flatMap(({ requests }: { requests: unknown[] }) => requests)).toEqual([]);
  expect(unused.code).toBe(0);

  const others = `select content_service.record_requests(array['{"interface": "graphql", "others": true}']::jsonb[], '{4}')`;
  await withClient(own.settings.url, (client) => client.query(others));
  const unknown = await diff("--fail-on", "used");
  expect(unknown.stdout).toContain(
    "`requests of the graphql interface without a shape` as any role, 4 in the last hour: it may respond otherwise",
  );
  expect(unknown.code).toBe(3);

  const { url, shadowUrl, rootUrl } = own.settings;
  const rehearsed = await runCommand(
    "migrate",
    ["rehearse", "--json"],
    { url: own.requestUrl, ownerUrl: url },
    {
      BASE_SCHEMA: "platform",
      MIGRATIONS_DIR: own.history("project").folder,
      SHADOW_DATABASE_URL: shadowUrl,
      ROOT_DATABASE_URL: rootUrl,
    },
  );
  expect(JSON.parse(rehearsed.stdout).at(-1).heldRequests).toBeGreaterThanOrEqual(0);
});

test("refuses options that contradict each other", async () => {
  expect((await diff("--save", snapshot, "--fail-on", "breaking")).code).toBe(2);
  expect((await diff("--fail-on", "anything")).code).toBe(2);
});

import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type MigrateSettings, type MigrationHistory, releaseHistories } from "../../migrate/committed-migrations.ts";
import { bringUpToDate, runMigrations } from "../../migrate/migrate.ts";
import { readMigrationState } from "../../migrate/migration-state.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { cloneDatabase, type DatabaseTemplate, type TestDatabase, urlOf } from "../database.ts";

let database: TestDatabase;
let client: pg.Client;
let folder: string;
/** A copy of the release's, and an empty one of a project. */
let histories: MigrationHistory[];
beforeEach(async () => {
  await haveDatabase("empty");
  folder = await mkdtemp(join(tmpdir(), "migrations-"));
  for (const { name, folder: released } of releaseHistories()) {
    await cp(released, join(folder, name), { recursive: true });
  }
  histories = (["platform", "content", "project"] as const).map((name) => ({ name, folder: join(folder, name) }));
});
afterEach(async () => {
  await client.end();
  await database.drop();
  await rm(folder, { recursive: true });
});

async function haveDatabase(template: DatabaseTemplate): Promise<void> {
  database = await cloneDatabase(template);
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
}

/** Makes a database to which all migrations have been applied before: few tests are about applying them. */
async function haveMigrations(): Promise<void> {
  await client.end();
  await database.drop();
  await haveDatabase("content");
}

function settings(): MigrateSettings {
  const shadow = `${database.name}_shadow`;
  return {
    url: database.ownerUrl,
    shadowUrl: urlOf("postgres", shadow),
    rootUrl: urlOf("postgres", "postgres"),
    histories,
  };
}

/** The folder without its last migrations, as an older release has it. */
async function older(count: number): Promise<string[]> {
  const committed = join(folder, "content/committed");
  const names = (await readdir(committed)).sort().slice(-count);
  for (const name of names) await rm(join(committed, name));
  return names.map((name) => `content/${name}`);
}

describe("migrationState", () => {
  test("a database without the service's migrations is foreign, a migrated one is current", async () => {
    expect(await readMigrationState(client, histories)).toEqual({ kind: "foreign" });
    await runMigrations({ name: "migrate" }, settings());
    const committed = await Promise.all(
      ["platform", "content"].map((name) => readdir(join(folder, name, "committed"))),
    );
    const applied = committed.flat().length;
    expect(await readMigrationState(client, histories)).toEqual({ kind: "current", applied });
  });

  test("a login that may not read the record gets an error that names OWNER_DATABASE_URL", async () => {
    await haveMigrations();
    const looking = withClient(database.url, (login) => readMigrationState(login, histories));
    await expect(looking).rejects.toThrow("Set OWNER_DATABASE_URL");
  });

  test("a database of an older release is behind, by name", async () => {
    const newest = await older(2);
    await runMigrations({ name: "migrate" }, settings());
    const state = await readMigrationState(client, releaseHistories());
    expect(state).toMatchObject({ kind: "behind", missing: newest });
  });

  test("a database of a newer release is ahead, by name", async () => {
    await haveMigrations();
    const [newest] = await older(1);
    expect(await readMigrationState(client, histories)).toEqual({
      kind: "ahead",
      unknown: [`${newest!.slice(0, 14)}.sql`],
    });
  });
});

describe("bringUpToDate", () => {
  test("migrates the service's own database once, and reports it", async () => {
    const steps: string[] = [];
    const options = {
      settings: settings(),
      requestUrl: database.url,
      isOwnDatabase: true,
      report: (step: string) => steps.push(step),
    };
    expect(await bringUpToDate(options)).toMatchObject({ kind: "current" });
    expect(await bringUpToDate(options)).toMatchObject({ kind: "current" });
    expect(steps).toEqual(["migrating the database"]);
  });

  test("rejects a foreign database that is partially migrated, and names the pending migrations", async () => {
    const newest = await older(1);
    await runMigrations({ name: "migrate" }, settings());
    const newer = { ...settings(), histories: releaseHistories() };
    const attempt = bringUpToDate({
      settings: newer,
      requestUrl: database.url,
      isOwnDatabase: false,
      report: () => {},
    });
    const refusal: Error = await attempt.catch((error) => error);
    expect(refusal.message).toContain("half migrated");
    expect(refusal.message).toContain(newest[0]!);
  });

  test("leaves a foreign database as it is", async () => {
    const steps: string[] = [];
    expect(
      await bringUpToDate({
        settings: settings(),
        requestUrl: database.url,
        isOwnDatabase: false,
        report: (step) => steps.push(step),
      }),
    ).toEqual({
      kind: "foreign",
    });
    expect(steps[0]).toContain("served as it is");
    const { rows } = await client.query("select to_regnamespace('graphile_migrate') as found");
    expect(rows).toEqual([{ found: null }]);
  });
});

describe("bringUpToDate, with a read-only database", () => {
  const attempt = () =>
    bringUpToDate({ settings: settings(), requestUrl: database.url, isOwnDatabase: false, report: () => {} });

  test("rejects the service's own, and says what to disable", async () => {
    await haveMigrations();
    await client.query(`alter database ${database.name} set default_transaction_read_only = on`);
    await expect(attempt()).rejects.toThrow("default_transaction_read_only is on");
  });

  test("rejects the service's own if only the login role may not write", async () => {
    await haveMigrations();
    await client.query(`alter role authenticator in database ${database.name} set default_transaction_read_only = on`);
    await expect(attempt()).rejects.toThrow('no writes from the login "authenticator"');
  });

  test("leaves a foreign one as it is", async () => {
    await client.query(`alter database ${database.name} set default_transaction_read_only = on`);
    expect(await attempt()).toEqual({ kind: "foreign" });
  });
});

describe("bringUpToDate, with standard_conforming_strings off", () => {
  const attempt = () =>
    bringUpToDate({ settings: settings(), requestUrl: database.url, isOwnDatabase: false, report: () => {} });

  test.each(["postgres", "authenticator"])("refuses the login %s by its name", async (login) => {
    await client.query(`alter role ${login} in database ${database.name} set standard_conforming_strings = off`);
    await expect(attempt()).rejects.toThrow(`standard_conforming_strings is off for the login "${login}"`);
  });

  test("migrates nothing", async () => {
    await client.query(`alter database ${database.name} set standard_conforming_strings = off`);
    const migrating = runMigrations({ name: "migrate" }, settings());
    await expect(migrating).rejects.toThrow("standard_conforming_strings is off");
    expect(await readMigrationState(client, histories)).toEqual({ kind: "foreign" });
  });
});

describe("a server that is too old", () => {
  /** The functions of Postgres are the database's own: those of this one say that it is of Postgres 13. */
  beforeEach(async () => {
    await client.query(`
      alter function pg_catalog.current_setting(text) rename to own_current_setting;
      create function pg_catalog.current_setting(name text) returns text language sql stable as $$
        select case name when 'server_version_num' then '130023' when 'server_version' then '13.23'
          else pg_catalog.own_current_setting(name) end
      $$`);
  });

  test("is not migrated", async () => {
    await expect(runMigrations({ name: "migrate" }, settings())).rejects.toThrow(
      "of Postgres 13.23, and 14 is the oldest",
    );
    expect(await readMigrationState(client, histories)).toEqual({ kind: "foreign" });
  });

  test("is not served either, with any owner", async () => {
    const attempt = bringUpToDate({
      settings: settings(),
      requestUrl: database.url,
      isOwnDatabase: false,
      report: () => {},
    });
    await expect(attempt).rejects.toThrow("14 is the oldest that can be served");
  });
});

test("a server of another engine is neither migrated nor served", async () => {
  await client.query(`
    alter function pg_catalog.version() rename to own_version;
    create function pg_catalog.version() returns text language sql as $$ select 'CockroachDB CCL v26.2.0'::text $$`);
  await expect(runMigrations({ name: "migrate" }, settings())).rejects.toThrow(
    "of CockroachDB, which cannot be served",
  );
  expect(await readMigrationState(client, histories)).toEqual({ kind: "foreign" });
  const serving = bringUpToDate({
    settings: settings(),
    requestUrl: database.url,
    isOwnDatabase: false,
    report: () => {},
  });
  await expect(serving).rejects.toThrow("of CockroachDB, which cannot be served");
});

describe("a committed migration that was changed", () => {
  const changeFirst = async (change: (text: string) => string) => {
    const [first] = (await readdir(join(folder, "platform/committed"))).sort();
    const file = join(folder, "platform/committed", first!);
    await writeFile(file, change(await readFile(file, "utf8")));
    return first!;
  };

  test.each([
    ["a line more", (text: string) => `${text}create table public.more ();\n`],
    ["other line ends", (text: string) => text.replaceAll("\n", "\r\n")],
  ])("is named by every command that reads migrations: %s", async (_, change) => {
    await haveMigrations();
    const name = await changeFirst(change);
    const refusal = `${name} was changed after it was committed`;
    await expect(readMigrationState(client, histories)).rejects.toThrow(refusal);
    await expect(runMigrations({ name: "migrate" }, settings())).rejects.toThrow(refusal);
  });

  test("passes where its header allows it", async () => {
    await haveMigrations();
    await changeFirst((text) => text.replace("\n\n", "\n--! AllowInvalidHash\n\n-- As it should have been.\n"));
    expect(await readMigrationState(client, histories)).toMatchObject({ kind: "current" });
  });
});

describe("runMigrations", () => {
  test("refuses two migrations with the same number, names both, and changes nothing", async () => {
    const newest = (await readdir(join(folder, "content/committed"))).sort().at(-1)!;
    const twin = `${newest.slice(0, 6)}-zzz.sql`;
    await cp(join(folder, "content/committed", newest), join(folder, "content/committed", twin));
    const attempt = runMigrations({ name: "migrate" }, settings());
    await expect(attempt).rejects.toThrow(`${newest} and ${twin} of history "content" have the same number`);
    const { rows } = await client.query("select to_regnamespace('graphile_migrate') as found");
    expect(rows).toEqual([{ found: null }]);
  });

  test.each(["LATIN1", "SQL_ASCII"])("refuses a database in %s before any change", async (encoding) => {
    const name = `${database.name}_${encoding.toLowerCase()}`;
    const url = urlOf("postgres", name);
    await client.query(`create database ${name} template template0 encoding '${encoding}' locale 'C'`);
    try {
      const attempt = runMigrations({ name: "migrate" }, { ...settings(), url });
      await expect(attempt).rejects.toThrow(`encoding is ${encoding}, and the migrations want UTF8`);
      expect(await withClient(url, (login) => readMigrationState(login, histories))).toEqual({ kind: "foreign" });
    } finally {
      await client.query(`drop database ${name} with (force)`);
    }
  });

  test("gateways that start together migrate once", async () => {
    await Promise.all([1, 2, 3].map(() => runMigrations({ name: "migrate" }, settings())));
    expect(await readMigrationState(client, releaseHistories())).toMatchObject({ kind: "current" });
  });

  test("reset creates the database again", async () => {
    await haveMigrations();
    await client.query("create table public.mine ()");
    await client.end();
    await runMigrations({ name: "reset" }, settings());
    client = new pg.Client({ connectionString: database.ownerUrl });
    await client.connect();
    expect(await readMigrationState(client, releaseHistories())).toMatchObject({ kind: "current" });
    const { rows } = await client.query("select to_regclass('public.mine') as mine");
    expect(rows).toEqual([{ mine: null }]);
  });

  test("no connection string is on a command line while it runs", async () => {
    const { execFileSync } = await import("node:child_process");
    const running = runMigrations({ name: "migrate" }, settings());
    let seen = "";
    const watch = setInterval(() => (seen += execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })), 100);
    await running;
    clearInterval(watch);
    expect(seen).toContain("runner.ts");
    expect(seen).not.toContain(`${database.name}?`);
  });
});

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual, promisify } from "node:util";
import jwt from "jsonwebtoken";
import pg from "pg";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { writeMigration } from "../migrate/committed-migrations.ts";
import { cloneDatabase, urlOf } from "./database.ts";
import { useFolder } from "./fixture.ts";
import { postmasterOf } from "./postmaster.ts";
import { processesNaming } from "./processes-naming.ts";
import { type Program, type RunOptions, run, startProgram, startReady, stopped } from "./program.ts";
import { REPOSITORY } from "./repository.ts";
import { readRooms } from "./rooms.ts";
import { SECRET } from "./secret.ts";
import { until } from "./until.ts";

/** Where a service has run once. */
let folder: string;
const programs: Program[] = [];
const before = useFolder("server-before-", 0o755);
beforeAll(async () => stopped(await startReady({ DATA_DIR: join(before, "data") }), "SIGTERM"));
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "server-"));
  await chmod(folder, 0o755);
});
afterEach(async () => {
  for (const program of programs.splice(0)) await program.kill();
  await until(async () => (await processesNaming(folder)).length === 0);
  await rm(folder, { recursive: true, force: true });
});

function settingsOf(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { DATA_DIR: join(folder, "data"), ...environment };
}

/** As if the service had been here before: a first start makes a cluster and migrates it, which few tests are about. */
async function haveData(name = "data"): Promise<void> {
  await promisify(execFile)("cp", ["-a", join(before, "data"), join(folder, name)]);
}

/** What a command printed, and how it ended. */
async function command(
  name: string,
  args: readonly string[] = [],
  environment: NodeJS.ProcessEnv = {},
  root = REPOSITORY,
) {
  const { child, streams } = run(`service/cli/${name}.ts`, settingsOf(environment), { args, root });
  const [code] = await once(child, "close");
  return { code, ...streams };
}

async function serve(environment: NodeJS.ProcessEnv = {}, options: RunOptions = {}): Promise<Program> {
  const program = await startProgram(settingsOf(environment), options);
  programs.push(program);
  return program;
}

async function health(url: string): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(`${url}/health`);
  return { status: answer.status, body: await answer.json() };
}

async function ask(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

describe("npm start", () => {
  test("prints its state and its URLs, and no secret", async () => {
    const { url, printed, logged } = await serve();
    expect(await health(url)).toEqual({ status: 200, body: { status: "ok" } });
    expect(printed()).toMatch(/creating the database cluster.+migrating the database.+ready in \d+\.\d s/s);
    expect(printed()).toContain(join(folder, "data"));
    expect(printed()).toContain("npm run keys");
    expect(printed()).toContain(`studio     ${url}/studio`);
    await command("keys");
    const { jwtSecret, databasePassword } = JSON.parse(await readFile(join(folder, "data/secrets.json"), "utf8"));
    for (const secret of [jwtSecret, databasePassword]) expect(printed() + logged()).not.toContain(secret);
  });

  test("the second start does not repeat earlier messages, and keeps keys and data", async () => {
    const first = await serve();
    const keys = (await command("keys")).printed;
    const databaseUrl = (await command("database-url")).printed.trim();
    await ask(databaseUrl, "insert into users (name, email) values ('Ada', 'ada@example.org')");
    expect(await stopped(first, "SIGTERM")).toBe(0);
    const second = await serve();
    expect(second.printed()).not.toContain("creating");
    expect(second.printed()).not.toContain("migrating");
    expect((await command("keys")).printed).toBe(keys);
    expect(await ask(databaseUrl, "select name from users")).toEqual([{ name: "Ada" }]);
  });

  test.each(["SIGINT", "SIGTERM"] as const)("%s stops it cleanly and leaves no process", async (signal) => {
    await haveData();
    const program = await serve();
    expect((await processesNaming(folder)).length).toBeGreaterThan(0);
    expect(await stopped(program, signal)).toBe(0);
    expect(await processesNaming(folder)).toEqual([]);
  });

  test("npm forwards a signal, and waits for the exit", async () => {
    await haveData();
    const environment = { PATH: process.env.PATH, PORT: "0", LOG_LEVEL: "error", DATA_DIR: join(folder, "data") };
    const npm = spawn("npm", ["start"], {
      cwd: REPOSITORY,
      env: environment,
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    const ended = once(npm, "close");
    let printed = "";
    npm.stdout.setEncoding("utf8").on("data", (text) => (printed += text));
    try {
      await until(async () => npm.exitCode !== null || printed.includes("ready in"));
      npm.kill("SIGTERM");
      await ended;
      expect(printed).toContain("SIGTERM received, stopping");
      expect(await processesNaming(folder)).toEqual([]);
    } finally {
      if (npm.exitCode === null && npm.signalCode === null) process.kill(-npm.pid!, "SIGKILL");
    }
  });

  test("environment variables for another Postgres do not affect the embedded one", async () => {
    await haveData();
    const { url } = await serve({ PGSSLMODE: "require", PGOPTIONS: "-c nonsense=1", PGUSER: "nobody" });
    expect((await health(url)).status).toBe(200);
  });

  test("kill -9 of the service, then start: every acknowledged row exists", async () => {
    await haveData();
    const program = await serve();
    const databaseUrl = (await command("database-url")).printed.trim();
    const client = new pg.Client({ connectionString: databaseUrl });
    client.on("error", () => {});
    await client.connect();
    const acknowledged: string[] = [];
    const writing = (async () => {
      for (let n = 0; ; n++) {
        await client.query("insert into users (name, email) values ('n', $1)", [`n${n}@example.org`]);
        acknowledged.push(`n${n}@example.org`);
      }
    })().catch(() => {});
    await until(async () => acknowledged.length > 100);
    await program.kill();
    await writing;
    await client.end().catch(() => {});
    await serve();
    const kept = new Set((await ask(databaseUrl, "select email from users")).map(({ email }) => email));
    expect(acknowledged.filter((email) => !kept.has(email))).toEqual([]);
  });

  test("kill -9 of Postgres: it is detected and restarted, and the service recovers by itself", async () => {
    await haveData();
    const { url, printed } = await serve();
    process.kill(await postmasterOf(join(folder, "data")), "SIGKILL");
    await until(async () => printed().includes("exited unexpectedly"));
    expect((await fetch(`${url}/health/live`)).status).toBe(200);
    await until(async () => (await health(url)).status === 200);
  });

  test("a folder in use and a port in use are refused with an error", async () => {
    await haveData();
    const { url, child } = await serve();
    const folderTaken = await serve();
    expect(folderTaken.logged()).toContain(`in use by the service with process id ${child.pid}`);
    expect(folderTaken.child.exitCode).toBe(1);
    const { port } = new URL(url);
    const portTaken = await serve({ PORT: port, DATA_DIR: join(folder, "other") });
    expect(portTaken.logged()).toContain(`Port ${port} of 127.0.0.1 is in use`);
    expect(portTaken.child.exitCode).toBe(1);
    expect(await readdir(folder)).toEqual(["data"]);
  });

  test("two services with separate folders run side by side", async () => {
    await haveData();
    await haveData("other");
    const [one, other] = await Promise.all([serve(), serve({ DATA_DIR: join(folder, "other") })]);
    expect([(await health(one.url)).status, (await health(other.url)).status]).toEqual([200, 200]);
    expect(one.url).not.toBe(other.url);
  });

  test("invalid settings are reported together, before the start", async () => {
    const { child, logged } = await serve({ PORT: "eighty", JWT_SECRET: "short", ERROR_BODY: "xml" });
    expect(child.exitCode).toBe(1);
    expect(logged().match(/PORT must be|JWT_SECRET must be|ERROR_BODY must be/g)).toHaveLength(3);
    expect(await readdir(folder)).toEqual([]);
  });

  test("a misspelt setting is logged as a warning", async () => {
    await haveData();
    const { logged } = await serve({ PGRST_DB_SCHEMA: "public" });
    expect(logged()).toContain("did you mean PGRST_DB_SCHEMAS?");
  });
});

describe("npm start with DATABASE_URL", () => {
  const settings = { JWT_SECRET: SECRET };

  test("a migrated database is served by the login of requests and its owner", async () => {
    const database = await cloneDatabase();
    try {
      const program = await serve({ ...settings, DATABASE_URL: database.url, OWNER_DATABASE_URL: database.ownerUrl });
      expect(await health(program.url)).toEqual({ status: 200, body: { status: "ok" } });
      expect(await readdir(folder)).toEqual([]);
      expect(program.printed()).toMatch(/^ {2}users {6}owner/m);
      expect(await stopped(program, "SIGTERM")).toBe(0);
    } finally {
      await database.drop();
    }
  });

  test("a partly migrated database is refused with the remedy, and npm run migrate fixes it", async () => {
    const database = await cloneDatabase("empty");
    try {
      const environment = { ...settings, DATABASE_URL: database.ownerUrl };
      const earlier = await copyOfRepository();
      const committed = join(earlier, "db/content/committed");
      await rm(join(committed, (await readdir(committed)).sort().at(-1)!));
      expect(await command("migrate", [], environment, earlier)).toMatchObject({ code: 0 });
      const refused = await serve(environment);
      expect(refused.child.exitCode).toBe(1);
      expect(refused.logged()).toMatch(/half migrated.+npm run migrate/s);
      const migrated = await command("migrate", [], environment);
      expect(migrated).toMatchObject({ code: 0, printed: expect.stringMatching(/All \d+ migrations are applied/) });
      expect((await serve(environment)).url).not.toBe("");
    } finally {
      await database.drop();
    }
  });

  test("a database without our schemas is served as it is", async () => {
    const database = await cloneDatabase("empty");
    try {
      const program = await serve({ ...settings, DATABASE_URL: database.ownerUrl, WEB_CONCURRENCY: "2" });
      const both = { status: "ok", workers: 2 };
      await until(async () => isDeepStrictEqual((await health(program.url)).body, both));
      expect(program.printed().match(/served as it is/g)).toHaveLength(1);
      expect(program.printed()).not.toMatch(/^ {2}users/m);
      await stopped(program, "SIGTERM");
    } finally {
      await database.drop();
    }
  });

  test("a missing database is reported with an error", async () => {
    const { child, logged } = await serve({ ...settings, DATABASE_URL: urlOf("postgres", "nowhere") });
    expect(child.exitCode).toBe(1);
    expect(logged()).toContain('database "nowhere" does not exist');
    expect(logged()).not.toContain("    at ");
  });
});

describe("npm run dev", () => {
  test("a migration is applied on every save, and its end state is committed with a name", async () => {
    await haveData();
    const root = await copyOfRepository();
    const { url, printed } = await serve({}, { args: ["--dev"], root });
    expect((await health(url)).status).toBe(200);
    const databaseUrl = (await command("database-url", [], {}, root)).printed.trim();
    const isThere = async (name: string) =>
      (await ask(databaseUrl, `select to_regclass('${name}') as found`))[0]!.found !== null;
    expect(printed()).toContain("db/migrations/current, applied on every save");
    await mkdir(join(root, "db/migrations/current"));
    await writeFile(
      join(root, "db/migrations/current/0010-notes.sql"),
      "drop table if exists public.notes;\ncreate table public.notes (id int primary key);\n",
    );
    await until(() => isThere("public.notes"));

    const committed = await command("migrate", ["commit", "add", "notes"], {}, root);
    expect(committed.logged).toBe("");
    expect(committed.code).toBe(0);
    expect((await readdir(join(root, "db/migrations/committed"))).at(-1)).toMatch(/add-notes\.sql$/);
    expect(await readFile(join(root, "db/migrations/schema.sql"), "utf8")).toContain("create table public.notes");
  });
});

describe("a clone without the example application", () => {
  test("serves the project's own tables to its roles by every interface", async () => {
    const root = await copyOfRepository();
    await rm(join(root, "db/content"), { recursive: true });
    await mkdir(join(root, "db/migrations/committed"));
    const body = `
      create table public.notes (id bigint primary key, owner_id bigint not null default auth.uid(), text text not null);
      alter table public.notes enable row level security;
      create policy select_all on public.notes for select using (true);
      create policy insert_own on public.notes for insert to authenticated with check (owner_id = (select auth.uid()));
      grant select on public.notes to anon, authenticated;
      grant insert (id, text) on public.notes to authenticated;`;
    const { text } = writeMigration({ previous: null, message: "notes", body });
    await writeFile(join(root, "db/migrations/committed/000001-notes.sql"), text);

    const { url } = await serve({ JWT_SECRET: SECRET, REST_REQUIRE_APIKEY: "false" }, { root });
    const token = jwt.sign({ sub: "7", role: "authenticated" }, SECRET);
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const insert = (path: string, note: object) =>
      fetch(url + path, { method: "POST", headers, body: JSON.stringify(note) });
    expect((await insert("/rest/v1/notes", { id: 1, text: "one" })).status).toBe(201);
    expect((await insert("/api/v1/notes", { id: 2, text: "two" })).status).toBe(201);
    const query = "{ notes { edges { node { id ownerId text } } } }";
    const answer = await fetch(`${url}/graphql`, { method: "POST", headers, body: JSON.stringify({ query }) });
    const note = (id: string, note: string) => ({ node: { id, ownerId: "7", text: note } });
    expect(await answer.json()).toEqual({ data: { notes: { edges: [note("1", "one"), note("2", "two")] } } });
    expect(await (await fetch(`${url}/rest/v1/notes?select=id`)).json()).toEqual([{ id: 1 }, { id: 2 }]);
    expect((await insert("/auth/login", { username: "ann", password: "unknown" })).status).toBe(401);
    expect((await health(url)).body).toEqual({ status: "ok" });
  });
});

/** The parts that run, so that a test may write migrations; without a project's own. */
async function copyOfRepository(): Promise<string> {
  const root = join(folder, "repository");
  const files = (await readdir(REPOSITORY)).filter((name) => /\.[jt]s$/.test(name));
  const rooms = readRooms().map((room) => room.folder.split("/")[0]!);
  const folders = ["db", "docs", ...new Set(rooms.filter((room) => !/^(bench|studio)$/.test(room)))];
  for (const part of ["package.json", ...files, ...folders]) {
    const filter = (path: string) => !/db\/migrations\/(current|committed)/.test(path);
    await cp(join(REPOSITORY, part), join(root, part), { recursive: true, verbatimSymlinks: true, filter });
  }
  await symlink(join(REPOSITORY, "node_modules"), join(root, "node_modules"));
  return root;
}

describe("commands", () => {
  test("keys prints a key per role, which the service verifies", async () => {
    const { printed } = await command("keys", [], { JWT_SECRET: SECRET });
    const keys = printed.match(/^ey\S+$/gm)!;
    expect(keys.map((key) => JSON.parse(Buffer.from(key.split(".")[1]!, "base64url").toString()).role)).toEqual([
      "anon",
      "service_role",
    ]);
    expect((await command("keys", [], { JWT_SECRET: SECRET })).printed).toBe(printed);
  });

  test("config prints the current settings, with secrets masked", async () => {
    const { code, printed } = await command("config", [], { JWT_SECRET: SECRET, PORT: "4000" });
    expect(code).toBe(0);
    expect(printed).toMatch(/^PORT=4000/m);
    expect(printed).not.toContain(SECRET);
  });

  test("database-url reports that no database is running", async () => {
    expect(await command("database-url")).toMatchObject({
      code: 1,
      printed: "",
      logged: expect.stringContaining("npm start"),
    });
  });

  test("migrate works on the embedded database without a service, and leaves no process", async () => {
    expect(await command("migrate")).toMatchObject({
      code: 0,
      printed: expect.stringMatching(/All \d+ migrations are applied/),
    });
    expect(await command("migrate", ["status"])).toMatchObject({ code: 0 });
    expect(await processesNaming(folder)).toEqual([]);
  });

  test("reset requires --erase, and refuses while the service runs", async () => {
    await haveData();
    expect(await command("migrate", ["reset"])).toMatchObject({ code: 2, logged: expect.stringContaining("--erase") });
    await serve();
    expect(await command("migrate", ["reset", "--erase"])).toMatchObject({
      code: 1,
      logged: expect.stringContaining("The service is running on this database. Stop it before you reset it."),
    });
  });

  test.runIf(existsSync("/usr/bin/psql"))("psql gets its own arguments", async () => {
    await haveData();
    expect(await command("psql", ["-Atc", "select 6 * 7"])).toMatchObject({ code: 0, printed: "42\n" });
  });

  test.each(["keys", "config", "database-url", "migrate", "psql"])("%s --help prints its usage", async (name) => {
    expect(await command(name, ["--help"])).toMatchObject({ code: 0, printed: expect.stringContaining(`npm run`) });
  });

  test.each([
    ["migrate", ["explode"]],
    ["migrate", ["status", "quickly"]],
    ["keys", ["create-all"]],
    ["config", ["--xml"]],
  ])("%s %j is refused with a message and no stack trace", async (name, args) => {
    const { code, logged } = await command(name, args);
    expect(code).toBe(2);
    expect(logged).not.toContain("    at ");
  });
});

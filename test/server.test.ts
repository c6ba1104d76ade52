import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual, promisify } from "node:util";
import jwt from "jsonwebtoken";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { writeMigration } from "../migrate/committed-migrations.ts";
import { cloneDatabase, urlOf } from "./database.ts";
import { useFolder } from "./fixture.ts";
import { postmasterOf } from "./postmaster.ts";
import { processesNaming } from "./processes-naming.ts";
import { COMPILE_CACHE, type Program, type RunOptions, run, startProgram, startReady, stopped } from "./program.ts";
import { REPOSITORY } from "./repository.ts";
import { readRooms } from "./rooms.ts";
import { SECRET } from "./secret.ts";
import { runCommandWith, runWithoutDatabase } from "./service/cli/run-command.ts";
import { until } from "./until.ts";

/** The files of one test. */
let folder: string;
const programs: Program[] = [];
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

const command = (name: string, args: readonly string[] = [], environment: NodeJS.ProcessEnv = {}) =>
  runWithoutDatabase(name, args, settingsOf(environment));

/** Starts a program that is ended after the test. */
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
  const home = useFolder("server-home-", 0o755);
  const own = { DATA_DIR: join(home, "data") };
  /** Variables for another Postgres must not affect the embedded one. */
  const FOREIGN = { PGSSLMODE: "require", PGOPTIONS: "-c nonsense=1", PGUSER: "nobody" };
  const runHere = (name: string, ...words: readonly string[]) => runWithoutDatabase(name, words, own);
  const printKeys = async () => (await runHere("keys")).stdout;

  let first: Program;
  let service: Program;
  let keys: string;
  let databaseUrl: string;
  beforeAll(async () => {
    first = await startReady(own);
    keys = await printKeys();
    databaseUrl = (await runHere("database-url")).stdout.trim();
    await ask(databaseUrl, "insert into users (name, email) values ('Ada', 'ada@example.org')");
  });
  afterAll(async () => {
    await service?.kill();
    await first?.kill();
    await until(async () => (await processesNaming(home)).length === 0);
  });

  test("prints its state and its URLs, and no secret", async () => {
    const { url, printed, logged } = first;
    expect(await health(url)).toEqual({ status: 200, body: { status: "ok" } });
    expect(printed()).toMatch(/creating the database cluster.+migrating the database.+ready in \d+\.\d s/s);
    expect(printed()).toContain(own.DATA_DIR);
    expect(printed()).toContain("npm run keys");
    expect(printed()).toContain(`studio     ${url}/studio`);
    const { jwtSecret, databasePassword } = JSON.parse(await readFile(join(own.DATA_DIR, "secrets.json"), "utf8"));
    for (const secret of [jwtSecret, databasePassword]) expect(printed() + logged()).not.toContain(secret);
  });

  test("SIGTERM stops it cleanly and leaves no process", async () => {
    expect((await processesNaming(home)).length).toBeGreaterThan(0);
    expect(await stopped(first, "SIGTERM")).toBe(0);
    expect(await processesNaming(home)).toEqual([]);
  });

  test("npm forwards a signal, and waits for the exit", async () => {
    const npm = spawn("npm", ["start"], {
      cwd: REPOSITORY,
      env: { PATH: process.env.PATH, PORT: "0", LOG_LEVEL: "error", NODE_COMPILE_CACHE: COMPILE_CACHE, ...own },
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    const ended = once(npm, "close");
    let printed = "";
    npm.stdout.setEncoding("utf8").on("data", (text) => (printed += text));
    try {
      await until(() => npm.exitCode !== null || printed.includes("ready in"));
      npm.kill("SIGTERM");
      await ended;
      expect(printed).toContain("SIGTERM received, stopping");
      expect(await processesNaming(home)).toEqual([]);
    } finally {
      if (npm.exitCode === null && npm.signalCode === null) process.kill(-npm.pid!, "SIGKILL");
    }
  });

  test.runIf(existsSync("/usr/bin/psql"))("psql gets its own arguments, without a service", async () => {
    expect(await runHere("psql", "-Atc", "select 6 * 7")).toMatchObject({ code: 0, stdout: "42\n" });
  });

  test("the second start does not repeat earlier messages, and keeps keys and data", async () => {
    await promisify(execFile)("cp", ["-a", own.DATA_DIR, join(home, "other")]);
    service = await startReady({ ...own, ...FOREIGN, PGRST_DB_SCHEMA: "public" });
    expect(service.printed()).not.toContain("creating");
    expect(service.printed()).not.toContain("migrating");
    expect(await printKeys()).toBe(keys);
    expect(await ask(databaseUrl, "select name from users")).toEqual([{ name: "Ada" }]);
  });

  test("environment variables for another Postgres do not affect the embedded one", async () => {
    expect((await health(service.url)).status).toBe(200);
  });

  test("a misspelt setting is logged as a warning", () => {
    expect(service.logged()).toContain("did you mean PGRST_DB_SCHEMAS?");
  });

  test("a folder in use and a port in use are refused with an error", async () => {
    const folderTaken = await serve(own);
    expect(folderTaken.logged()).toContain(`in use by the service with process id ${service.child.pid}`);
    expect(folderTaken.child.exitCode).toBe(1);
    const { port } = new URL(service.url);
    const portTaken = await serve({ PORT: port });
    expect(portTaken.logged()).toContain(`Port ${port} of 127.0.0.1 is in use`);
    expect(portTaken.child.exitCode).toBe(1);
    expect(await readdir(folder)).toEqual([]);
  });

  test("two services with separate folders run side by side", async () => {
    const other = await serve({ DATA_DIR: join(home, "other") });
    expect([(await health(service.url)).status, (await health(other.url)).status]).toEqual([200, 200]);
    expect(other.url).not.toBe(service.url);
  });

  test("reset requires --erase, and refuses while the service runs", async () => {
    expect(await runHere("migrate", "reset")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--erase"),
    });
    expect(await runHere("migrate", "reset", "--erase")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("The service is running on this database. Stop it before you reset it."),
    });
  });

  test("kill -9 of Postgres: it is detected and restarted, and the service recovers by itself", async () => {
    process.kill(await postmasterOf(own.DATA_DIR), "SIGKILL");
    await until(() => service.printed().includes("exited unexpectedly"));
    expect((await fetch(`${service.url}/health/live`)).status).toBe(200);
    await until(async () => (await health(service.url)).status === 200);
  });

  test("kill -9 of the service, then start: every acknowledged row exists", async () => {
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
    await until(() => acknowledged.length > 100);
    await service.kill();
    await writing;
    await client.end().catch(() => {});
    service = await startReady(own);
    const kept = new Set((await ask(databaseUrl, "select email from users")).map(({ email }) => email));
    expect(acknowledged.filter((email) => !kept.has(email))).toEqual([]);
  });

  test("SIGINT stops it cleanly and leaves no process", async () => {
    expect((await processesNaming(home)).length).toBeGreaterThan(0);
    expect(await stopped(service, "SIGINT")).toBe(0);
    expect(await processesNaming(home)).toEqual([]);
  });

  test("invalid settings are reported together, before the start", async () => {
    const { child, logged } = await serve({ PORT: "eighty", JWT_SECRET: "short", ERROR_BODY: "xml" });
    expect(child.exitCode).toBe(1);
    expect(logged().match(/PORT must be|JWT_SECRET must be|ERROR_BODY must be/g)).toHaveLength(3);
    expect(await readdir(folder)).toEqual([]);
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
    const database = await cloneDatabase("platform");
    try {
      const environment = { ...settings, DATABASE_URL: database.ownerUrl };
      const refused = await serve(environment);
      expect(refused.child.exitCode).toBe(1);
      expect(refused.logged()).toMatch(/half migrated.+npm run migrate/s);
      const migrated = await command("migrate", [], environment);
      expect(migrated).toMatchObject({ code: 0, stdout: expect.stringMatching(/All \d+ migrations are applied/) });
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

describe("npm run dev in a clone without the example application", () => {
  const home = useFolder("server-clone-", 0o755);
  const root = join(home, "repository");
  const own = { DATA_DIR: join(home, "data"), JWT_SECRET: SECRET };
  let service: Program;
  beforeAll(async () => {
    await copyRepository(root);
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
    service = await startReady({ ...own, REST_REQUIRE_APIKEY: "false" }, { root, args: ["--dev"] });
  });
  afterAll(async () => {
    await service?.kill();
    await until(async () => (await processesNaming(home)).length === 0);
  });

  test("serves the project's own tables to its roles by every interface", async () => {
    const { url } = service;
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

  test("a migration is applied on every save, and its end state is committed with a name", async () => {
    const databaseUrl = (await command("database-url", [], own)).stdout.trim();
    const isThere = async (name: string) =>
      (await ask(databaseUrl, `select to_regclass('${name}') as found`))[0]!.found !== null;
    expect(service.printed()).toContain("db/migrations/current, applied on every save");
    await mkdir(join(root, "db/migrations/current"));
    await writeFile(
      join(root, "db/migrations/current/0010-tags.sql"),
      "drop table if exists public.tags;\ncreate table public.tags (id int primary key);\n",
    );
    await until(() => isThere("public.tags"));

    const { child, streams } = run("service/cli/migrate.ts", own, { args: ["commit", "add", "tags"], root });
    expect(await once(child, "close")).toEqual([0, null]);
    expect(streams.logged).toBe("");
    expect((await readdir(join(root, "db/migrations/committed"))).at(-1)).toMatch(/add-tags\.sql$/);
    expect(await readFile(join(root, "db/migrations/schema.sql"), "utf8")).toContain("create table public.tags");
  });
});

/** The parts that run, so that a test may write migrations; without a project's own. */
async function copyRepository(root: string): Promise<void> {
  const files = (await readdir(REPOSITORY)).filter((name) => /\.[jt]s$/.test(name));
  const rooms = readRooms().map((room) => room.folder.split("/")[0]!);
  const folders = ["db", "docs", ...new Set(rooms.filter((room) => room !== "bench"))];
  for (const part of ["package.json", ...files, ...folders]) {
    const filter = (path: string) => !/db\/migrations\/(current|committed)/.test(path);
    await cp(join(REPOSITORY, part), join(root, part), { recursive: true, verbatimSymlinks: true, filter });
  }
  await symlink(join(REPOSITORY, "node_modules"), join(root, "node_modules"));
}

describe("commands", () => {
  test("keys prints a key per role, which the service verifies", async () => {
    const { stdout } = await command("keys", [], { JWT_SECRET: SECRET });
    const keys = stdout.match(/^ey\S+$/gm)!;
    expect(keys.map((key) => JSON.parse(Buffer.from(key.split(".")[1]!, "base64url").toString()).role)).toEqual([
      "anon",
      "service_role",
    ]);
    expect((await command("keys", [], { JWT_SECRET: SECRET })).stdout).toBe(stdout);
  });

  test("config prints the current settings, with secrets masked", async () => {
    const { code, stdout } = await command("config", [], { JWT_SECRET: SECRET, PORT: "4000" });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^PORT=4000/m);
    expect(stdout).not.toContain(SECRET);
  });

  test("database-url reports that no database is running", async () => {
    expect(await command("database-url")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("npm start"),
    });
  });

  test("migrate works on the embedded database without a service, and leaves no process", async () => {
    const own = settingsOf({ BASE_SCHEMA: "platform" });
    expect(await runCommandWith("migrate", [], own)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/All \d+ migrations are applied/),
    });
    expect(await runWithoutDatabase("migrate", ["status"], own)).toMatchObject({ code: 0 });
    expect(await processesNaming(folder)).toEqual([]);
  });

  test.each(["keys", "config", "database-url", "migrate", "psql"])("%s --help prints its usage", async (name) => {
    const { code, stdout } = await command(name, ["--help"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("npm run")]);
  });

  test.each([
    ["migrate", ["explode"]],
    ["migrate", ["status", "quickly"]],
    ["keys", ["create-all"]],
    ["config", ["--xml"]],
  ])("%s %j is refused with a message and no stack trace", async (name, args) => {
    const { code, stderr } = await command(name, args);
    expect(code).toBe(2);
    expect(stderr).not.toContain("    at ");
  });
});

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cloneDatabase } from "../database.ts";
import { NO_PROJECT, REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { until } from "../until.ts";

const BIN = join(REPOSITORY, "bin/content-service.js");
const run = promisify(execFile);

let folder: string;
let database: Awaited<ReturnType<typeof cloneDatabase>>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "content-service-package-"));
  database = await cloneDatabase("content");
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await database.drop();
});

const inClone = (...words: string[]) => run(process.execPath, [BIN, ...words]);

describe("content-service", () => {
  test("has the same commands as npm run, and those for projects", async () => {
    const { scripts } = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8"));
    const developers = ["bench", "build", "check", "prepack", "prepare", "test"];
    // In a clone npm test runs the tests of the service.
    const forProjects = ["init", "test"];
    const { stdout } = await inClone("--help");
    const words = [...stdout.matchAll(/^ {2}([a-z-]+) {2,}/gm)].map(([, word]) => word!);
    expect(words.sort()).toEqual(
      [...Object.keys(scripts).filter((name) => !developers.includes(name)), ...forProjects].sort(),
    );
  });

  test("passes arguments to the command, whose help shows how it was called", async () => {
    const env = { ...process.env, npm_command: "exec" };
    const byPackage = await run(process.execPath, [BIN, "keys", "--help"], { env });
    expect(byPackage.stdout).toMatch(/^npx content-service keys revoke ID\n {2}Revokes an API key\.$/m);
    const byScript = await run("npm", ["run", "--silent", "keys", "--", "--help"], { cwd: REPOSITORY });
    expect(byScript.stdout).toMatch(/^npm run keys -- revoke ID\n {2}Revokes an API key\.$/m);
    for (const { stdout } of [byPackage, byScript]) expect(stdout).toContain("Exit codes: 0 success");
  });

  test("prints its version, and that start takes settings and no arguments", async () => {
    const { version } = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8"));
    expect((await inClone("--version")).stdout.trim()).toBe(version);
    expect((await inClone("start", "--help")).stdout).toContain("PORT=8080");
    expect(await inClone("start", "--port", "8080").catch((error) => error)).toMatchObject({ code: 2 });
  });

  test("names the database that cannot be reached, without a stack", async () => {
    const address = "postgres://nobody:hunter2@127.0.0.1:1/nowhere";
    const env = { PATH: process.env.PATH, DATABASE_URL: address, JWT_SECRET: SECRET };
    const { stderr, code } = await run(process.execPath, [BIN, "types"], { env }).catch((error) => error);
    expect(stderr).toContain("The database at 127.0.0.1:1 (DATABASE_URL) cannot be used");
    expect(stderr).not.toMatch(/hunter2|^ +at /m);
    expect(code).toBe(1);
  });

  test("ends with the shell that npm started it in, which passes no signals on", async () => {
    const shell = spawn("sh", ["-c", '"$0" "$1" start; :', process.execPath, BIN], {
      env: { ...servingEnvironment(), MIGRATIONS_DIR: NO_PROJECT, npm_command: "exec" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const said = createInterface({ input: shell.stdout });
    const [lines, ended]: [string[], Promise<unknown>] = [[], once(said, "close")];
    said.on("line", (line) => lines.push(line));
    await until(async () => shell.exitCode !== null || lines.some((line) => line.includes("ready in")));
    shell.kill("SIGTERM");
    await ended;
    expect(lines.at(-1)).toContain("SIGTERM received, stopping");
  });

  test("lists the commands after a typing error", async () => {
    const { stderr, code } = await inClone("strat").catch((error) => error);
    expect(stderr).toContain('content-service has no command "strat"; did you mean start?');
    expect(stderr).toContain("  start ");
    expect(code).toBe(2);
  });

  test("is packed with the built files that it needs, because Node strips no types under node_modules", async () => {
    await run("npm", ["pack", "--pack-destination", folder], { cwd: REPOSITORY });
    const modules = join(folder, "node_modules");
    await mkdir(modules);
    for (const name of await readdir(join(REPOSITORY, "node_modules"))) {
      await symlink(join(REPOSITORY, "node_modules", name), join(modules, name));
    }
    await mkdir(join(modules, "content-service"));
    const tarball = (await readdir(folder)).find((name) => name.endsWith(".tgz"))!;
    await run("tar", ["xzf", join(folder, tarball), "--strip-components=1", "-C", join(modules, "content-service")]);

    const packed = join(modules, "content-service/bin/content-service.js");
    const inFolder = (words: string[]) =>
      run(process.execPath, [packed, ...words], { cwd: folder, env: servingEnvironment() });
    await writeFile(
      join(folder, "package.json"),
      JSON.stringify({ dependencies: { "content-service": `file:${tarball}` } }),
    );
    await inFolder(["init", "app"]);
    const project = JSON.parse(await readFile(join(folder, "app/package.json"), "utf8"));
    expect(project.dependencies).toEqual({ "content-service": `file:${tarball}` });
    expect(await readdir(join(folder, "app"))).toEqual(
      expect.arrayContaining([".env.example", ".github", ".gitignore", tarball]),
    );
    await mkdir(join(folder, "db/migrations/current"), { recursive: true });
    await writeFile(
      join(folder, "db/migrations/current/0010-notes.sql"),
      "create table if not exists public.notes ();",
    );
    const ofRelease = ["migrate", "commit", "notes", "--history", "content"];
    const refused = await inFolder(ofRelease).catch((error) => error);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("works only in a clone") });
    await inFolder(["migrate", "commit", "notes"]);
    expect(await readdir(join(folder, "db/migrations/committed"))).toEqual(["000001-notes.sql"]);
    const service = spawn(process.execPath, [packed, "start"], {
      cwd: folder,
      env: servingEnvironment(),
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const address = await announcedAddress(service);
      expect(await (await fetch(`${address}/health`)).json()).toEqual({ status: "ok" });
      for (const page of ["", "/readme", "/graphql", "/db", "/contributing", "/pictures/start-page.png"])
        expect([page, (await fetch(`${address}/docs/guide${page}`)).status]).toEqual([page, 200]);
      for (const path of ["/graphiql/static/graphiql.js", "/graphiql/static/graphiql.css", "/docs"])
        expect([path, (await fetch(address + path)).status]).toEqual([path, 200]);
    } finally {
      service.kill("SIGTERM");
    }
    const { promise: ended, resolve } = Promise.withResolvers<number | null>();
    service.on("exit", resolve);
    expect(await ended).toBe(0);
  });
});

function servingEnvironment(): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    PORT: "0",
    DATABASE_URL: database.url,
    OWNER_DATABASE_URL: database.ownerUrl,
    JWT_SECRET: SECRET,
  };
}

async function announcedAddress(service: ChildProcess): Promise<string> {
  const said: string[] = [];
  for await (const line of createInterface({ input: service.stdout! })) {
    const address = /^ +address +(\S+)/.exec(line)?.[1];
    if (address) return address;
    said.push(line);
  }
  throw new Error(`It ended before it served:\n${said.join("\n")}`);
}

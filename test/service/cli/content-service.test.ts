import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { cloneDatabase, useDatabase } from "../../database.ts";
import { followTutorial, isAsPublished } from "../../docs/tutorial.ts";
import { useFolder } from "../../fixture.ts";
import { COMPILE_CACHE } from "../../program.ts";
import { NO_PROJECT, REPOSITORY } from "../../repository.ts";
import { SECRET } from "../../secret.ts";
import { until } from "../../until.ts";

const BIN = join(REPOSITORY, "bin/content-service.js");
const run = promisify(execFile);
/** The environment of a command in this repository, whose modules other tests have compiled. */
const inRepository = { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE };

const folder = useFolder("content-service-package-");
/** Another folder, because npm installs into the nearest folder above a new project that has a package.json. */
const beside = useFolder("content-service-tutorial-");
const database = useDatabase();

/** The name of the tarball in the folder. Packed once, because each time builds `dist` again. */
async function packed(): Promise<string> {
  const isTarball = (name: string) => name.endsWith(".tgz");
  const found = (await readdir(folder)).find(isTarball);
  if (found) return found;
  await run("npm", ["pack", "--pack-destination", folder], { cwd: REPOSITORY });
  return (await readdir(folder)).find(isTarball)!;
}

const inClone = (...words: string[]) => run(process.execPath, [BIN, ...words], { env: inRepository });

describe("content-service", () => {
  test("has the same commands as npm run, and those for projects", async () => {
    const { scripts } = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8"));
    const developers = ["bench", "build", "check", "compare", "prepack", "prepare"];
    const isForUsers = (name: string) => !developers.includes(name) && !/^test\b/.test(name);
    // In a clone npm test runs the tests of the service.
    const forProjects = ["init", "test"];
    const { stdout } = await inClone("--help");
    const words = [...stdout.matchAll(/^ {2}([a-z-]+) {2,}/gm)].map(([, word]) => word!);
    expect(words.sort()).toEqual([...Object.keys(scripts).filter(isForUsers), ...forProjects].sort());
  });

  test("passes arguments to the command, whose help shows how it was called", async () => {
    const env = { ...inRepository, npm_command: "exec" };
    const byPackage = await run(process.execPath, [BIN, "keys", "--help"], { env });
    expect(byPackage.stdout).toMatch(/^npx content-service keys revoke ID\n {2}Revokes an API key\.$/m);
    const byScript = await run("npm", ["run", "--silent", "keys", "--", "--help"], {
      cwd: REPOSITORY,
      env: inRepository,
    });
    expect(byScript.stdout).toMatch(/^npm run keys -- revoke ID\n {2}Revokes an API key\.$/m);
    for (const { stdout } of [byPackage, byScript]) expect(stdout).toContain("Exit codes: 0 success");
  });

  test("names itself where a message names a command", async () => {
    const empty = await cloneDatabase("empty");
    try {
      const env = {
        ...inRepository,
        DATABASE_URL: empty.ownerUrl,
        MIGRATIONS_DIR: NO_PROJECT,
        JWT_SECRET: SECRET,
      };
      const { stderr } = await run(process.execPath, [BIN, "types"], { env: { ...env, npm_command: "exec" } });
      expect(stderr).toContain("is served as it is; npx content-service migrate would add them\n");
    } finally {
      await empty.drop();
    }
  });

  test("prints its version, and that start takes settings and no arguments", async () => {
    const { version } = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8"));
    expect((await inClone("--version")).stdout.trim()).toBe(version);
    expect((await inClone("start", "--help")).stdout).toContain("PORT=8080");
    expect((await inClone("start", "--branch", "Ä").catch((error) => error)).stderr).toContain("DATABASE_BRANCH");
    expect(await inClone("start", "--port", "8080").catch((error) => error)).toMatchObject({ code: 2 });
  });

  test("names the database that cannot be reached, without a stack", async () => {
    const address = "postgres://nobody:hunter2@127.0.0.1:1/nowhere";
    const env = { ...inRepository, DATABASE_URL: address, JWT_SECRET: SECRET };
    const { stderr, code } = await run(process.execPath, [BIN, "types"], { env }).catch((error) => error);
    expect(stderr).toContain("The database at 127.0.0.1:1 (DATABASE_URL) cannot be used");
    expect(stderr).not.toMatch(/hunter2|^ +at /m);
    expect(code).toBe(1);
  });

  test("ends with the shell that npm started it in, which passes no signals on", async () => {
    const shell = spawn("sh", ["-c", '"$0" "$1" start; :', process.execPath, BIN], {
      env: { ...servingEnvironment(), ...inRepository, MIGRATIONS_DIR: NO_PROJECT, npm_command: "exec" },
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
    const tarball = await packed();
    const modules = join(folder, "node_modules");
    await mkdir(modules);
    for (const name of await readdir(join(REPOSITORY, "node_modules"))) {
      await symlink(join(REPOSITORY, "node_modules", name), join(modules, name));
    }
    await mkdir(join(modules, "content-service"));
    await run("tar", ["xzf", join(folder, tarball), "--strip-components=1", "-C", join(modules, "content-service")]);

    const installed = join(modules, "content-service/bin/content-service.js");
    // The exports of package.json can be imported, and their types are found.
    const use =
      'import { resuming } from "content-service/resuming-socket"; export const made: typeof WebSocket = resuming(WebSocket);';
    await writeFile(join(folder, "use.mts"), use);
    await run(process.execPath, ["--input-type=module", "-e", use.replace(": typeof WebSocket", "")], { cwd: folder });
    const options = "use.mts --ignoreConfig --noEmit --strict --target es2024 --lib es2024,dom --module nodenext";
    await run(join(REPOSITORY, "node_modules/.bin/tsc"), options.split(" "), { cwd: folder });
    const inFolder = (words: string[]) =>
      run(process.execPath, [installed, ...words], { cwd: folder, env: servingEnvironment() });
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
    // `npm install ../content-service-….tgz` leaves such a new folder: npm ci of CI finds the tarball only if it is in the project.
    const begun = join(folder, "begun");
    await mkdir(join(begun, "node_modules"), { recursive: true });
    await symlink(join(modules, "content-service"), join(begun, "node_modules/content-service"));
    const elsewhere = { "content-service": `file:../${tarball}` };
    await writeFile(join(begun, "package.json"), JSON.stringify({ name: "begun", dependencies: elsewhere }));
    const lock = {
      packages: { "": { dependencies: elsewhere }, "node_modules/content-service": { resolved: `file:../${tarball}` } },
    };
    await writeFile(join(begun, "package-lock.json"), JSON.stringify(lock));
    await inFolder(["init", "begun"]);
    const readBegun = async (name: string) => JSON.parse(await readFile(join(begun, name), "utf8"));
    const inProject = { "content-service": `file:${tarball}` };
    expect((await readBegun("package.json")).dependencies).toEqual(inProject);
    expect((await readBegun("package-lock.json")).packages).toEqual({
      "": { dependencies: inProject },
      "node_modules/content-service": { resolved: `file:${tarball}` },
    });
    expect(await readdir(begun)).toContain(tarball);
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
    const service = spawn(process.execPath, [installed, "start"], {
      cwd: folder,
      env: servingEnvironment(),
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const address = await announcedAddress(service);
      expect(await (await fetch(`${address}/health`)).json()).toMatchObject({ status: "ok" });
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

    await inFolder(["sql", "create table public.own (id int); insert into public.own values (1)"]);
    await inFolder(["backup", "own.backup.gz"]);
    expect((await inFolder(["restore", "--check", "own.backup.gz"])).stdout).toContain("can be restored");
  });

  test("installed from the tarball, serves the first rows of the tutorial as written", async () => {
    const tarball = await packed();
    await copyFile(join(folder, tarball), join(beside, tarball));
    const environment = {
      ...process.env,
      ...{ npm_config_loglevel: "error", npm_config_prefer_offline: "true", npm_config_audit: "false" },
    };
    const page = await readFile(join(REPOSITORY, "docs/tutorial/first-project.md"), "utf8");
    const steps = await followTutorial(page, { folder: beside, environment });
    expect(steps.filter(({ expected }) => expected !== null).length).toBeGreaterThan(3);
    expect(steps.filter((step) => !isAsPublished(step))).toEqual([]);
    const tested = await run("npm", ["test"], { cwd: join(beside, "my-app"), env: environment });
    expect(tested.stdout).toMatch(/^anon +4 +0$/m);
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

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cloneDatabase } from "../database.ts";

const REPOSITORY = join(import.meta.dirname, "../..");
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

const inClone = (...words: string[]) => run(process.execPath, [join(REPOSITORY, "bin/content-service.js"), ...words]);

describe("content-service", () => {
  test("has every command that npm run has, by the same word", async () => {
    const { scripts } = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8"));
    const developers = ["bench", "build", "check", "prepack", "test"];
    const { stdout } = await inClone("--help");
    const words = [...stdout.matchAll(/^ {2}([a-z-]+) {2,}/gm)].map(([, word]) => word!);
    expect(words.sort()).toEqual(
      Object.keys(scripts)
        .filter((name) => !developers.includes(name))
        .sort(),
    );
  });

  test("hands what follows the word to the command", async () => {
    const { stdout } = await inClone("keys", "--help");
    expect(stdout).toContain("ends a key");
  });

  test("says what there is to somebody who mistypes", async () => {
    const { stderr, code } = await inClone("strat").catch((error) => error);
    expect(stderr).toContain('content-service has no command "strat"');
    expect(stderr).toContain("  start ");
    expect(code).toBe(1);
  });

  test("is packed with what it needs to serve: built, for Node strips no types below node_modules", async () => {
    await run("npm", ["pack", "--pack-destination", folder], { cwd: REPOSITORY });
    const modules = join(folder, "node_modules");
    await mkdir(modules);
    for (const name of await readdir(join(REPOSITORY, "node_modules"))) {
      await symlink(join(REPOSITORY, "node_modules", name), join(modules, name));
    }
    await mkdir(join(modules, "content-service"));
    const tarball = (await readdir(folder)).find((name) => name.endsWith(".tgz"))!;
    await run("tar", ["xzf", join(folder, tarball), "--strip-components=1", "-C", join(modules, "content-service")]);

    const service = spawn(process.execPath, [join(modules, "content-service/bin/content-service.js"), "start"], {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        PORT: "0",
        DATABASE_URL: database.url,
        OWNER_DATABASE_URL: database.ownerUrl,
        JWT_SECRET: "a secret that is long enough to sign with",
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const address = await announcedAddress(service);
      expect(await (await fetch(`${address}/health`)).json()).toEqual({ status: "ok" });
    } finally {
      service.kill("SIGTERM");
    }
    const { promise: ended, resolve } = Promise.withResolvers<number | null>();
    service.on("exit", resolve);
    expect(await ended).toBe(0);
  });
});

async function announcedAddress(service: ChildProcess): Promise<string> {
  const said: string[] = [];
  for await (const line of createInterface({ input: service.stdout! })) {
    const address = /^ +address +(\S+)/.exec(line)?.[1];
    if (address) return address;
    said.push(line);
  }
  throw new Error(`It ended before it served:\n${said.join("\n")}`);
}

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const REPOSITORY = join(import.meta.dirname, "../..");
const WALK = /^## Five minutes$(.*?)^## /ms;
const BLOCK = /^```(sh|js)\n(.*?)^```$/gms;
/** Inside the repository, where the client's package is found. */
const WATCHER = join(REPOSITORY, "node_modules/.watch-of-readme.mjs");

let folder: string;
let service: ChildProcess;
let watcher: ChildProcess;
let address: string;

const environment = () => ({
  PATH: `${REPOSITORY}/node_modules/.bin:${process.env.PATH}`,
  DATA_DIR: join(folder, "data"),
});

/** Asks line by line, for some line of the program's output is what says that it is ready. */
async function lineOf(program: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  const lines = createInterface({ input: program.stdout! });
  const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
  const said: string[] = [];
  lines.on("line", (line) => {
    said.push(line);
    const match = pattern.exec(line);
    if (match) resolve(match);
  });
  lines.on("close", () => reject(new Error(`It never said ${pattern}:\n${said.join("\n")}`)));
  return promise;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "content-service-readme-"));
  service = spawn(process.execPath, ["server.ts"], {
    cwd: REPOSITORY,
    env: { ...environment(), PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  address = (await lineOf(service, /^ +address +(\S+)/))[1]!;
});

afterAll(async () => {
  watcher?.kill();
  const ended = new Promise((resolve) => service.once("exit", resolve));
  service.kill("SIGINT");
  await ended;
  await rm(WATCHER, { force: true });
  await rm(folder, { recursive: true, force: true });
});

describe("the five minutes of the README", () => {
  test("can be walked as they are written: sign in, write, read, watch, add a table", async () => {
    const walk = WALK.exec(await readFile(join(REPOSITORY, "README.md"), "utf8"))![1]!;
    const blocks = [...walk.replaceAll("http://127.0.0.1:3000", address).matchAll(BLOCK)];
    const scripts = blocks.filter(([, language]) => language === "sh").map(([, , text]) => text!);
    const [program] = blocks.filter(([, language]) => language === "js").map(([, , text]) => text!);
    expect(scripts.length).toBe(4);

    // The last script adds a table, and an article is written while somebody watches.
    const [signIn, write, read, addTable] = scripts as [string, string, string, string];
    const run = (...parts: string[]) =>
      promisify(execFile)("bash", ["-euo", "pipefail", "-c", parts.join("\n")], {
        cwd: REPOSITORY,
        env: environment(),
      });
    const first = await run(signIn, write, read);
    expect(first.stdout).toContain('"success":true');
    expect(first.stdout).toContain('[{"title":"First light","author":{"name":"Ada"}}]');
    expect(first.stdout).toContain('"data":[{"id":1,"title":"First light","author":{"name":"Ada"}}]');
    expect(first.stdout).toContain('"totalCount":1');

    await writeFile(WATCHER, program!);
    const key = await run("npm run --silent keys | sed -n 2p");
    watcher = spawn(process.execPath, [WATCHER], {
      env: { KEY: key.stdout.trim() },
      stdio: ["ignore", "pipe", "inherit"],
    });
    await lineOf(watcher, /SUBSCRIBED/);
    const arrival = lineOf(watcher, /^INSERT First light$/);
    // Its user is there already.
    await run(signIn.replace(/^npm run user.*$/m, ""), write);
    await arrival;

    const last = await run(
      signIn.replace(/^npm run user.*$/m, ""),
      "KEY=$(npm run --silent keys | sed -n 2p)",
      addTable,
    );
    expect(last.stdout).toContain('"data":[{"id":1,"words":"Hello."}]');
    expect(last.stdout).toContain('"node":{"id":"1","words":"Hello."}');
  });
});

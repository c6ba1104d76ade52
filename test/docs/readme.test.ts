import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useFixture, useFolder } from "../fixture.ts";
import { startReady, stopped } from "../program.ts";
import { REPOSITORY } from "../repository.ts";
import { ADDRESS, type FiveMinutes, readFiveMinutes } from "./five-minutes.ts";
import { linesUntil } from "./lines-until.ts";
import { openTerminal } from "./terminal.ts";

/** The file is in the repository, so that the import of the client resolves. */
const WATCHER = join(REPOSITORY, "node_modules/.watch-of-readme.mjs");

let watcher: ChildProcess;
let steps: FiveMinutes;

const read = (file: string) => readFile(join(REPOSITORY, file), "utf8");

beforeAll(async () => {
  steps = readFiveMinutes(await read("README.md"));
});
const folder = useFolder("content-service-readme-");
const environment = { PATH: `${REPOSITORY}/node_modules/.bin:${process.env.PATH}`, DATA_DIR: join(folder, "data") };
const service = useFixture(
  () => startReady(environment),
  (program) => stopped(program, "SIGINT"),
);
const terminal = useFixture(() => openTerminal({ folder: REPOSITORY, environment }));

afterAll(async () => {
  watcher?.kill();
  await rm(WATCHER, { force: true });
});

describe("the five minutes of the README", () => {
  const atService = (text: string) => text.replaceAll(ADDRESS, service.url);
  const run = async (script: string) => (await terminal.run(atService(script))).output;

  test("run as written: log in, create, read, watch, add a table", async () => {
    expect(await run(steps.signIn)).toContain("with the e-mail address ada@example.org");
    expect(await run(steps.write)).toContain('"success":true');
    const output = await run(steps.read);
    expect(output).toContain('[{"title":"First light","author":{"name":"Ada"}}]');
    expect(output).toContain('"data":[{"id":1,"title":"First light","author":{"name":"Ada"}}]');
    expect(output).toContain('"totalCount":1');

    await writeFile(WATCHER, atService(steps.watcher));
    watcher = spawn(process.execPath, [WATCHER], {
      env: { KEY: (await run("echo $KEY")).trim() },
      stdio: ["ignore", "pipe", "inherit"],
    });
    await linesUntil(watcher, /SUBSCRIBED/);
    const arrival = linesUntil(watcher, /^INSERT First light$/);
    await run(steps.write);
    await arrival;

    const added = await run(steps.addTable);
    expect(added).toContain('"data":[{"id":1,"words":"Hello."}]');
    expect(added).toContain('"node":{"id":"1","words":"Hello."}');
  });

  test("are the commands of the recorded walk-through", async () => {
    const record = await read("docs/walk.md");
    for (const step of Object.values(steps)) expect(record).toContain(step);
  });
});

/** The packages of other systems have other sizes. */
const isMeasuredSystem = process.platform === "linux" && process.arch === "x64";

test.runIf(isMeasuredSystem)("the README says how much an installation takes, within a tenth", () => {
  const readme = readFileSync(join(REPOSITORY, "README.md"), "utf8");
  const stated = Number(/\btakes (\d+) MB/.exec(readme)?.[1]);
  const listed = execFileSync("du", ["-sm", "--exclude=.cache", join(REPOSITORY, "node_modules")], {
    encoding: "utf8",
  });
  const measured = Number.parseInt(listed, 10);
  expect(stated).toBeGreaterThan(measured * 0.9);
  expect(stated).toBeLessThan(measured * 1.1);
});

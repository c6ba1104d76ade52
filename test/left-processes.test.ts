import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { watchLeftProcesses } from "./left-processes.ts";
import { processesNaming } from "./processes-naming.ts";
import { REPOSITORY } from "./repository.ts";
import { until } from "./until.ts";

const DRAINS_FOR_MINUTES = { DRAIN_DELAY_SECONDS: "300", DRAIN_TIMEOUT_SECONDS: "300" };

test("a run of tests that is killed takes the services that it has started with it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "content-service-killed-run-"));
  try {
    const program = JSON.stringify(join(REPOSITORY, "test/program.ts"));
    const settings = JSON.stringify({ DATA_DIR: join(folder, "data"), WEB_CONCURRENCY: "2", ...DRAINS_FOR_MINUTES });
    const code = `import { startReady } from ${program}; console.log((await startReady(${settings})).url);`;
    const run = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
    let url = "";
    run.stdout.on("data", (chunk) => (url += chunk));
    await until(() => url.endsWith("\n") || run.exitCode !== null);
    expect(url).toMatch(/^http/);
    run.kill("SIGKILL");
    await until(async () => (await processesNaming(folder)).length === 0);
    await expect(fetch(`${url.trim()}/health/live`)).rejects.toThrow("fetch failed");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("processes that tests leave are ended and named, also when their parents have ended", async () => {
  const processes = watchLeftProcesses();
  const parent = spawn("sh", ["-c", "sleep 86399 & sleep 86398 & read _"], { stdio: ["pipe", "ignore", "ignore"] });
  await until(async () => (await processesNaming("8639")).length >= 3);
  await processes.look();
  parent.stdin.end();
  await once(parent, "exit");
  expect((await processes.end()).filter((command) => command.includes("8639")).toSorted()).toEqual([
    "sleep 86398",
    "sleep 86399",
  ]);
});

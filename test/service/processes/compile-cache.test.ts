import { execFile } from "node:child_process";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { useDatabase } from "../../database.ts";
import { startGateway, stopped } from "../../program.ts";
import { REPOSITORY } from "../../repository.ts";

const FOLDER = join(REPOSITORY, "node_modules/.cache/content-service");

const database = useDatabase();

const cachedFiles = async () => (await readdir(FOLDER, { recursive: true }).catch(() => [])).length;

test.each(["1", "2"])("the compiled code of %s process(es) is kept for the next start", async (workers) => {
  // Processes of other tests may write to it meanwhile.
  await rm(FOLDER, { recursive: true, force: true, maxRetries: 50 });
  const gateway = await startGateway(database, { WEB_CONCURRENCY: workers, NODE_COMPILE_CACHE: undefined });
  expect(await stopped(gateway, "SIGTERM")).toBe(0);
  expect(await cachedFiles()).toBeGreaterThan(500);
});

test.each([
  ["npm run", ["--import", "./service/cli/compile-cache.js", "service/cli/keys.ts"]],
  ["content-service", ["bin/content-service.js", "keys"]],
])("the compiled code of a command of %s is kept for the next one", async (_, words) => {
  await rm(FOLDER, { recursive: true, force: true, maxRetries: 50 });
  await promisify(execFile)(process.execPath, [...words, "--help"], {
    cwd: REPOSITORY,
    env: { PATH: process.env.PATH },
  });
  expect(await cachedFiles()).toBeGreaterThan(20);
});

test("a service that may not keep compiled code starts without it", async () => {
  const gateway = await startGateway(database, { NODE_COMPILE_CACHE: "/dev/null/compiled" });
  expect(gateway.logged()).not.toContain("/dev/null/compiled");
  expect(await stopped(gateway, "SIGTERM")).toBe(0);
});

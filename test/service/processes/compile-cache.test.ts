import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { startGateway, stopped } from "../../program.ts";
import { REPOSITORY } from "../../repository.ts";

const FOLDER = join(REPOSITORY, "node_modules/.cache/content-service");

let database: TestDatabase;
beforeAll(async () => {
  database = await cloneDatabase();
});
afterAll(() => database.drop());

const cachedFiles = async () => (await readdir(FOLDER, { recursive: true }).catch(() => [])).length;

test.each(["1", "2"])("the compiled code of %s process(es) is kept for the next start", async (workers) => {
  // Processes of other tests may write to it meanwhile.
  await rm(FOLDER, { recursive: true, force: true, maxRetries: 50 });
  const gateway = await startGateway(database, { WEB_CONCURRENCY: workers, NODE_COMPILE_CACHE: undefined });
  expect(await stopped(gateway, "SIGTERM")).toBe(0);
  expect(await cachedFiles()).toBeGreaterThan(500);
});

test("a service that may not keep compiled code starts without it", async () => {
  const gateway = await startGateway(database, { NODE_COMPILE_CACHE: "/dev/null/compiled" });
  expect(gateway.logged()).not.toContain("/dev/null/compiled");
  expect(await stopped(gateway, "SIGTERM")).toBe(0);
});

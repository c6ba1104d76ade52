import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { readFile, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { freePort } from "../../bench/measuring/free-port.ts";
import { useDatabase } from "../database.ts";
import { useFolder } from "../fixture.ts";
import { type RunOptions, run } from "../program.ts";
import { SECRET } from "../secret.ts";
import { MAY_MOUNT, mountSmallDisk, saySkipped } from "../small-disk.ts";
import { until } from "../until.ts";

saySkipped("A full disk behind standard error that has room again");

/** Each is a line of the log: so many are more than a pipe and the service hold together. */
const REQUESTS = 400;
const LONG_PATH = `/${"x".repeat(8_000)}`;

const database = useDatabase();
const folder = useFolder("content-service-output-");

/** The service, which may not be able to say that it is ready. */
async function startUnheard(options: RunOptions, settings: NodeJS.ProcessEnv = {}) {
  const [port, adminPort] = [await freePort(), await freePort()];
  const environment = {
    DATABASE_URL: database.url,
    OWNER_DATABASE_URL: database.ownerUrl,
    JWT_SECRET: SECRET,
    RATE_LIMIT: "0",
    PORT: String(port),
    ADMIN_PORT: String(adminPort),
    ...settings,
  };
  const { child } = run("server.js", environment, options);
  const url = `http://127.0.0.1:${port}`;
  const isWell = async () => {
    const answer = await fetch(`${url}/health`).then(
      (response) => response.text(),
      () => "",
    );
    return answer.startsWith('{"status":"ok"');
  };
  return {
    child,
    url,
    ready: () => until(async () => child.exitCode !== null || (await isWell())),
    async droppedLines() {
      const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
      return Number(/^content_service_log_lines_dropped_total (\d+)/m.exec(metrics)?.[1]);
    },
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      return (await ended)[0];
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
    },
  };
}

async function fillLog(url: string): Promise<void> {
  for (let request = 0; request < REQUESTS; request += 20) {
    await Promise.all(Array.from({ length: 20 }, async () => (await fetch(url + LONG_PATH)).arrayBuffer()));
  }
}

type Unheard = Awaited<ReturnType<typeof startUnheard>>;

/** Expects a service whose output and log are lost to serve, to say how much was lost, and to end when it is told to. */
async function expectServedUnheard(service: Unheard): Promise<void> {
  const { child, url, ready, droppedLines, stop } = service;
  await ready();
  await fillLog(url);
  expect((await fetch(`${url}/health/live`)).status).toBe(200);
  await until(async () => (await droppedLines()) > 0);
  // It says so on standard output, and several processes are replaced by others, which inherit the unread output.
  child.kill("SIGUSR2");
  for (let request = 0; request < 20; request++) expect((await fetch(`${url}/health`)).status).toBe(200);
  expect(await stop()).toBe(0);
}

describe("standard output and standard error that are", () => {
  test.skipIf(MAY_MOUNT)("a full disk lose only their own output", async () => {
    const output = openSync("/dev/full", "w");
    await using service = await startUnheard({ output });
    closeSync(output);
    await expectServedUnheard(service);
  });

  test("a pipe without a reader lose only their own output, in several processes too", async () => {
    const pipe = join(folder, "unread");
    execFileSync("mkfifo", [pipe]);
    const output = openSync(pipe, "r+");
    await using service = await startUnheard({ output }, { WEB_CONCURRENCY: "2" });
    await expectServedUnheard(service);
    closeSync(output);
  });

  test("a pipe whose reader has exited lose only their own output", async () => {
    await using service = await startUnheard({});
    service.child.stdout!.destroy();
    service.child.stderr!.destroy();
    await expectServedUnheard(service);
  });

  test.runIf(MAY_MOUNT)("a disk that was full write again when it has space", async () => {
    await using disk = await mountSmallDisk("4m");
    const file = join(disk.folder, "output");
    const output = openSync(file, "a");
    await using service = await startUnheard({ output });
    closeSync(output);
    await service.ready();
    const ballast = join(disk.folder, "ballast");
    const { bavail, bsize } = await statfs(disk.folder);
    await writeFile(ballast, Buffer.alloc((bavail - 8) * bsize));
    await fillLog(service.url);
    expect(await service.droppedLines()).toBeGreaterThan(0);
    await rm(ballast);
    await (await fetch(service.url)).arrayBuffer();
    const logged = async () => (await readFile(file, "utf8")).split("\n").filter((line) => line.startsWith("{"));
    await until(async () => (await logged()).some((line) => line.includes("could not be written")));
    const lost = (await logged()).filter((line) => !line.endsWith("}"));
    expect(lost.length).toBeLessThanOrEqual(1);
    const [result] = (await logged()).filter((line) => line.includes("could not be written"));
    expect(JSON.parse(result!).dropped).toBe(await service.droppedLines());
    expect(await service.stop()).toBe(0);
  });
});

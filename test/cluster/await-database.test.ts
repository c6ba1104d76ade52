import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "../../bench/measuring/free-port.ts";
import { startCluster } from "../../cluster/embedded/cluster.ts";
import { awaitDatabase } from "../../cluster/served-postgres.ts";
import { urlOf } from "../database.ts";

test("a database that responds ends the wait", async () => {
  const steps: string[] = [];
  await awaitDatabase(urlOf("postgres", "postgres"), "DATABASE_URL", (step) => steps.push(step));
  expect(steps).toEqual([]);
});

test("a database that does not exist is reported immediately, with the setting's name and no password", async () => {
  const url = urlOf("postgres:hunter2", "nowhere");
  const attempt = awaitDatabase(url, "DATABASE_URL", () => {});
  await expect(attempt).rejects.toThrow(/DATABASE_URL\) cannot be used: database "nowhere" does not exist/);
  await expect(awaitDatabase(url, "DATABASE_URL", () => {})).rejects.not.toThrow("hunter2");
});

test("a missing password is reported with an error", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "await-"));
  const port = await freePort();
  const cluster = await startCluster({ dataDir, port, tell: () => {} });
  try {
    const attempt = awaitDatabase(`postgresql://postgres@127.0.0.1:${port}/postgres`, "DATABASE_URL", () => {});
    await expect(attempt).rejects.toThrow("the server asks for a password, and the connection string has none");
  } finally {
    await cluster.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
});

test("a server that has not started yet is awaited", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "await-"));
  const steps: string[] = [];
  const port = await freePort();
  const options = { dataDir, port, tell: () => {} };
  const waiting = awaitDatabase(
    `postgresql://postgres@/postgres?host=${dataDir}/socket&port=${port}`,
    "DATABASE_URL",
    (step) => steps.push(step),
  );
  const cluster = await startCluster(options);
  try {
    await waiting;
    expect(steps).toEqual([expect.stringContaining("waiting for the database")]);
  } finally {
    await cluster.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
});

test("a host name that does not resolve yet, as of a container that starts later, is retried too", async () => {
  const steps: string[] = [];
  const url = "postgresql://me@database.invalid/app";
  const waiting = awaitDatabase(url, "DATABASE_URL", (step) => steps.push(step), 300);
  await expect(waiting).rejects.toThrow(/database\.invalid \(DATABASE_URL\) cannot be used/);
  expect(steps).toEqual([expect.stringMatching(/^waiting for the database at database\.invalid/)]);
});

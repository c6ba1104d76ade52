import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { freePort } from "../../bench/measuring/free-port.ts";
import { startCluster } from "../../cluster/embedded/cluster.ts";
import { awaitDatabase } from "../../cluster/served-postgres.ts";
import { urlOf } from "../database.ts";
import { socketOf } from "../postgres-wire.ts";
import { until } from "../until.ts";

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

describe("a server that accepts connections before the database runs", () => {
  const stay: Answer = () => {};
  const close: Answer = (socket) => socket.destroy();
  const refuse =
    (code: string): Answer =>
    (socket) => {
      const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0Mnot now\0\0`);
      const length = Buffer.alloc(4);
      length.writeInt32BE(fields.length + 4);
      socket.once("data", () => socket.end(Buffer.concat([Buffer.from("E"), length, fields])));
    };

  test.each([
    ["says nothing", stay],
    ["closes them", close],
    ["stops", refuse("57P01")],
    ["has crashed", refuse("57P02")],
    ["starts", refuse("57P03")],
    ["has no memory left", refuse("53200")],
    ["is a pooler without a server", refuse("08006")],
  ])("and %s is awaited", async (_, answer) => {
    const steps: string[] = [];
    const place = await openServer(answer);
    const waiting = awaitDatabase(place.url, "DATABASE_URL", (step) => steps.push(step), undefined, 1_000);
    await until(() => steps.length === 1);
    place.serve();
    await waiting;
    expect(steps).toEqual([expect.stringContaining("waiting for the database at 127.0.0.1:")]);
    await place.close();
  });

  test("and says nothing until the end is reported", async () => {
    const { url, close } = await openServer(stay);
    const waiting = awaitDatabase(url, "DATABASE_URL", () => {}, 0, 100);
    await expect(waiting).rejects.toThrow(/^The database at 127.* \(DATABASE_URL\) cannot be used: timeout expired$/);
    await close();
  });

  test("and refuses the password is not awaited", async () => {
    const { url, close } = await openServer(refuse("28P01"));
    await expect(awaitDatabase(url, "DATABASE_URL", () => {})).rejects.toThrow("cannot be used: not now");
    await close();
  });
});

test("the time of an attempt is not that of a process which cannot read the answer", async () => {
  const steps: string[] = [];
  const url = urlOf("postgres", "postgres");
  const waiting = awaitDatabase(url, "DATABASE_URL", (step) => steps.push(step), undefined, 2_000);
  await setImmediate();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500);
  await waiting;
  expect(steps).toEqual([]);
});

type Answer = (socket: Socket) => void;

/** A server that answers as told, until it serves the database of the tests on the same address. */
async function openServer(answer: Answer) {
  const postgres = socketOf(urlOf("postgres", "postgres"));
  let respond = answer;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    respond(socket);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `postgresql://postgres@127.0.0.1:${(server.address() as AddressInfo).port}/postgres`,
    serve() {
      respond = (socket) => pipeline(socket, connect(postgres), socket, () => {});
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

import type { Server, ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { drain } from "../../http/drain.ts";
import { limitUnreadResponses, type TrackUnread } from "../../http/response.ts";
import { openServer } from "../../http/server.ts";
import { place } from "../rest-gateway/servers.ts";
import { until } from "../until.ts";

/** The kernel does not take as much for a client that does not read. */
const LENGTH = 16 * 2 ** 20;
const ANSWER = Buffer.alloc(LENGTH, "x");

let server: Server;
const responses: ServerResponse[] = [];
afterEach(async () => {
  await drain(server, 0);
  responses.splice(0);
});

async function serve(unread: TrackUnread): Promise<void> {
  server = await openServer((_request, response) => {
    responses.push(response);
    response.end(ANSWER);
    unread(response);
  }, place);
}

/** Has asked, and reads nothing yet. */
async function ask(): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => {});
  socket.pause();
  const request = responses.length;
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await until(() => responses.length > request);
  return socket;
}

async function readAll(socket: Socket): Promise<number> {
  let bytes = 0;
  socket.on("data", (chunk: Buffer) => (bytes += chunk.length)).resume();
  await until(() => socket.closed || bytes > LENGTH);
  return bytes;
}

describe("a client that does not read", () => {
  test("is disconnected after a while", async () => {
    await serve(limitUnreadResponses(2 * LENGTH, 50));
    const socket = await ask();
    await until(() => responses[0]!.destroyed);
    expect(await readAll(socket)).toBeLessThan(LENGTH);
  });

  test("is kept while it reads something now and then", async () => {
    const stallMs = 1_000;
    await serve(limitUnreadResponses(2 * LENGTH, stallMs));
    const startedAt = performance.now();
    const socket = await ask();
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes % 2 ** 20 < chunk.length) socket.pause();
    });
    while (bytes <= LENGTH) {
      socket.resume();
      await sleep(100);
      expect(socket.closed).toBe(false);
    }
    expect(performance.now() - startedAt).toBeGreaterThan(1.5 * stallMs);
    socket.destroy();
  });

  test("keeps its connection after reading, and has the full time for its next request", async () => {
    const stallMs = 1_000;
    await serve(limitUnreadResponses(2 * LENGTH, stallMs));
    const socket = await ask();
    await readAll(socket);
    await until(() => responses[0]!.writableFinished);
    await sleep(1.5 * stallMs);
    expect(socket.destroyed).toBe(false);
    socket.destroy();
  });

  test("is disconnected sooner when too much waits for it, in the order of arrival", async () => {
    await serve(limitUnreadResponses(2.5 * LENGTH, 60_000));
    const sockets = [await ask(), await ask(), await ask(), await ask()];
    await until(() => responses.filter(({ destroyed }) => destroyed).length === 2);
    expect(responses.map(({ destroyed }) => destroyed)).toEqual([true, true, false, false]);
    expect(await readAll(sockets[3]!)).toBeGreaterThan(LENGTH);
    for (const socket of sockets) socket.destroy();
  });
});

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { errorHeaders, toHttpError } from "../../http/http-error.ts";
import type { BodyLimit } from "../../http/request.ts";
import { discardBody, RequestBodies } from "../../http/request-body.ts";
import { until } from "../until.ts";

const KNOWN: BodyLimit = { bytes: 1_000_000, isAnonymous: false };
const ANONYMOUS: BodyLimit = { bytes: 1_000_000, isAnonymous: true };
/** Four of them fit, and little else. */
const NEARLY_HALF = "x".repeat(485_000);

let server: Server;
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.close().closeAllConnections();
});

type Options = { readonly idleMs?: number; readonly answer?: (request: IncomingMessage) => Promise<void> };

/** Has memory for two megabytes of bodies. `/anonymous` is read as a stranger's; a request is answered after `answer`. */
async function serve({ idleMs, answer = async () => {} }: Options = {}): Promise<RequestBodies> {
  const bodies = new RequestBodies({ maxBodyBytes: 1_000_000, maxBodyMemory: 2_000_000, ...(idleMs && { idleMs }) });
  server = createServer((request, response) => {
    const limit = request.url === "/anonymous" ? ANONYMOUS : KNOWN;
    const tell = (status: number, headers: Readonly<Record<string, string>>, text: string) =>
      response
        .writeHead(status, { ...headers, "Content-Length": Buffer.byteLength(text) })
        .end(text, () => discardBody(request));
    bodies
      .read(request, response, limit)
      .then(async ({ length }) => {
        await answer(request);
        tell(200, {}, `${length} bytes`);
      })
      .catch((thrown: unknown) => {
        const error = toHttpError(thrown);
        tell(error.status, errorHeaders(error), error.message);
      });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return bodies;
}

type Client = { readonly socket: Socket; said: string };

function dial(): Client {
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
  sockets.push(socket);
  const client = { socket, said: "" };
  socket.on("data", (chunk) => (client.said += chunk));
  return client;
}

/** Sends a part of a body of a megabyte. */
function begin(part: string, path = "/"): Client {
  const client = dial();
  client.socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n${part}`);
  return client;
}

const statusOf = async (client: Client) => {
  await until(() => client.said.includes("\r\n\r\n"));
  return Number(client.said.slice(9, 12));
};

/** A whole body; resolves with the status. */
const send = (bytes: number, path = "/") => {
  const client = dial();
  client.socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n${"x".repeat(bytes)}`);
  return statusOf(client);
};

describe("the memory for bodies", () => {
  test("is shared by all requests: bodies that exceed it are refused temporarily, and small bodies are still accepted", async () => {
    await serve();
    for (let count = 0; count < 4; count++) begin(NEARLY_HALF);
    await until(async () => (await send(100_000)) === 503);
    const refused = begin(NEARLY_HALF);
    expect(await statusOf(refused)).toBe(503);
    expect(refused.said).toMatch(/^Retry-After: 1\r$/m);
    expect(await send(10_000)).toBe(200);
  });

  test("is released when a client disconnects", async () => {
    await serve();
    const clients = Array.from({ length: 4 }, () => begin(NEARLY_HALF));
    await until(async () => (await send(100_000)) === 503);
    for (const { socket } of clients) socket.destroy();
    await expect.poll(async () => (await send(1_000_000)) === 200).toBe(true);
  });

  test("is released when a request is refused or answered", async () => {
    await serve();
    const rest = "x".repeat(500_000);
    for (let count = 0; count < 20; count++) expect(await send(1_000_000)).toBe(200);
    for (let count = 0; count < 20; count++) {
      const client = dial();
      client.socket.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
      for (let part = 0; part < 3; part++) client.socket.write(`${rest.length.toString(16)}\r\n${rest}\r\n`);
      expect(await statusOf(client)).toBe(413);
    }
    expect(await send(1_000_000)).toBe(200);
  });

  test("is in use until the request has been answered", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let arrived = 0;
    await serve({
      answer: () => {
        arrived++;
        return promise;
      },
    });
    const answered = [send(950_000), send(950_000)];
    await until(() => arrived === 2);
    expect(await send(100_000)).toBe(503);
    resolve();
    expect(await Promise.all(answered)).toEqual([200, 200]);
    await until(async () => (await send(950_000)) === 200);
  });

  test("can be used up to its half by anonymous callers, which leaves the other half to authenticated ones", async () => {
    await serve();
    for (let count = 0; count < 3; count++) begin(NEARLY_HALF, "/anonymous");
    await until(async () => (await send(100_000, "/anonymous")) === 503);
    expect(await send(900_000)).toBe(200);
    expect(await send(10_000, "/anonymous")).toBe(200);
  });

  test("includes the parsed body, too", async () => {
    const bodies = await serve({ answer: async (request) => bodies.hold(request, 1_500_000) });
    expect(await send(400_000)).toBe(200);
    // It would not fit either if it were alone.
    expect(await send(600_000)).toBe(413);
    begin(NEARLY_HALF);
    await until(async () => (await send(400_000)) === 503);
  });
});

describe("a body that stalls", () => {
  test("is refused after a while, and releases its memory without a garbage collection", async () => {
    await serve({ idleMs: 200 });
    const before = process.memoryUsage().arrayBuffers;
    const clients = Array.from({ length: 4 }, () => begin(NEARLY_HALF));
    for (const client of clients) {
      expect(await statusOf(client)).toBe(408);
      expect(client.said).toMatch(/^Connection: close\r$/m);
      await until(() => client.socket.destroyed);
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(500_000);
    expect(await send(1_000_000)).toBe(200);
  });

  test("is awaited while some of it arrives now and then", async () => {
    const idleMs = 1_000;
    await serve({ idleMs });
    const startedAt = performance.now();
    const client = begin("");
    for (let part = 0; part < 20; part++) {
      await sleep(idleMs / 10);
      client.socket.write("x".repeat(50_000));
    }
    expect(await statusOf(client)).toBe(200);
    expect(performance.now() - startedAt).toBeGreaterThan(1.5 * idleMs);
  });

  test("is refused if it arrives in very many chunks, which take more memory than their bytes", async () => {
    await serve();
    const client = dial();
    client.socket.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.socket.write("1\r\nx\r\n".repeat(100_000));
    expect([413, 503]).toContain(await statusOf(client));
  });
});

import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { discardBody } from "../../http/request-body.ts";
import { until } from "../until.ts";

const CLIENTS = 60;
const EACH_SENDS = 2 ** 20;
const MOST_AT_ONCE = 2 ** 20;

test("refused bodies are read to their ends, and few of them in a turn of the event loop", async () => {
  const accepted: Socket[] = [];
  let complete = 0;
  const server = createServer((request, response) => {
    response.writeHead(413, { "Content-Length": 0 }).end();
    void discardBody(request)!.then(() => complete++);
  });
  server.on("connection", (socket) => accepted.push(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  for (let count = 0; count < CLIENTS; count++) {
    const client = connect(port, "127.0.0.1").resume();
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${EACH_SENDS}\r\n\r\n`);
    client.write(Buffer.alloc(EACH_SENDS));
  }
  const read = () => accepted.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
  let most = 0;
  while (complete < CLIENTS) {
    const before = read();
    await turn();
    // Before all have been answered, their first pieces come.
    if (accepted.length === CLIENTS && before > CLIENTS * 64 * 1024) most = Math.max(most, read() - before);
  }
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(2 * MOST_AT_ONCE);
  server.close().closeAllConnections();
});

test("a piece of a refused body is released when it is read", async () => {
  const pieces: Buffer[] = [];
  const ended = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    request.on("data", (piece) => pieces.push(piece));
    response.writeHead(413, { "Content-Length": 0 }).end();
    await discardBody(request);
    ended.resolve();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1").resume();
  client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${EACH_SENDS}\r\n\r\n`);
  client.write(Buffer.alloc(EACH_SENDS));
  await ended.promise;
  expect(pieces.length).toBeGreaterThan(1);
  expect(pieces.reduce((sum, { buffer }) => sum + buffer.byteLength, 0)).toBe(0);
  client.destroy();
  server.close().closeAllConnections();
});

test("no more than 256 connections are kept to discard refused bodies: the oldest is closed", async () => {
  const server = createServer((request, response) => {
    response.writeHead(413, { "Content-Length": 0 }).end();
    void discardBody(request);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const clients: Socket[] = [];
  let closed = 0;
  for (let count = 0; count < 300; count++) {
    const client = connect(port, "127.0.0.1").resume();
    client.on("error", () => {}).on("close", () => closed++);
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${EACH_SENDS}\r\n\r\n`);
    clients.push(client);
    await once(client, "data");
  }
  await until(() => closed === 300 - 256);
  expect(clients.slice(0, 44).every(({ destroyed }) => destroyed)).toBe(true);
  expect(clients.slice(44).some(({ destroyed }) => destroyed)).toBe(false);
  for (const client of clients) client.destroy();
  server.close().closeAllConnections();
});

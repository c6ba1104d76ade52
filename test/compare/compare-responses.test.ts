import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { compareResponses } from "./compare-responses.ts";
import type { ComparedService } from "./compared-databases.ts";

const REQUESTS = ["/a", "/b"].map((path) => ({ method: "GET", path, headers: {}, body: null }));
const opened: Server[] = [];

async function openService(respond: (response: ServerResponse, path: string) => void): Promise<ComparedService> {
  const server = createServer((request, response) => respond(response, request.url!)).listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.push(server);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, rewind: async () => {}, close: async () => {} };
}

afterEach(() => {
  for (const server of opened.splice(0)) server.closeAllConnections();
});

test("another status, header or body is a difference", async () => {
  const before = await openService((response) => response.writeHead(200, { "X-Kind": "one" }).end('{"a":1}'));
  const after = await openService((response, path) =>
    path === "/a"
      ? response.writeHead(200, { "X-Kind": "one" }).end('{"a":1}')
      : response.writeHead(201, { "X-Kind": "two" }).end('{"a":2}'),
  );
  expect(await compareResponses(before, after, REQUESTS)).toEqual([
    'GET /b {} \n- status 200\n+ status 201\n- x-kind: one\n+ x-kind: two\n- …{"a":1}\n+ …{"a":2}',
  ]);
});

test("times of these days and random ids are none, other days are", async () => {
  const day = (id: string, at: Date) => `{"id":"${id}","at":"${at.toISOString()}"}`;
  const now = Date.now();
  const before = await openService((response, path) =>
    response.end(day("5c0b2c4e-6d3f-4d5e-8a57-2b6f0d3c9a11", new Date(path === "/a" ? now : "2024-01-01"))),
  );
  const after = await openService((response, path) =>
    response.end(day("6c0b2c4e-6d3f-4d5e-8a57-2b6f0d3c9a11", new Date(path === "/a" ? now + 9_999 : "2024-01-02"))),
  );
  const differences = await compareResponses(before, after, REQUESTS);
  expect(differences.map((text) => text.split(" ")[1])).toEqual(["/b"]);
});

test("a service that ends a connection differs from one that answers", async () => {
  const before = await openService((response) => response.end("{}"));
  const after = await openService((response) => response.socket!.destroy());
  expect(await compareResponses(before, after, REQUESTS)).toHaveLength(2);
});

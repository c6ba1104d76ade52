import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { startLoadGenerator } from "../../../bench/comparison/load.ts";

const generator = startLoadGenerator();
afterAll(() => generator[Symbol.dispose]());

async function loadOn(listener: RequestListener, seconds = 0.1) {
  const server = createServer(listener).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const request = ["GET /things/", " HTTP/1.1\r\nHost: localhost\r\nAuthorization: ", "\r\n\r\n"] as const;
  const values = { step: 5, count: 2 };
  return generator.run({ port, connections: 2, seconds, request, tokens: ["a", "b"], values });
}

describe("the load generator", () => {
  test("sends the next request after each response, with all tokens and random values", async () => {
    const seen = new Set<string>();
    let count = 0;
    const { requests, p50, p99 } = await loadOn((request, response) => {
      seen.add(`${request.url} ${request.headers.authorization}`);
      count++;
      response.end("answer");
    });
    expect(requests).toBe(count);
    expect(p99).toBeGreaterThanOrEqual(p50);
    expect([...seen].sort()).toEqual(["/things/0 a", "/things/0 b", "/things/5 a", "/things/5 b"]);
  });

  test("reads chunked responses, and those without a body", async () => {
    let count = 0;
    const { requests } = await loadOn((_request, response) => {
      if (count++ % 2) response.writeHead(204).end();
      else {
        response.write("x".repeat(300_000));
        response.end("[]");
      }
      // Large responses take a slow machine longer.
    }, 1);
    expect(requests).toBe(count);
    expect(count).toBeGreaterThan(2);
  });

  test("fails with the response if it is an error", async () => {
    await expect(loadOn((_request, response) => response.writeHead(418).end("short and stout"))).rejects.toThrow(
      /418.*short and stout/s,
    );
  });
});

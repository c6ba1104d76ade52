import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, test } from "vitest";
import { place, useServers } from "../rest-gateway/servers.ts";

const start = useServers();

/** Sends these bytes, and returns the server's answer when it has closed the connection. */
async function say(server: Server, bytes: string): Promise<string> {
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  let answer = "";
  socket.on("data", (chunk) => (answer += chunk)).on("error", () => {});
  socket.write(bytes);
  await once(socket, "close");
  return answer;
}

describe("an invalid HTTP request", () => {
  test("with headers above the limit is 431, in the error vocabulary", async () => {
    const server = await start((_request, response) => response.end("never"));
    const answer = await say(server, `GET / HTTP/1.1\r\nHost: a\r\nX-Big: ${"x".repeat(9000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
    expect(JSON.parse(answer.split("\r\n\r\n")[1]!)).toEqual({
      error: {
        code: "VALIDATION_ERROR",
        message: "The URL and headers are too large.",
        details: [],
        requestId: /X-Request-Id: (\S+)/.exec(answer)![1],
        timestamp: expect.any(String),
        documentation: "/docs/errors#VALIDATION_ERROR",
      },
    });
  });

  test("has the error format of ERROR_BODY", async () => {
    const server = await start((_request, response) => response.end("never"), { ...place, errorBody: "flat" });
    const answer = await say(server, "GET / FTP/9\r\n\r\n");
    expect(JSON.parse(answer.split("\r\n\r\n")[1]!)).toEqual({
      error: "VALIDATION_ERROR",
      message: "This is not a valid HTTP request.",
      field: null,
    });
  });

  test.each([
    "GET / FTP/9\r\n\r\n",
    "\u0000\u0001\u0002\r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
  ])("%j is 400", async (bytes) => {
    const server = await start((_request, response) => response.end("never"));
    expect(await say(server, bytes)).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe("a request with several Host headers", () => {
  const faults = {
    error: expect.objectContaining({
      code: "VALIDATION_ERROR",
      message: "The request has more than one Host header; send one.",
    }),
  };

  test.each(["Host: a\r\nHost: b", "host: a\r\nX: y\r\nHOST: a"])(
    "such as %j is 400, and reaches no handler",
    async (hosts) => {
      const server = await start((_request, response) => response.end("reached"));
      const answer = await say(server, `GET /health HTTP/1.1\r\n${hosts}\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
      expect(JSON.parse(answer.split("\r\n\r\n")[1]!)).toEqual(faults);
      expect(await say(server, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  test("is 400 for a WebSocket", async () => {
    const server = await start(
      (_request, response) => response.end("reached"),
      place,
      (_request, socket) => {
        socket.end("HTTP/1.1 418 Taken\r\n\r\n");
      },
    );
    const upgrade = (hosts: string) =>
      say(server, `GET /graphql HTTP/1.1\r\n${hosts}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    const answer = await upgrade("Host: a\r\nHost: b");
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(JSON.parse(answer.split("\r\n\r\n")[1]!)).toEqual(faults);
    expect(await upgrade("Host: a")).toMatch(/^HTTP\/1\.1 418 /);
  });
});

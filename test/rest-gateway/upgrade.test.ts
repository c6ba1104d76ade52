import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { makeUpgrade, wantsWebSocket } from "../../rest-gateway/upgrade.ts";

const servers: ReturnType<typeof createServer>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function ask(path: string, headers: Readonly<Record<string, string>> = {}) {
  const taken: string[] = [];
  const server = createServer({ shouldUpgradeCallback: wantsWebSocket }, (_request, response) => response.end("plain"));
  const upgrade = makeUpgrade({
    "/sockets": ({ url, headers: given }, socket) => {
      taken.push(url!, String(given["x-request-id"]));
      socket.end("HTTP/1.1 418 Taken\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    },
  });
  server.on("upgrade", upgrade);
  servers.push(server.listen(0));
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const asked = request({ port, path, headers: { Connection: "Upgrade", Upgrade: "websocket", ...headers } });
  asked.end();
  const [response] = await once(asked, "response");
  response.resume();
  return { status: response.statusCode as number, taken };
}

describe("a request for a WebSocket", () => {
  test("goes to the interface at its address, whatever its query, with an id", async () => {
    expect(await ask("/sockets?key=1", { "X-Request-Id": "mine" })).toEqual({
      status: 418,
      taken: ["/sockets?key=1", "mine"],
    });
    const { taken } = await ask("/sockets");
    expect(taken[1]).toMatch(/^[0-9a-f-]{36}$/);
  });

  test.each(["/", "/socket", "/sockets/", "/sockets/x", "/toString", "/__proto__"])(
    "at %s is nobody's: 404",
    async (path) => {
      expect(await ask(path)).toEqual({ status: 404, taken: [] });
    },
  );

  test("in another protocol is no such request", async () => {
    expect(await ask("/sockets", { Upgrade: "h2c" })).toEqual({ status: 200, taken: [] });
    expect(wantsWebSocket({ headers: { upgrade: "WebSocket" } })).toBe(true);
    expect(wantsWebSocket({ headers: {} })).toBe(false);
  });
});

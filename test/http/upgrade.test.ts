import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, describe, expect, test } from "vitest";
import type { UpgradeListener } from "../../http/request.ts";
import { type AdmissionForUpgrade, makeUpgradeRouter, wantsWebSocket } from "../../http/server.ts";
import { shuttingDown } from "../../postgres/database/database-errors.ts";
import type { PeerWorkers } from "../../runtime/concurrency/peer-workers.ts";

import { connectWorkers } from "../peer-workers.ts";

const servers: ReturnType<typeof createServer>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

type OpenOptions = {
  readonly maxConnections?: number;
  readonly admissionOf?: AdmissionForUpgrade;
  readonly peers?: PeerWorkers;
  readonly folder?: { readonly prefix: string; readonly upgrade: UpgradeListener };
};

async function open(
  interfaces: Readonly<Record<string, UpgradeListener>>,
  { maxConnections = 100, ...options }: OpenOptions = {},
): Promise<number> {
  const server = createServer({ shouldUpgradeCallback: wantsWebSocket }, (_request, response) => response.end("plain"));
  server.on("upgrade", makeUpgradeRouter({ interfaces, maxConnections, ...options }));
  servers.push(server.listen(0));
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function ask(path: string, headers: Readonly<Record<string, string>> = {}, options: OpenOptions = {}) {
  const taken: string[] = [];
  const interfaces: Readonly<Record<string, UpgradeListener>> = {
    "/sockets": ({ url, headers: given }, socket) => {
      taken.push(url!, String(given["x-request-id"]));
      socket.end("HTTP/1.1 418 Taken\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    },
  };
  const port = await open(interfaces, options);
  const sent = request({ port, path, headers: { Connection: "Upgrade", Upgrade: "websocket", ...headers } });
  sent.end();
  const [response] = await once(sent, "response");
  response.resume();
  return { status: response.statusCode as number, taken };
}

describe("a request for a WebSocket", () => {
  test("is routed by its path, whatever its query, with a request id", async () => {
    expect(await ask("/sockets?key=1", { "X-Request-Id": "mine" })).toEqual({
      status: 418,
      taken: ["/sockets?key=1", "mine"],
    });
    const { taken } = await ask("/sockets");
    expect(taken[1]).toMatch(/^[0-9a-f-]{36}$/);
  });

  test.each(["/", "/socket", "/sockets/", "/sockets/x", "/toString", "/__proto__"])(
    "at %s has no route: 404",
    async (path) => {
      expect(await ask(path)).toEqual({ status: 404, taken: [] });
    },
  );

  test("above the maximum of open sockets is 503, until one of them closes", async () => {
    const opened: Duplex[] = [];
    const accept: UpgradeListener = (_request, socket) => {
      opened.push(socket);
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    };
    const port = await open({ "/one": accept, "/other": accept }, { maxConnections: 2 });
    const connect = async (path: string) => {
      const sent = request({ port, path, headers: { Connection: "Upgrade", Upgrade: "websocket" } }).end();
      const [response] = await Promise.race([once(sent, "upgrade"), once(sent, "response")]);
      return response as IncomingMessage;
    };
    expect([(await connect("/one")).statusCode, (await connect("/other")).statusCode]).toEqual([101, 101]);
    const refused = await connect("/one");
    expect([refused.statusCode, refused.headers["retry-after"]]).toEqual([503, "10"]);
    await once(opened[0]!.destroy(), "close");
    expect((await connect("/one")).statusCode).toBe(101);
    for (const socket of opened) socket.destroy();
  });

  test("is refused when the workers together have the maximum, wherever the others are open", async () => {
    const opened: Duplex[] = [];
    const accept: UpgradeListener = (_request, socket) => {
      opened.push(socket);
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    };
    const workers = connectWorkers();
    const start = async () => {
      const peers = workers.join();
      const port = await open({ "/sockets": accept }, { maxConnections: 3, peers });
      return { peers, port };
    };
    const connect = async ({ port }: { port: number }) => {
      const sent = request({ port, path: "/sockets", headers: { Connection: "Upgrade", Upgrade: "websocket" } }).end();
      const [response] = await Promise.race([once(sent, "upgrade"), once(sent, "response")]);
      return (response as IncomingMessage).statusCode;
    };
    const [one, other] = [await start(), await start()];
    expect([await connect(one), await connect(one), await connect(one)]).toEqual([101, 101, 101]);
    expect(await connect(other)).toBe(503);
    // One that starts later is told how many are open.
    const late = await start();
    expect(await connect(late)).toBe(503);
    await once(opened[0]!.destroy(), "close");
    expect([await connect(late), await connect(other)]).toEqual([101, 503]);
    one.peers.exit();
    expect(await connect(other)).toBe(101);
    for (const socket of opened) socket.destroy();
  });

  test("is refused with the status of the cause, also while the service stops", async () => {
    const stopping = () => {
      throw shuttingDown();
    };
    expect(await ask("/sockets", {}, { admissionOf: stopping })).toEqual({ status: 503, taken: [] });
  });

  test("below the prefix of a folder goes to the folder, which counts it itself", async () => {
    const paths: string[] = [];
    const upgrade: UpgradeListener = ({ url }, socket) => {
      paths.push(url!);
      socket.end("HTTP/1.1 418 Taken\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    };
    const counted = () => {
      throw shuttingDown();
    };
    const options = { folder: { prefix: "/below/", upgrade }, admissionOf: counted };
    expect((await ask("/below/a/b?c", {}, options)).status).toBe(418);
    expect((await ask("/below", {}, options)).status).toBe(404);
    expect((await ask("/sockets", {}, options)).status).toBe(503);
    expect(paths).toEqual(["/below/a/b?c"]);
  });

  test("with another protocol is not an upgrade to a WebSocket", async () => {
    expect(await ask("/sockets", { Upgrade: "h2c" })).toEqual({ status: 200, taken: [] });
    expect(wantsWebSocket({ headers: { upgrade: "WebSocket" } })).toBe(true);
    expect(wantsWebSocket({ headers: {} })).toBe(false);
  });
});

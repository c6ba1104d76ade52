import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { Agent, get, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { acceptWaiting, drain } from "../../http/drain.ts";
import { openServer, serverUrl } from "../../http/server.ts";
import { collectGarbage } from "../../runtime/memory/collect-garbage.ts";
import { place, useServers } from "../rest-gateway/servers.ts";
import { until } from "../until.ts";

const start = useServers();

describe("drain", () => {
  test("a request in flight is answered, an idle connection is closed, and a new one is first answered with an error, then refused", async () => {
    let release = () => {};
    let isTurningAway = false;
    const server = await start((request, response) => {
      if (request.url === "/slow") release = () => response.end("done");
      else response.end(isTurningAway ? "away" : "quick");
    });
    const url = serverUrl(server, "127.0.0.1");
    await (await fetch(url)).text();
    const slow = fetch(`${url}/slow`);
    await once(server, "request");
    const turnAway = () => {
      isTurningAway = true;
    };
    const drained = drain(server, 60_000, { refuseRequests: turnAway });
    await until(() => isTurningAway);
    const late = await fetch(url);
    expect([late.headers.get("connection"), await late.text()]).toEqual(["close", "away"]);
    release();
    expect(await (await slow).text()).toBe("done");
    await drained;
    await expect(fetch(url)).rejects.toThrow();
  });

  test("requests that come while it closes are answered when it no longer listens: none comes after them to be reset", async () => {
    const server = await start((_request, response) => void response.end("away"));
    const url = serverUrl(server, "127.0.0.1");
    const closing = Promise.withResolvers<void>();
    let isClosing = false;
    let answered = 0;
    const drained = drain(server, 60_000, {
      beforeClosing: (hold) => {
        hold();
        isClosing = true;
        return closing.promise;
      },
    });
    await until(() => isClosing);
    const held = Array.from({ length: 5 }, async () => {
      const text = await (await fetch(url)).text();
      answered++;
      return [text, server.listening];
    });
    await until(async () => (await promisify(server.getConnections.bind(server))()) === 5);
    await sleep(50);
    expect(answered).toBe(0);
    closing.resolve();
    expect(await Promise.all(held)).toEqual(held.map(() => ["away", false]));
    await drained;
  });

  test("clients that keep their connections busy lose no request: each response closes its connection", async () => {
    const server = await start((_request, response) => void setTimeout(() => response.end("ok"), 5));
    const { port } = server.address() as AddressInfo;
    const faults: unknown[] = [];
    let answered = 0;
    const clients = Array.from({ length: 50 }, async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (let response: string | undefined; response !== "close"; answered++) {
        const request = get({ host: "127.0.0.1", port, agent });
        const [answer] = (await once(request, "response")) as [IncomingMessage];
        response = answer.headers.connection;
        answer.resume();
        await once(answer, "end");
      }
    }).map((client) => client.catch((fault) => faults.push(fault)));
    await until(() => answered >= 500);
    await Promise.all([drain(server, 60_000), ...clients]);
    expect(faults).toEqual([]);
  });

  test("connections that wait in the listen queue are all accepted before it is closed", async () => {
    const server = await start((_request, response) => void response.end("ok"));
    const { port } = server.address() as AddressInfo;
    let accepted = 0;
    server.on("connection", () => accepted++);
    // This process accepts none of them meanwhile.
    const connect = `for (let n = 0; n < 50; n++) require("net").connect(${port}, "127.0.0.1").unref();
      setTimeout(() => process.exit(), 500)`;
    expect(spawnSync(process.execPath, ["-e", connect]).status).toBe(0);
    await acceptWaiting(server);
    expect(accepted).toBe(50);
  });

  test("a response that started before draining closes its connection too", async () => {
    let release = () => {};
    const server = await start((_request, response) => {
      release = () => response.writeHead(200, ["X-Kept", "yes"]).end();
    });
    const request = fetch(serverUrl(server, "127.0.0.1"));
    await once(server, "request");
    const drained = drain(server, 60_000);
    release();
    const { headers } = await request;
    expect([headers.get("connection"), headers.get("x-kept")]).toEqual(["close", "yes"]);
    await drained;
  });

  test("a request that exceeds the time limit is aborted", async () => {
    const server = await start(() => {});
    const hanging = fetch(serverUrl(server, "127.0.0.1"));
    hanging.catch(() => {});
    await once(server, "request");
    await drain(server, 50);
    await expect(hanging).rejects.toThrow();
  });

  test("a server that has closed is forgotten with its listeners", async () => {
    const open = async () => {
      const server = await openServer((_request, response) => void response.end("done"), place);
      await (await fetch(serverUrl(server, "127.0.0.1"))).text();
      await drain(server, 1_000);
      return new WeakRef(server);
    };
    const closed = await open();
    const isForgotten = () => {
      collectGarbage();
      return closed.deref() === undefined;
    };
    await expect.poll(isForgotten).toBe(true);
  });
});

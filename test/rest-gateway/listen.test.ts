import { once } from "node:events";
import { Agent, get, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { addressOf, checkAddress, drain, listen } from "../../rest-gateway/listen.ts";

const place = {
  host: "127.0.0.1",
  port: 0,
  maxHeaderBytes: 8192,
  requestTimeout: 60,
  httpsCertificate: null,
  httpsKey: null,
};
const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => drain(server, 0).catch(() => {})));
});

async function start(handler: Parameters<typeof listen>[0], options: Partial<typeof place> = {}): Promise<Server> {
  const server = await listen(handler, { ...place, ...options });
  servers.push(server);
  return server;
}

/** What the server says to these bytes, until it closes the connection. */
async function say(server: Server, bytes: string): Promise<string> {
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  let answer = "";
  socket.on("data", (chunk) => (answer += chunk)).on("error", () => {});
  socket.write(bytes);
  await once(socket, "close");
  return answer;
}

describe("listen", () => {
  test("a port in use is told with what to do, before and while listening", async () => {
    const { port } = (await start(() => {})).address() as AddressInfo;
    await expect(checkAddress({ ...place, port })).rejects.toThrow(`Port ${port} of 127.0.0.1 is in use`);
    await expect(listen(() => {}, { ...place, port })).rejects.toThrow("set PORT to another port");
    await checkAddress(place);
  });

  test("an address that is not of this machine is told so", async () => {
    await expect(checkAddress({ ...place, host: "192.0.2.1" })).rejects.toThrow("Set HOST");
  });

  test("addressOf is what a client can open", async () => {
    const server = await start(() => {});
    const { port } = server.address() as AddressInfo;
    expect(addressOf(server, "127.0.0.1")).toBe(`http://127.0.0.1:${port}`);
    expect(addressOf(server, "0.0.0.0")).toBe(`http://localhost:${port}`);
    expect(addressOf(server, "::1")).toBe(`http://[::1]:${port}`);
  });
});

describe("what is no request", () => {
  test("headers beyond the limit are 431, in the error vocabulary", async () => {
    const server = await start((_request, response) => response.end("never"));
    const answer = await say(server, `GET / HTTP/1.1\r\nHost: a\r\nX-Big: ${"x".repeat(9000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
    expect(JSON.parse(answer.split("\r\n\r\n")[1]!)).toEqual({
      error: { code: "VALIDATION_ERROR", message: "The request's headers are too large." },
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

describe("drain", () => {
  test("a request in flight is answered, a connection that waits is closed, a new one is refused", async () => {
    let release = () => {};
    const server = await start((request, response) => {
      if (request.url === "/slow") release = () => response.end("done");
      else response.end("quick");
    });
    const url = addressOf(server, "127.0.0.1");
    await (await fetch(url)).text();
    const slow = fetch(`${url}/slow`);
    await once(server, "request");
    const drained = drain(server, 60_000);
    while (server.listening) await sleep(10);
    await expect(fetch(url)).rejects.toThrow();
    release();
    expect(await (await slow).text()).toBe("done");
    await drained;
  });

  test("clients that keep their connections busy lose no request: each is told to close its own", async () => {
    const server = await start((_request, response) => void setTimeout(() => response.end("ok"), 5));
    const { port } = server.address() as AddressInfo;
    const faults: unknown[] = [];
    let answered = 0;
    const clients = Array.from({ length: 50 }, async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (let told: string | undefined; told !== "close"; answered++) {
        const asked = get({ host: "127.0.0.1", port, agent });
        const [answer] = (await once(asked, "response")) as [IncomingMessage];
        told = answer.headers.connection;
        answer.resume();
        await once(answer, "end");
      }
    }).map((client) => client.catch((fault) => faults.push(fault)));
    while (answered < 500) await sleep(5);
    await Promise.all([drain(server, 60_000), ...clients]);
    expect(faults).toEqual([]);
  });

  test("an answer that was under way when draining began closes its connection too", async () => {
    let release = () => {};
    const server = await start((_request, response) => {
      release = () => response.writeHead(200, ["X-Kept", "yes"]).end();
    });
    const asked = fetch(addressOf(server, "127.0.0.1"));
    await once(server, "request");
    const drained = drain(server, 60_000);
    release();
    const { headers } = await asked;
    expect([headers.get("connection"), headers.get("x-kept")]).toEqual(["close", "yes"]);
    await drained;
  });

  test("what takes longer than allowed is cut off", async () => {
    const server = await start(() => {});
    const hanging = fetch(addressOf(server, "127.0.0.1"));
    hanging.catch(() => {});
    await once(server, "request");
    await drain(server, 50);
    await expect(hanging).rejects.toThrow();
  });
});

import { once } from "node:events";
import { request as ask, createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { afterEach, describe, expect, test, vi } from "vitest";
import { readConfig } from "../../config/config.ts";
import { type NodeHandler, toNodeHandler } from "../../http/node-handler.ts";
import type { BodyLimit, GatewayHandler } from "../../http/request.ts";
import type { BodyChunk, BodyStream } from "../../http/response.ts";
import { makeRouter } from "../../http/router.ts";
import { toSignal } from "../../runtime/concurrency/abort.ts";
import { until } from "../until.ts";

const KILOBYTE = 1024;
const LIMIT: BodyLimit = { bytes: Number.POSITIVE_INFINITY, isAnonymous: false };
const closing: (() => void)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const close of closing.splice(0)) close();
});

type Source = {
  readonly flow: BodyStream;
  /** The number of its pieces that were asked for, and the number that are done with. */
  taken: number;
  released: number;
  /** The last one was given, or nobody wants it any more. */
  isOver: boolean;
};

/** Makes so many pieces of so many letters; an error takes the place of the one behind the last. */
function pieces(count: number, bytes: number, { fails = false } = {}): Source {
  const source: Source = { flow: read(), taken: 0, released: 0, isOver: false };
  async function* read(): AsyncGenerator<BodyChunk> {
    try {
      for (let index = 0; index < count; index++) {
        await sleep(1);
        source.taken++;
        yield { data: Buffer.alloc(bytes, "x"), release: () => void source.released++ };
      }
      if (fails) throw new Error("the source ran dry");
    } finally {
      source.isOver = true;
    }
  }
  return source;
}

/** Starts a server that answers everything with the results of `handle`. */
async function start(handle: GatewayHandler) {
  const lines: Record<string, unknown>[] = [];
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  const { config } = readConfig({ MAX_BODY_BYTES: "100000" });
  const log = pino({ level: "debug" }, sink);
  const serve = makeRouter({ routes: {}, folders: { "/rest/v1": handle }, errorBody: config.errorBody, log });
  const answer: NodeHandler = toNodeHandler(serve, config, log);
  // The options of listen.ts.
  const server = createServer({ optimizeEmptyRequests: true }, (request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => server.close().closeAllConnections());
  return { port: (server.address() as AddressInfo).port, lines };
}

async function get(port: number, method = "GET"): Promise<IncomingMessage> {
  const request = ask({ port, host: "127.0.0.1", method, path: "/rest/v1", agent: false }).on("error", () => {});
  request.end();
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  return answer;
}

async function textOf(answer: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of answer) text += chunk;
  return text;
}

/** Says these bytes and nothing more until it is read. */
function dial(port: number, bytes: string): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  closing.push(() => socket.destroy());
  socket.write(bytes);
  return socket;
}

const GET = "GET /rest/v1 HTTP/1.1\r\nHost: a\r\n\r\n";
const MANY = 1_000;

describe("a body that is streamed", () => {
  test("is sent whole, and each chunk is released", async () => {
    const source = pieces(50, 64 * KILOBYTE);
    const { port } = await start(() => ({ status: 206, headers: { "X-Note": "a" }, body: source.flow }));
    const answer = await get(port);
    expect([answer.statusCode, answer.headers["x-note"]]).toEqual([206, "a"]);
    expect(await textOf(answer)).toBe("x".repeat(50 * 64 * KILOBYTE));
    await until(() => source.released === 50 && source.isOver);
  });

  test("has its actual length, whatever Content-Length SQL has set", async () => {
    const headers = { "content-length": "7", "Transfer-Encoding": "identity", "X-Note": "a" };
    const { port } = await start(() => ({ status: 200, headers, body: pieces(3, 10).flow }));
    const answer = await get(port);
    expect(answer.headers).toMatchObject({ "transfer-encoding": "chunked", "x-note": "a" });
    expect(await textOf(answer)).toBe("x".repeat(30));
  });

  test("of one chunk has its actual length too", async () => {
    for (const name of ["Content-Length", "content-length", "Transfer-Encoding"]) {
      for (const value of ["3", "300", "chunked"]) {
        const headers = { [name]: value, "X-Note": "a" };
        const { port } = await start(() => ({ status: 200, headers, body: "whole" }));
        const answer = await get(port);
        expect(answer.headers).toMatchObject({ "content-length": "5", "x-note": "a" });
        expect(answer.headers).not.toHaveProperty("transfer-encoding");
        expect(await textOf(answer)).toBe("whole");
      }
    }
  });

  test("is neither sent nor read for HEAD", async () => {
    const source = pieces(MANY, KILOBYTE);
    const { port } = await start(() => ({ status: 200, headers: {}, body: source.flow }));
    expect(await textOf(await get(port, "HEAD"))).toBe("");
    expect(source.taken).toBe(0);
  });

  test("is read no faster than the client reads", async () => {
    const source = pieces(MANY, 64 * KILOBYTE);
    const { port } = await start(() => ({ status: 200, headers: {}, body: source.flow }));
    const socket = dial(port, GET).pause();
    let before = -1;
    while (source.taken !== before) {
      before = source.taken;
      await sleep(300);
    }
    // The buffers of two sockets hold less than half.
    expect(source.taken).toBeLessThan(MANY / 2);
    expect(source.taken - source.released).toBeLessThan(5);
    socket.resume();
    await until(() => source.isOver);
    expect(source.taken).toBe(MANY);
  });

  test("is released when the client disconnects", async () => {
    const source = pieces(MANY, 64 * KILOBYTE);
    const { port, lines } = await start(() => ({ status: 200, headers: {}, body: source.flow }));
    const socket = dial(port, GET);
    await once(socket, "data");
    socket.destroy();
    await until(() => source.isOver);
    expect(source.taken).toBeLessThan(MANY);
    expect(lines).toEqual([]);
  });

  test("is released when the client reads nothing for half a minute", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const source = pieces(MANY, 64 * KILOBYTE);
    const { port, lines } = await start(() => ({ status: 200, headers: {}, body: source.flow }));
    const socket = dial(port, GET).pause();
    while (!source.isOver) await vi.advanceTimersByTimeAsync(1_000);
    expect(source.taken).toBeLessThan(MANY);
    expect(lines).toMatchObject([{ msg: "an answer broke off", err: { message: "The client takes nothing more" } }]);
    socket.resume();
  });

  test("that fails breaks the connection, and the log has the reason", async () => {
    const { port, lines } = await start(() => ({
      status: 200,
      headers: {},
      body: pieces(3, KILOBYTE, { fails: true }).flow,
    }));
    await expect(textOf(await get(port))).rejects.toThrow("aborted");
    expect(lines).toMatchObject([{ msg: "an answer broke off", err: { message: "the source ran dry" } }]);
  });

  test("that fails does not end cleanly for an HTTP/1.0 client either", async () => {
    const outcomeOf = async (fails: boolean) => {
      const { port } = await start(() => ({ status: 200, headers: {}, body: pieces(3, KILOBYTE, { fails }).flow }));
      const socket = dial(port, "GET /rest/v1 HTTP/1.0\r\n\r\n").resume();
      return Promise.race([
        new Promise((resolve) => socket.once("end", () => resolve("ended"))),
        new Promise((resolve) => socket.once("error", ({ message }) => resolve(message))),
      ]);
    };
    expect(await outcomeOf(false)).toBe("ended");
    expect(await outcomeOf(true)).toBe("read ECONNRESET");
  });

  test("is released when its head cannot be sent", async () => {
    const source = pieces(3, KILOBYTE);
    let isOver = false;
    const flow: BodyStream = {
      [Symbol.asyncIterator]: () => flow,
      next: () => source.flow.next(),
      async return() {
        isOver = true;
        return { done: true, value: undefined };
      },
    };
    const { port } = await start(() => ({ status: 200, headers: { "X-Note": "two\nlines" }, body: flow }));
    const answer = await get(port);
    expect([answer.statusCode, isOver, source.taken]).toEqual([500, true, 0]);
  });
});

describe("a body that is too large", () => {
  const half = "x".repeat(60_000);
  const inChunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

  test.each([
    ["says so", "Content-Length: 180000", [half, half, half]],
    ["only shows it", "Transfer-Encoding: chunked", [inChunk(half), inChunk(half), `${inChunk(half)}0\r\n\r\n`]],
  ])(
    "is refused before all of it has arrived, if it %s, and the connection stays open",
    async (_how, length, parts) => {
      const { port } = await start(async (request) => {
        const { length: bytes } = request.method === "POST" ? await request.readBody(LIMIT) : "";
        return { status: 200, headers: {}, body: `${bytes} bytes` };
      });
      const socket = dial(port, `POST /rest/v1 HTTP/1.1\r\nHost: a\r\n${length}\r\n\r\n`);
      let said = "";
      socket.on("data", (chunk) => (said += chunk));
      socket.write(parts[0]! + parts[1]!);
      await until(() => said.includes("PAYLOAD_TOO_LARGE"));
      expect(said).toMatch(/^HTTP\/1\.1 413 /);

      said = "";
      socket.write(parts[2] + GET);
      await until(() => said.includes("bytes"));
      expect(said).toMatch(/^HTTP\/1\.1 200 .*0 bytes$/s);
    },
  );
});

test.each([
  ["none at all", "", "", "0 bytes"],
  ["one in pieces", "Transfer-Encoding: chunked\r\n", "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", "5 bytes"],
])("a body is read to its end: %s", async (_what, header, content, result) => {
  const { port } = await start(async ({ readBody }) => {
    return { status: 200, headers: {}, body: `${(await readBody(LIMIT)).length} bytes` };
  });
  const socket = dial(port, `POST /rest/v1 HTTP/1.1\r\nHost: a\r\n${header}\r\n${content}`);
  let said = "";
  socket.on("data", (chunk) => (said += chunk));
  await until(() => said.includes("bytes"));
  expect(said.endsWith(result)).toBe(true);
});

describe("a client that disconnects", () => {
  const faultsOf = (lines: readonly Record<string, unknown>[]) => lines.filter(({ level }) => Number(level) >= 50);

  test("while its response is generated is not an error of the service", async () => {
    const { port, lines } = await start(async ({ signal }) => {
      await once(toSignal(signal), "abort");
      throw signal.reason;
    });
    const socket = dial(port, GET);
    await sleep(50);
    socket.destroy();
    await until(() => lines.length > 0);
    expect(faultsOf(lines)).toEqual([]);
    expect(lines).toMatchObject([{ code: "CLIENT_LEFT" }]);
  });

  test("before its whole body has arrived is not an error either", async () => {
    const { port, lines } = await start(async ({ readBody }) => ({
      status: 200,
      headers: {},
      body: await readBody(LIMIT),
    }));
    const socket = dial(port, "POST /rest/v1 HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    await sleep(50);
    socket.destroy();
    await until(() => lines.length > 0);
    expect(faultsOf(lines)).toEqual([]);
    expect(lines).toMatchObject([{ code: "CLIENT_LEFT" }]);
  });

  test("before its body is read is not an error either", async () => {
    const { port, lines } = await start(async ({ readBody, signal }) => {
      await once(toSignal(signal), "abort");
      return { status: 200, headers: {}, body: await readBody(LIMIT) };
    });
    const socket = dial(port, "POST /rest/v1 HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    await sleep(50);
    socket.destroy();
    await until(() => lines.length > 0);
    expect(faultsOf(lines)).toEqual([]);
    expect(lines).toMatchObject([{ code: "CLIENT_LEFT" }]);
  });
});

test.each([
  ["HTTP/1.1", "Connection: close\r\n"],
  ["HTTP/1.0", ""],
])(
  "a client of %s with Connection: close can send all of a refused body, and reads the error",
  async (version, header) => {
    const { port } = await start(async ({ readBody }) => {
      await readBody(LIMIT);
      return { status: 200, headers: {}, body: null };
    });
    const body = Buffer.alloc(4 * 2 ** 20);
    const client = connect(port, "127.0.0.1");
    let faults = 0;
    client.on("error", () => faults++);
    client.write(`POST /rest/v1 ${version}\r\nHost: a\r\n${header}Content-Length: ${body.length}\r\n\r\n`);
    const sent = new Promise((resolve) => client.write(body, resolve));
    expect(await textOf(client as unknown as IncomingMessage)).toContain(" 413 ");
    expect(await sent).toBeFalsy();
    expect(faults).toBe(0);
  },
);

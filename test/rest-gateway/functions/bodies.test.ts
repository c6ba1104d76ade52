import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import jwt from "jsonwebtoken";
import { afterEach, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";
import { until } from "../../until.ts";
import { makeFunctionsProject } from "./project.ts";

const MOST = { anonymous: 1_000_000, known: 110_000_000 };
const SLOW = Array.from({ length: 25 }, (_, index) => `slow${index}`);

const LENGTH = `
  console.log("started");
  let count = 0;
  Deno.serve(async (req) => {
    count += 1;
    let length = 0;
    for await (const piece of req.body ?? []) length += piece.length;
    return Response.json({ count, length });
  });`;

const FILES: Readonly<Record<string, string>> = {
  "echo/index.ts": "Deno.serve((req) => new Response(req.body));",
  "length/index.ts": LENGTH,
  "preflight/index.ts": LENGTH,
  "late/index.ts":
    "Deno.serve(async (req) => { await new Promise((done) => setTimeout(done, 300)); return Response.json({ length: (await req.arrayBuffer()).byteLength }); });",
  "broken/index.ts": `
    let count = 0;
    const pieces = async function* () {
      yield new Uint8Array(400_000);
      throw new Error("the source has failed");
    };
    Deno.serve((req) => {
      count += 1;
      return req.method === "GET" ? Response.json({ count }) : new Response(ReadableStream.from(pieces()));
    });`,
  ...Object.fromEntries(SLOW.map((name) => [`${name}/index.ts`, LENGTH])),
};

const sockets: Socket[] = [];

const project = useFixture(() => makeFunctionsProject(FILES));
const service = useService({
  settings: () => ({
    FUNCTIONS_DIR: project.folder,
    FUNCTIONS_MAX_BODY_BYTES: String(MOST.known),
    MAX_ANONYMOUS_BODY_BYTES: String(MOST.anonymous),
    MAX_BODY_BYTES: "1000000",
    MAX_BODY_MEMORY_BYTES: "4000000",
  }),
});

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

const ANON = `Bearer ${jwt.sign({ role: "anon" }, SECRET)}`;
const KNOWN = `Bearer ${jwt.sign({ role: "authenticated", sub: "7" }, SECRET)}`;

const post = (name: string, authorization: string, body: RequestInit["body"]) =>
  fetch(`${service.url}/functions/v1/${name}`, {
    method: "POST",
    headers: { Authorization: authorization },
    body,
    duplex: "half",
  } as RequestInit);

/** Returns a body that is sent in chunks, without Content-Length. */
function streamOf(megabytes: number, onPiece: (piece: Uint8Array) => void = () => {}): ReadableStream {
  const piece = randomBytes(1_000_000);
  let left = megabytes;
  return new ReadableStream({
    pull(controller) {
      if (left-- <= 0) return controller.close();
      onPiece(piece);
      controller.enqueue(piece);
    },
  });
}

/** Sends a head and a part of the body; resolves when the socket has sent them. */
async function begin(head: string, part: Uint8Array | string): Promise<Socket> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname).on("error", () => {});
  sockets.push(socket);
  socket.write(`${head}\r\nHost: x\r\n\r\n`);
  await new Promise((sent) => socket.write(part, sent));
  return socket;
}

const startOf = (name: string, bytes: number, authorization = ANON) =>
  `POST /functions/v1/${name} HTTP/1.1\r\nAuthorization: ${authorization}\r\nContent-Length: ${bytes}`;

const startedFunctions = async () =>
  (await service.operations.functionLines()).filter(({ text }) => text === "started").map((line) => line.function);

test("a response that breaks after a large piece, which its client has not read yet, ends alone", async () => {
  const response = await post("broken", ANON, "");
  await until(async () =>
    (await service.operations.functionLines()).some(({ text }) => text.includes("the source has failed")),
  );
  await expect(response.arrayBuffer()).rejects.toThrow();
  const next = await fetch(`${service.url}/functions/v1/broken`, { headers: { Authorization: ANON } });
  expect(await next.json()).toEqual({ count: 2 });
});

describe("a body", () => {
  test("of 100 MB is streamed back while it arrives", async () => {
    const sent = createHash("sha256");
    const response = await post(
      "echo",
      KNOWN,
      streamOf(100, (piece) => sent.update(piece)),
    );
    const received = createHash("sha256");
    for await (const piece of response.body!) received.update(piece);
    expect(received.digest("hex")).toBe(sent.digest("hex"));
  });

  test.each([200_000, 1_000_000, 3_000_000])("of %i bytes with a length comes back, too", async (bytes) => {
    const body = randomBytes(bytes);
    const response = await post("echo", KNOWN, body);
    expect(Buffer.from(await response.arrayBuffer()).equals(body)).toBe(true);
  });

  test("waits for a function that reads it late", async () => {
    const response = await post("late", KNOWN, streamOf(20));
    expect(await response.json()).toEqual({ length: 20_000_000 });
  });

  test("has a limit, for strangers that of all interfaces: 413 as documented", async () => {
    const statusOf = async (authorization: string, body: RequestInit["body"]) => {
      const response = await post("length", authorization, body);
      return [response.status, await response.json()];
    };
    const tooLarge = (bytes: number) => [
      413,
      { code: "PAYLOAD_TOO_LARGE", message: `The body is larger than ${bytes} bytes.` },
    ];
    expect((await statusOf(ANON, randomBytes(MOST.anonymous)))[0]).toBe(200);
    expect(await statusOf(ANON, randomBytes(MOST.anonymous + 1))).toEqual(tooLarge(MOST.anonymous));
    expect(await statusOf(ANON, streamOf(2))).toEqual(tooLarge(MOST.anonymous));
    const socket = await begin(startOf("length", MOST.known + 1, KNOWN), "");
    expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1\.1 413 /);
  });

  test("that grows beyond the limit while the function reads it is refused, and the function learns of it", async () => {
    const piece = Buffer.alloc(1_000_000);
    const socket = await begin(
      `POST /functions/v1/length HTTP/1.1\r\nAuthorization: ${KNOWN}\r\nTransfer-Encoding: chunked`,
      "",
    );
    const answer = once(socket, "data");
    for (let sent = 0; sent <= MOST.known && !socket.destroyed; sent += piece.length) {
      socket.write(`${piece.length.toString(16)}\r\n`);
      socket.write(piece);
      if (!socket.write("\r\n")) await Promise.race([once(socket, "drain"), answer]);
    }
    expect(String((await answer)[0])).toMatch(/^HTTP\/1\.1 413 /);
  });

  test("counts against the memory of all bodies until its request ends", async () => {
    const part = randomBytes(950_000);
    const answers: string[] = [];
    for (let count = 0; count < 3; count++) {
      const socket = await begin(startOf("length", 1_000_000), part);
      socket.on("data", (data) => answers.push(String(data)));
    }
    await until(() => answers.length > 0);
    expect(answers[0]).toMatch(/^HTTP\/1\.1 503 /);
    expect((await post("length", ANON, "small")).status).toBe(200);
    for (const socket of sockets) socket.destroy();
    await until(async () => (await post("length", ANON, randomBytes(950_000))).status === 200);
  });
});

describe("a function", () => {
  test("takes no thread before its body has arrived: slow clients keep nobody out", async () => {
    const slow = SLOW.slice(0, 22);
    for (const name of slow) await begin(startOf(name, 10), "ab");
    for (const name of SLOW.slice(22)) expect((await post(name, ANON, "abc")).status).toBe(200);
    const started = await startedFunctions();
    expect(started.filter((name) => slow.includes(name))).toEqual([]);
    expect(started).toEqual(expect.arrayContaining(SLOW.slice(22)));
  });

  test("gets preflights, but no OPTIONS with a body unless the caller has a token", async () => {
    const options = async (headers: string, body = "") => {
      const socket = await begin(
        `OPTIONS /functions/v1/preflight HTTP/1.1\r\nConnection: close${headers}`.trimEnd(),
        body,
      );
      let text = "";
      for await (const data of socket) text += data;
      return [text.slice(9, 12), /\{.*\}/.exec(text)?.[0]];
    };
    const refused = ["401", '{"code":401,"message":"Missing authorization header"}'];
    expect(await options("\r\nContent-Length: 3", "abc")).toEqual(refused);
    expect(await options("\r\nTransfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\n")).toEqual(refused);
    expect(await options("")).toEqual(["200", expect.stringContaining('"count":1,"length":0')]);
    const known = await options(`\r\nAuthorization: ${KNOWN}\r\nContent-Length: 3`, "abc");
    expect(known).toEqual(["200", expect.stringContaining('"count":2,"length":3')]);
  });
});

import { once } from "node:events";
import { connect } from "node:net";
import jwt from "jsonwebtoken";
import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";
import { until } from "../../until.ts";
import { makeFunctionsProject } from "./project.ts";

/** Each misbehaves if it is asked to, and counts its requests: a new thread begins at 1. */
const onRequest = (attack: string) => `
  let count = 0;
  Deno.serve(async (req) => {
    count += 1;
    if (new URL(req.url).searchParams.has("attack")) { ${attack} }
    return Response.json({ count });
  });`;

const FILES: Readonly<Record<string, string>> = {
  "loop/index.ts": onRequest("for (;;);"),
  "heap/index.ts": onRequest("const all: unknown[] = []; for (;;) all.push(new Array(1000).fill(all.length));"),
  "steps/index.ts": onRequest(
    "const all: unknown[] = []; for (;;) { for (let i = 0; i < 1000; i++) all.push('x'.repeat(1000) + i); await new Promise((r) => setTimeout(r)); }",
  ),
  "buffers/index.ts": onRequest("const all: unknown[] = []; for (;;) all.push(new Uint8Array(1_000_000).fill(1));"),
  "exit/index.ts": onRequest("process.exit(0);"),
  "rejection/index.ts": onRequest("Promise.reject(new Error('nobody catches this')); await new Promise(() => {});"),
  "timer/index.ts": onRequest("setTimeout(() => { throw new Error('nor this'); }); await new Promise(() => {});"),
  "silent/index.ts": onRequest("await new Promise(() => {});"),
  "stalled/index.ts": onRequest(
    "return new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array(10)); } }));",
  ),
  "flood/index.ts": onRequest("for (let i = 0; i < 100_000; i++) console.log('line', i);"),
  "large/index.ts": `
    let isCancelled = false;
    Deno.serve((req) => {
      if (req.method === "POST") return Response.json({ isCancelled });
      const piece = new Uint8Array(1_000_000);
      let left = Number(new URL(req.url).searchParams.get("megabytes"));
      return new Response(new ReadableStream({
        pull(c) { if (left-- > 0) c.enqueue(piece); else c.close(); },
        cancel() { isCancelled = true; },
      }));
    });`,
  "startup/index.ts": "for (;;);",
  "wrong/index.ts": "Deno.serve(() => 'no response' as never);",
  "length/index.ts":
    "Deno.serve(async (req) => { let length = 0; for await (const piece of req.body!) length += piece.length; return Response.json({ length }); });",
  "quiet/index.ts": onRequest(""),
};

const project = useFixture(() => makeFunctionsProject(FILES));
const service = useService({
  settings: () => ({
    FUNCTIONS_DIR: project.folder,
    FUNCTIONS_MEMORY: "64",
    // Its threads yield to everything else that the machine does.
    FUNCTIONS_TIMEOUT_SECONDS: "8",
    FUNCTIONS_CPU_SECONDS: "1",
    FUNCTIONS_MAX_BODY_BYTES: "100000000",
    MAX_ANONYMOUS_BODY_BYTES: "100000000",
  }),
});

const headers = { Authorization: `Bearer ${jwt.sign({ role: "anon" }, SECRET)}` };
const call = (path: string, init: RequestInit = {}) =>
  fetch(`${service.url}/functions/v1/${path}`, { headers, ...init });
const countOf = async (name: string) => ((await (await call(name)).json()) as { count: number }).count;

/** The response to the attack; other functions and the database respond meanwhile. */
async function attack(name: string) {
  expect(await countOf(name)).toBe(1);
  const attacked = call(`${name}?attack`);
  await countOf("quiet");
  expect((await fetch(`${service.url}/health`)).status).toBe(200);
  const response = await attacked;
  return [response.status, ((await response.json()) as { code: string }).code, response.headers.get("x-relay-error")];
}

describe("a function that takes too much is ended, and begins anew", () => {
  test.each(["loop", "heap", "steps", "buffers"])("%s: 546", async (name) => {
    expect(await attack(name)).toEqual([546, "WORKER_LIMIT", "true"]);
    expect(await countOf(name)).toBe(1);
  });

  test("without a response in time: 504, and requests beside it are answered", async () => {
    const attacked = attack("silent");
    await until(async () => (await countOf("silent")) > 2);
    expect(await attacked).toEqual([504, "IDLE_TIMEOUT", "true"]);
    expect(await countOf("silent")).toBe(1);
  });

  test("a response that stops is broken off", async () => {
    const response = await call("stalled?attack");
    expect(response.status).toBe(200);
    await expect(response.arrayBuffer()).rejects.toThrow();
    expect(await countOf("stalled")).toBe(1);
  });

  test("one that never starts: 503", async () => {
    expect((await call("startup")).status).toBe(503);
  });
});

describe("a function that fails ends only its own thread", () => {
  test.each(["exit", "rejection", "timer"])("%s: 500", async (name) => {
    expect(await attack(name)).toEqual([500, "WORKER_ERROR", "true"]);
    expect(await countOf(name)).toBe(1);
  });

  test("a handler without a response: 500 of the function", async () => {
    const response = await call("wrong");
    expect([response.status, await response.text()]).toEqual([500, "Internal Server Error"]);
  });
});

describe("much at once", () => {
  test("a thousand requests are answered by one thread", async () => {
    await countOf("quiet");
    const before = await countOf("quiet");
    const counts = await Promise.all(Array.from({ length: 1000 }, () => countOf("quiet")));
    expect(new Set(counts).size).toBe(1000);
    expect(Math.max(...counts)).toBe(before + 1000);
  });

  test("a large response takes no memory: it waits for its client", async () => {
    const response = await call("large?megabytes=100");
    const reader = response.body!.getReader();
    let bytes = 0;
    for (let next = await reader.read(); !next.done; next = await reader.read()) bytes += next.value.length;
    expect(bytes).toBe(100_000_000);
  });

  test("a client that leaves a large response cancels it", async () => {
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname);
    socket.write(
      `GET /functions/v1/large?megabytes=1000000 HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.Authorization}\r\n\r\n`,
    );
    await once(socket, "readable");
    const isCancelled = async () =>
      ((await (await call("large", { method: "POST" })).json()) as { isCancelled: boolean }).isCancelled;
    expect(await isCancelled()).toBe(false);
    socket.destroy();
    await until(isCancelled);
  });

  test("a large request body is passed on piece by piece", async () => {
    const piece = new Uint8Array(1_000_000);
    let left = 100;
    const body = new ReadableStream({
      pull(controller) {
        if (left-- > 0) controller.enqueue(piece);
        else controller.close();
      },
    });
    const response = await call("length", { method: "POST", body, duplex: "half" } as RequestInit);
    expect(await response.json()).toEqual({ length: 100_000_000 });
  });

  test("lines of the log are bounded", async () => {
    const response = await call("flood?attack");
    expect(response.status).toBe(200);
    const lines = async () => (await service.operations.functionLines()).filter((line) => line.function === "flood");
    await until(async () => (await lines()).length > 0);
    expect((await lines()).length).toBeLessThanOrEqual(500);
  });
});

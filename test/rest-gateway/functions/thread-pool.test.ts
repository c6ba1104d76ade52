import jwt from "jsonwebtoken";
import { afterEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { serve, useService } from "../../serve.ts";
import { until } from "../../until.ts";
import { makeFunctionsProject } from "./project.ts";

const MANY = Array.from({ length: 25 }, (_, index) => `many${index}`);
const LARGE = ["large0", "large1", "large2"];

/**
 * Waits until the client leaves, matches a pattern without an end, keeps megabytes, at once or after its response, or works after it
 * without an end, as the query says. The response has the length of the body.
 */
const CODE = `
  let count = 0;
  const kept = [];
  Deno.serve(async (req) => {
    const query = new URL(req.url).searchParams;
    const keep = (megabytes) => kept.push(Buffer.alloc(Number(megabytes) * 2 ** 20, 1));
    if (query.has("keep")) keep(query.get("keep"));
    if (query.has("later")) setTimeout(keep, 500, query.get("later"));
    if (query.has("note")) console.log(query.get("note"));
    if (query.has("pattern")) /^(a+)+$/.test("a".repeat(40) + "b");
    if (query.has("background")) EdgeRuntime.waitUntil(new Promise(() => {}));
    if (query.has("throw")) setTimeout(() => { throw new Error("nobody catches this"); });
    if (query.has("wait")) await new Promise(() => {});
    const length = req.body ? (await req.arrayBuffer()).byteLength : undefined;
    return Response.json({ count: ++count, length });
  });`;

const NAMES = [...MANY, ...LARGE, "pattern", "shared", "failing"];

let leaving = new AbortController();

const database = useDatabase();
const project = useFixture(() =>
  makeFunctionsProject(Object.fromEntries(NAMES.map((name) => [`${name}/index.ts`, CODE]))),
);
const service = useService({
  database,
  settings: () => ({
    FUNCTIONS_DIR: project.folder,
    FUNCTIONS_CPU_SECONDS: "1",
    TRUST_PROXY: "true",
    FUNCTIONS_MEMORY: "512",
    FUNCTIONS_TOTAL_MEMORY: "600",
  }),
});

afterEach(() => {
  leaving.abort();
  leaving = new AbortController();
});

type Sender = { readonly sub?: string; readonly address?: string; readonly body?: Buffer };

async function call(path: string, { sub, address = "203.0.113.1", body }: Sender = {}, { url } = service) {
  const token = jwt.sign(sub ? { role: "authenticated", sub } : { role: "anon" }, SECRET);
  const response = await fetch(`${url}/functions/v1/${path}`, {
    ...(body && { method: "POST", body }),
    headers: { Authorization: `Bearer ${token}`, "X-Forwarded-For": address },
    signal: leaving.signal,
  });
  return {
    status: response.status,
    body: (await response.json()) as { readonly code?: string; readonly count?: number; readonly length?: number },
  };
}

const notes = async (text: string) => (await service.operations.functionLines()).filter((line) => line.text === text);

describe("the threads of all functions", () => {
  test("are shared: a stranger whose requests never end keeps neither another stranger nor an account out", async () => {
    const held = MANY.map((name) => call(`${name}?wait&note=held`).catch(() => null));
    await until(async () => (await notes("held")).length >= 5);
    for (const name of MANY.slice(20)) expect((await call(name, { address: "203.0.113.2" })).status).toBe(200);
    for (const name of MANY.slice(15)) expect((await call(name, { sub: "7" })).status).toBe(200);
    expect(await notes("held")).toHaveLength(5);
    leaving.abort();
    await Promise.all(held);
  });

  test("are ended for others when nobody uses them, however many functions there are", async () => {
    for (const name of MANY) expect((await call(name)).body).toEqual({ count: expect.any(Number) });
  });

  test("serve more functions at once than a caller's share, one after the other", async () => {
    const all = await Promise.all(MANY.map((name) => call(name)));
    expect(all.map(({ status }) => status)).toEqual(MANY.map(() => 200));
  });

  test("have one limit of memory: the largest is ended, and the others stay", async () => {
    const held = LARGE.map((name, index) => call(`${name}?wait&keep=${200 + index * 40}`));
    const ended = await Promise.race(held);
    expect(ended).toEqual({ status: 546, body: expect.objectContaining({ code: "WORKER_LIMIT" }) });
    for (const each of held) each.catch(() => {});
    expect((await call("pattern")).status).toBe(200);
  });

  test("small ones that are in use keep within it, too", async () => {
    const small = await serve(database, {
      FUNCTIONS_DIR: project.folder,
      FUNCTIONS_MEMORY: "128",
      FUNCTIONS_TOTAL_MEMORY: "136",
    });
    try {
      const users = MANY.slice(0, 4).map((name, index) => ({ name, sender: { sub: index < 2 ? "7" : "8" } }));
      const held = users.map(({ name, sender }) => call(`${name}?wait`, sender, small).catch(() => null));
      for (const { name, sender } of users) expect((await call(name, sender, small)).status).toBe(200);
      for (const { name, sender } of users) await call(`${name}?later=12`, sender, small);
      expect(await Promise.race(held)).toEqual({
        status: 546,
        body: expect.objectContaining({ code: "WORKER_LIMIT" }),
      });
      leaving.abort();
      await Promise.all(held);
    } finally {
      await small.stop();
    }
  });
});

describe("work after a response that never ends", () => {
  test.each(["are current", "were replaced"])("does not keep threads, which %s, from others", async (state) => {
    const small = await serve(database, {
      FUNCTIONS_DIR: project.folder,
      FUNCTIONS_MEMORY: "71",
      FUNCTIONS_TOTAL_MEMORY: "71",
      FUNCTIONS_TIMEOUT_SECONDS: "8",
    });
    try {
      for (const name of ["many0", "many2"]) expect((await call(`${name}?background`, {}, small)).status).toBe(200);
      if (state === "were replaced") await project.write("many0/index.ts", `${CODE}\n`);
      // This one waits for ten seconds, in which the work has its time.
      await call("many1", {}, small);
      expect((await call("many1", {}, small)).status).toBe(200);
    } finally {
      await small.stop();
    }
  });
});

describe("a request that ends its thread", () => {
  test("does not end requests that had not begun: they are served by the next thread", async () => {
    expect((await call("pattern")).status).toBe(200);
    const attacked = call("pattern?pattern&note=matching");
    await until(async () => (await notes("matching")).length === 1);
    const others = await Promise.all(Array.from({ length: 10 }, () => call("pattern")));
    expect(others.map(({ status }) => status)).toEqual(others.map(() => 200));
    expect(others.map(({ body }) => body.count).sort()).toEqual([1, 10, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await attacked).toEqual({ status: 546, body: expect.objectContaining({ code: "WORKER_LIMIT" }) });
  });

  test.each([5, 3_000_000])("leaves a body of %i bytes to the next thread", async (bytes) => {
    const note = `matching-${bytes}`;
    const attacked = call(`pattern?pattern&note=${note}`);
    await until(async () => (await notes(note)).length === 1);
    const other = await call("pattern", { sub: "7", body: Buffer.alloc(bytes, "x") });
    expect(other).toEqual({ status: 200, body: { count: 1, length: bytes } });
    expect((await attacked).status).toBe(546);
  });

  test.each([
    ["shared", "pattern"],
    ["failing", "throw"],
  ])("%s: requests in progress learn that another one may have ended it", async (name, attack) => {
    const waiting = call(`${name}?wait&note=waits-${name}`);
    await until(async () => (await notes(`waits-${name}`)).length === 1);
    const attacked = call(`${name}?wait&${attack}`).catch(() => null);
    const ended = {
      status: 503,
      body: {
        code: "WORKER_ENDED",
        message:
          "Another request of this function, or this one, ended their thread; it may have had effects (please check logs)",
      },
    };
    expect(await waiting).toEqual(ended);
    expect((await call(name)).body).toEqual({ count: 1 });
    leaving.abort();
    await attacked;
  });
});

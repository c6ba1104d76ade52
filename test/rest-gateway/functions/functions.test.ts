import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient, FunctionsHttpError, FunctionsRelayError, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { SocketMemory } from "../../../http/socket-memory.ts";
import { openFunctions } from "../../../rest-gateway/functions/functions.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";
import { until } from "../../until.ts";
import { makeFunctionsProject } from "./project.ts";

const json = "{ headers: { 'content-type': 'application/json' } }";

/** Functions as projects of Supabase have them, and some more. */
const FILES: Readonly<Record<string, string>> = {
  "../config.toml": `
    [functions.open]
    verify_jwt = false
    [functions.renamed]
    entrypoint = "./functions/elsewhere/main.ts"
    verify_jwt = false
    [functions.disabled]
    enabled = false
  `,
  ".env": 'GREETING="hello from a secret"\n',
  "_shared/cors.ts": `
    export const corsHeaders = { "Access-Control-Allow-Origin": "https://app.example", "Access-Control-Allow-Headers": "authorization, x-client-info, apikey, content-type" };
    export interface Greeting { readonly message: string }
  `,
  "hello/index.ts": `
    import "jsr:@supabase/functions-js/edge-runtime.d.ts";
    import { corsHeaders, Greeting } from "../_shared/cors.ts";
    enum Mood { Glad = "glad" }
    Deno.serve(async (req: Request) => {
      if (req.method === "OPTIONS") return new Response("ok", { headers: corsHeaders });
      const { name } = await req.json();
      const greeting: Greeting = { message: \`Hello \${name}!\` };
      console.log("greeted", { name });
      return Response.json({ ...greeting, mood: Mood.Glad }, { headers: corsHeaders });
    });
  `,
  "open/index.ts": `
    export default { async fetch(req: Request) {
      const url = new URL(req.url);
      return Response.json({ method: req.method, path: url.pathname, query: url.search, authorization: req.headers.get("authorization") });
    } };
  `,
  "plain/index.js":
    "export default () => new Response('plain', { headers: [['set-cookie', 'a=1'], ['set-cookie', 'b=2']] });",
  "elsewhere/main.ts": "Deno.serve(() => new Response('renamed'));",
  "disabled/index.ts": "Deno.serve(() => new Response('disabled'));",
  "environment/index.ts": `
    Deno.serve(() => Response.json({
      secret: Deno.env.get("GREETING"), url: Deno.env.get("SUPABASE_URL"),
      keys: ["SUPABASE_ANON_KEY", "SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_DB_URL"].map((name) => Deno.env.has(name)),
      path: process.env.PATH ?? null, others: Object.keys(Deno.env.toObject()).filter((name) => !/^(SUPABASE_|GREETING)/.test(name)),
    }, ${json}));
  `,
  "rows/deno.json":
    '{ // as Deno\n "imports": { "supabase": "npm:@supabase/supabase-js@2", "shared/": "../_shared/", }, }',
  "rows/index.ts": `
    import { createClient } from "supabase";
    import { corsHeaders } from "shared/cors.ts";
    import { decodeJwt } from "npm:jose@6";
    Deno.serve(async (req) => {
      const authorization = req.headers.get("Authorization")!;
      const client = createClient(Deno.env.get("SUPABASE_URL")!, Deno.env.get("SUPABASE_ANON_KEY")!, { global: { headers: { Authorization: authorization } } });
      const { data, error } = await client.from("articles").select("title").limit(1);
      return Response.json({ role: decodeJwt(authorization.slice(7)).role, error, rows: data?.length ?? null }, { headers: corsHeaders });
    });
  `,
  "echo/index.ts": `
    Deno.serve(async (req) => {
      const type = req.headers.get("content-type") ?? "";
      if (type.startsWith("multipart/form-data")) {
        const form = await req.formData();
        const answer = new FormData();
        answer.set("name", String(form.get("name")).toUpperCase());
        return new Response(answer);
      }
      return new Response(req.body, { headers: { "content-type": type } });
    });
  `,
  "events/index.ts": `
    Deno.serve(() => {
      const encoder = new TextEncoder();
      let n = 0;
      return new Response(new ReadableStream({ async pull(c) {
        if (n === 3) return c.close();
        await new Promise((done) => setTimeout(done, 20));
        c.enqueue(encoder.encode("data: " + n++ + "\\n\\n"));
      } }), { headers: { "content-type": "text/event-stream" } });
    });
  `,
  "_shared/imports.json": '{ "imports": { "cors": "./cors.ts" } }',
  "mapped/deno.json": '{ "importMap": "../_shared/imports.json" }',
  "mapped/index.ts": `
    import { corsHeaders } from "cors";
    addEventListener("beforeunload", (event) => console.log("ends", event.type));
    Deno.serve(() => new Response("mapped", { headers: corsHeaders }));
  `,
  "failing/index.ts": `Deno.serve((req) => {
      if (req.headers.get("x-status")) return Response.json({ reason: "chosen" }, { status: Number(req.headers.get("x-status")) });
      throw new Error("a mistake of the function");
    });`,
  "remote/index.ts": `// an import of Deno's
import { join } from "https://deno.land/std@0.168.0/csv/mod.ts";
Deno.serve(() => new Response(join("never")));`,
  "uninstalled/index.ts": 'import chess from "npm:chess.js@1";\nDeno.serve(() => new Response(String(chess)));',
  "kv/index.ts": "Deno.serve(async () => {\n  const kv = await Deno.openKv();\n  return new Response(String(kv));\n});",
  "region/index.ts": "Deno.serve((req) => Response.json({ region: req.headers.get('x-region') }));",
};

let client: SupabaseClient;
const anonKey = jwt.sign({ role: "anon" }, SECRET);

const project = useFixture(() => makeFunctionsProject(FILES));
const service = useService({ settings: () => ({ FUNCTIONS_DIR: project.folder }) });
beforeAll(async () => {
  client = createClient(service.url, anonKey, { auth: { persistSession: false, autoRefreshToken: false } });
});

const call = (name: string, init: RequestInit = {}) =>
  fetch(`${service.url}/functions/v1/${name}`, {
    ...init,
    headers: { Authorization: `Bearer ${anonKey}`, ...(init.headers as Record<string, string>) },
  });

describe("supabase.functions.invoke", () => {
  test("sends and returns JSON, with a shared module, types and an enumeration", async () => {
    const { data, error } = await client.functions.invoke("hello", { body: { name: "Ada" } });
    expect({ data, error }).toEqual({ data: { message: "Hello Ada!", mood: "glad" }, error: null });
  });

  test("sends and returns texts, bytes and forms", async () => {
    expect((await client.functions.invoke("echo", { body: "some text" })).data).toBe("some text");
    const bytes = new Uint8Array([0, 1, 2, 255]);
    const blob = (await client.functions.invoke<Blob>("echo", { body: bytes.buffer })).data!;
    expect(new Uint8Array(await blob.arrayBuffer())).toEqual(bytes);
    const form = new FormData();
    form.set("name", "ada");
    const answer = (await client.functions.invoke<FormData>("echo", { body: form })).data!;
    expect(answer.get("name")).toBe("ADA");
  });

  test("reads a stream of events", async () => {
    const { data } = await client.functions.invoke<Response>("events");
    expect(await data!.text()).toBe("data: 0\n\ndata: 1\n\ndata: 2\n\n");
  });

  test("passes the region on", async () => {
    const { data } = await client.functions.invoke("region", { region: "us-east-1" as never });
    expect(data).toEqual({ region: "us-east-1" });
  });

  test("reports statuses and errors of the function, and those of the service as relay errors", async () => {
    const chosen = await client.functions.invoke("failing", { headers: { "x-status": "418" } });
    expect(chosen.error).toBeInstanceOf(FunctionsHttpError);
    expect(await chosen.error.context.json()).toEqual({ reason: "chosen" });
    const thrown = await client.functions.invoke("failing");
    expect(thrown.error).toBeInstanceOf(FunctionsHttpError);
    expect([thrown.error.context.status, await thrown.error.context.text()]).toEqual([500, "Internal Server Error"]);
    const unknown = await client.functions.invoke("nothing-here");
    expect(unknown.error).toBeInstanceOf(FunctionsRelayError);
    expect(unknown.error.context.status).toBe(404);
    expect(await unknown.error.context.json()).toEqual({
      code: "NOT_FOUND",
      message: "Requested function was not found",
    });
  });
});

describe("the token", () => {
  test("is required and verified, unless verify_jwt is false", async () => {
    const missing = await fetch(`${service.url}/functions/v1/hello`, { method: "POST", headers: { apikey: anonKey } });
    expect([missing.status, await missing.json()]).toEqual([
      401,
      { code: 401, message: "Missing authorization header" },
    ]);
    const invalid = await call("hello", { method: "POST", headers: { Authorization: `Bearer ${anonKey}x` } });
    expect([invalid.status, await invalid.json()]).toEqual([401, { code: 401, message: "Invalid JWT" }]);
    const open = await fetch(`${service.url}/functions/v1/open/a/b?c=d`);
    expect(await open.json()).toEqual({ method: "GET", path: "/open/a/b", query: "?c=d", authorization: null });
  });

  test("is passed on, so that the function reads rows as its caller", async () => {
    const token = jwt.sign({ role: "authenticated" }, SECRET);
    const response = await call("rows", { headers: { Authorization: `Bearer ${token}` } });
    expect(await response.json()).toEqual({ role: "authenticated", error: null, rows: expect.any(Number) });
  });
});

describe("a function", () => {
  test("answers preflights itself, and its headers replace those of the service", async () => {
    const response = await fetch(`${service.url}/functions/v1/hello`, {
      method: "OPTIONS",
      headers: { Origin: "https://app.example", "Access-Control-Request-Method": "POST" },
    });
    expect([response.status, await response.text()]).toEqual([200, "ok"]);
    expect(response.headers.get("access-control-allow-origin")).toBe("https://app.example");
    expect(response.headers.get("access-control-allow-methods")).toBeNull();
  });

  test("has its secrets and the addresses of the service, and nothing else of its environment", async () => {
    expect(await (await call("environment")).json()).toEqual({
      secret: "hello from a secret",
      url: service.url,
      keys: [true, true, true],
      path: null,
      others: [],
    });
  });

  test("may be a default export, have another entry point, and set several cookies", async () => {
    const plain = await call("plain");
    expect([await plain.text(), plain.headers.getSetCookie()]).toEqual(["plain", ["a=1", "b=2"]]);
    expect(await (await fetch(`${service.url}/functions/v1/renamed`)).text()).toBe("renamed");
  });

  test("may have its imports in a file that deno.json names, and listen for events of Deno", async () => {
    const response = await call("mapped");
    expect(await response.text()).toBe("mapped");
    expect(response.headers.get("access-control-allow-origin")).toBe("https://app.example");
  });

  test("is unknown if it is disabled, or a folder that begins with _", async () => {
    expect((await call("disabled")).status).toBe(404);
    expect((await call("_shared")).status).toBe(404);
    expect((await call("..%2f..")).status).toBe(404);
  });

  test("does not start with imports from servers or packages that are not installed, and the log has file and line", async () => {
    for (const name of ["remote", "uninstalled"]) {
      const response = await call(name);
      expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([503, "BOOT_ERROR"]);
    }
    const lines = (await service.operations.functionLines()).map(({ text }) => text);
    expect(lines).toContainEqual(
      expect.stringMatching(
        /remote\/index\.ts:2: nothing is loaded from other servers; run npx jsr add @std\/csv, and add/,
      ),
    );
    expect(lines).toContainEqual(
      expect.stringMatching(
        /uninstalled\/index\.ts:1: the package chess\.js is not installed: npm install chess\.js@1/,
      ),
    );
  });

  test("learns from the start's log, and from an error, what Deno has and this service has not", async () => {
    expect((await call("kv")).status).toBe(500);
    const lines = (await service.operations.functionLines()).filter((line) => line.function === "kv");
    expect(lines.map(({ text }) => text)).toEqual([
      expect.stringMatching(/kv\/index\.ts:2: Deno\.openKv is not available here/),
      expect.stringMatching(/Deno\.openKv is not available in functions[\s\S]*kv\/index\.ts:2/),
    ]);
  });

  test("writes to the log, with the id of the request", async () => {
    const response = await call("hello", { method: "POST", body: '{"name":"Log"}' });
    const id = response.headers.get("x-request-id");
    await response.text();
    const log = new URL("/admin/v1/functions/log", service.url);
    const read = (role: string) => fetch(log, { headers: { Authorization: `Bearer ${jwt.sign({ role }, SECRET)}` } });
    type Log = { readonly lines: readonly { readonly request: string | null }[] };
    const lines = async () =>
      ((await (await read("admin")).json()) as Log).lines.filter(({ request }) => request === id);
    expect((await read("authenticated")).status).toBe(403);
    await until(async () => (await lines()).length > 0);
    expect(await lines()).toEqual([
      { at: expect.any(String), function: "hello", level: "info", text: "greeted { name: 'Log' }", request: id },
    ]);
  });

  test("is loaded again when a file changes, and found when it is new", async () => {
    expect((await call("fresh")).status).toBe(404);
    await project.write("fresh/index.ts", "Deno.serve(() => new Response('one'));");
    await until(async () => (await (await call("fresh")).text()) === "one");
    await project.write("fresh/index.ts", "Deno.serve(() => new Response('two'));");
    await until(async () => (await (await call("fresh")).text()) === "two");
  });

  test("needs a token, or needs it no longer, as soon as config.toml says so", async () => {
    const status = async () => (await fetch(`${service.url}/functions/v1/plain`)).status;
    const before = FILES["../config.toml"]!;
    expect(await status()).toBe(401);
    await project.write("../config.toml", `${before}[functions.plain]\nverify_jwt = false\n`);
    await until(async () => (await status()) === 200);
    await project.write("../config.toml", before);
    await until(async () => (await status()) === 401);
  });
});

describe("the first function of a project, whose folder is made while the service runs,", () => {
  const root = useFolder("first-function-");
  const folder = join(root, "functions");
  const late = useService({ settings: { FUNCTIONS_DIR: folder } });
  const source = "Deno.serve(({ method }) => new Response(method === 'OPTIONS' ? 'preflight' : 'first'));";
  const call = (init: RequestInit = {}) =>
    fetch(`${late.url}/functions/v1/first`, {
      ...init,
      headers: { Authorization: `Bearer ${anonKey}`, ...(init.headers as Record<string, string>) },
    });
  const preflight = async () => {
    const headers = { Origin: "https://app.example", "Access-Control-Request-Method": "POST" };
    return (await call({ method: "OPTIONS", headers })).text();
  };

  test("is found by a request, and is followed like others", async () => {
    const missing = await call();
    expect([missing.status, await missing.json()]).toEqual([404, expect.objectContaining({ code: "NOT_FOUND" })]);
    expect(await preflight()).toBe("");
    await mkdir(join(folder, "first"), { recursive: true });
    await writeFile(join(folder, "first/index.ts"), source);
    await until(async () => (await (await call()).text()) === "first");
    expect(await preflight()).toBe("preflight");
    await writeFile(join(folder, "first/index.ts"), "Deno.serve(() => new Response('second'));");
    await until(async () => (await (await call()).text()) === "second");
    await rm(folder, { recursive: true });
    await until(async () => (await call()).status === 404);
    await mkdir(join(folder, "first"), { recursive: true });
    await writeFile(join(folder, "first/index.ts"), source);
    await until(async () => (await (await call()).text()) === "first");
  });

  test("needs no token as soon as a new folder supabase says so, and needs it again without that folder", async () => {
    const status = async () => (await fetch(`${late.url}/functions/v1/first`)).status;
    await mkdir(join(folder, "first"), { recursive: true });
    await writeFile(join(folder, "first/index.ts"), source);
    await until(async () => (await status()) === 401);
    await mkdir(join(root, "supabase"));
    await writeFile(join(root, "supabase/config.toml"), "[functions.first]\nverify_jwt = false\n");
    await until(async () => (await status()) === 200);
    await rm(join(root, "supabase"), { recursive: true });
    await until(async () => (await status()) === 401);
    expect(await (await call()).text()).toBe("first");
  });

  test("is found by a reload in production, and requests that began before another one are served as it says", async () => {
    const functionsDir = join(root, "production");
    const files = { functions: null, functionsDir, nodeEnv: "production" } as const;
    const limits = { functionsMemory: 64, functionsTotalMemory: 64, functionsTimeout: 10, functionsCpu: 1 };
    const config = { ...files, ...limits, corsOrigins: [], publicUrl: null };
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const socketMemory = new SocketMemory({ webSocketBytes: 2 ** 20, webSocketTotalBytes: 2 ** 24 });
    const functions = openFunctions({ config, socketMemory, environment: () => ({}), log })!;
    try {
      await mkdir(join(functionsDir, "first"), { recursive: true });
      await writeFile(join(functionsDir, "first/index.ts"), source);
      expect([functions.hasFolder(), functions.find("first")]).toEqual([false, null]);
      functions.reload();
      expect(functions.find("first")).toMatchObject({ name: "first" });
      await writeFile(join(root, "config.toml"), "[functions.first]\nverify_jwt = false\n");
      functions.reload();
      const before = functions.find("first")!;
      const head = { method: "GET", url: "http://x/first", headers: [], hasBody: false, requestId: "1", address: null };
      const share = { key: "anyone", caller: "stranger" } as const;
      const request = { head, share, body: null, openSocket: null, onDisconnect() {} };
      await rm(join(functionsDir, "first/index.ts"));
      await writeFile(join(functionsDir, "first/index.js"), "Deno.serve(() => new Response('second'));");
      functions.reload();
      expect(await functions.call(before, request)).toMatchObject({ status: 200, body: Buffer.from("second") });
      await writeFile(join(root, "config.toml"), "[functions.first]\nverify_jwt = true\n");
      functions.reload();
      await expect(functions.call(before, request)).rejects.toMatchObject({ status: 401, code: "AUTH_REQUIRED" });
      await rm(join(functionsDir, "first"), { recursive: true });
      functions.reload();
      await expect(functions.call(before, request)).rejects.toMatchObject({ status: 404, code: "NOT_FOUND" });
    } finally {
      await functions.close();
    }
  });
});

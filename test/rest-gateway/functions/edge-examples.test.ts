import { createClient } from "@supabase/supabase-js";
import { decodeJwt } from "jose";
import jwt from "jsonwebtoken";
import { beforeAll, expect, test } from "vitest";
import { makeProjectKeys } from "../../../accounts/identity/project-keys.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";
import { until } from "../../until.ts";
import { makeFunctionsProject } from "./project.ts";

const selectAsCaller = (imports: string) => `
  ${imports}
  Deno.serve(async (req: Request) => {
    if (req.method === 'OPTIONS') return new Response('ok', { headers: corsHeaders })
    try {
      const client = createClient(Deno.env.get('SUPABASE_URL') ?? '', Deno.env.get('SUPABASE_ANON_KEY') ?? '', {
        global: { headers: { Authorization: req.headers.get('Authorization')! } },
      })
      const { data: { user } } = await client.auth.getUser(req.headers.get('Authorization')!.replace('Bearer ', ''))
      const { data, error } = await client.from('animals').select('name')
      if (error) throw error
      return Response.json({ user: user?.id, data }, { headers: corsHeaders })
    } catch (error) {
      return Response.json({ error: error.message }, { headers: corsHeaders, status: 400 })
    }
  })`;

/** Functions with the imports of Supabase's examples, of several years. */
const FILES: Readonly<Record<string, string>> = {
  "hello-world/index.ts": `
    import "jsr:@supabase/functions-js/edge-runtime.d.ts"
    Deno.serve(async (req: Request) => Response.json({ message: \`Hello \${(await req.json()).name} from Supabase!\` }))`,
  "std-serve/index.ts": `
    import { serve, type ConnInfo } from 'https://deno.land/std@0.168.0/http/server.ts'
    import { encode } from 'https://deno.land/std@0.168.0/encoding/base64.ts'
    import { crypto, toHashString } from "https://deno.land/std@0.168.0/crypto/mod.ts"
    import { decodeHex } from "jsr:@std/encoding@^1.0/hex"
    import 'https://deno.land/x/xhr@0.2.1/mod.ts'
    import { z } from 'https://deno.land/x/zod@v3.21.4/mod.ts'
    const Body = z.object({ text: z.string() })
    await serve(async (req: Request, connection: ConnInfo) => {
      const { text } = Body.parse(await req.json())
      const digest = await crypto.subtle.digest("MD5", new TextEncoder().encode(text))
      return Response.json({ base64: encode(text), md5: toHashString(digest), bytes: [...decodeHex("0aff")], local: connection.localAddr.transport })
    }, { onError: (error) => new Response(String(error.name), { status: 400 }) })`,
  "browser-with-cors/index.ts": `
    import { corsHeaders } from 'jsr:@supabase/supabase-js@2/cors'
    Deno.serve((req) => new Response('ok', { headers: corsHeaders }))`,
  "with-auth-jsr/deno.json": '{ "imports": { "@supabase/supabase-js": "jsr:@supabase/supabase-js@^2" } }',
  "with-auth-jsr/index.ts": selectAsCaller(`
    import { createClient } from '@supabase/supabase-js'
    import { corsHeaders } from '@supabase/supabase-js/cors'`),
  "with-auth-esm/index.ts": selectAsCaller(`
    import { createClient } from 'https://esm.sh/@supabase/supabase-js@2.39.3?target=deno'
    import { corsHeaders } from '../_shared/cors.ts'`),
  "_shared/cors.ts": "export const corsHeaders = { 'Access-Control-Allow-Origin': '*' }",
  "postgres-on-the-edge/index.ts": `
    import * as postgres from 'https://deno.land/x/postgres@v0.17.0/mod.ts'
    const pool = new postgres.Pool(Deno.env.get('SUPABASE_DB_URL')!, 3, true)
    Deno.serve(async (_req) => {
      const connection = await pool.connect()
      try {
        const result = await connection.queryObject\`SELECT * FROM animals\`
        const body = JSON.stringify(result.rows, (key, value) => (typeof value === 'bigint' ? value.toString() : value))
        return new Response(body, { headers: { 'Content-Type': 'application/json; charset=utf-8' } })
      } finally {
        connection.release()
      }
    })`,
  "oak-server/index.ts": `
    import { Application } from 'https://deno.land/x/oak@v12.6.0/mod.ts'
    const app = new Application()
    app.use((context) => { context.response.body = 'Oak at ' + context.request.url.pathname })
    await app.listen({ port: 8000 })`,
  // A package with the interface of oak that the service uses.
  "node_modules/@oakserver/oak/package.json": '{ "type": "module", "exports": "./mod.js" }',
  "node_modules/@oakserver/oak/mod.js": `
    export class Application {
      middleware = [];
      use(each) { this.middleware.push(each); }
      listen() { throw new Error("A function has no port of its own"); }
      async handle(request, address, isSecure) {
        const response = {};
        for (const each of this.middleware) await each({ request: { url: new URL(request.url) }, response });
        return new Response([response.body, address.transport, isSecure].join(" "));
      }
    }
    export class Router {}`,
  "static-file/page.html": "<h1>Static</h1>",
  "static-file/index.ts": `
    const page = await Deno.readTextFile(new URL("./page.html", import.meta.url))
    Deno.serve(async () => {
      const same = await Deno.readTextFile(import.meta.dirname + "/page.html")
      EdgeRuntime.waitUntil(new Promise((done) => setTimeout(done, 50)).then(() => console.log("after the response")))
      return new Response(page + same, { headers: { "Content-Type": "text/html" } })
    })`,
  // Generated projects have this extension without any JSX.
  "make-server/index.tsx": `
    import * as kv from "./kv_store.tsx";
    const first = <T,>(values: readonly T[]): T | undefined => values[0];
    Deno.serve(async () => Response.json(first(await kv.getByPrefix("demon:"))))`,
  "make-server/kv_store.tsx": `
    export const getByPrefix = async (prefix: string): Promise<any[]> => [{ key: prefix + 1 } as const]`,
  "jsx-page/index.ts": `
    import { render } from "./page.tsx"
    Deno.serve(() => Response.json(render("Ada & Bob")))`,
  "jsx-page/page.tsx": `
    import React from "https://esm.sh/react@18.2.0"
    type Props = { readonly name: string }
    const Page = ({ name }: Props) => <><h1 className="big">Hello, {name}!&nbsp;</h1></>
    export const render = (name: string) => Page({ name }).props.children.props`,
  // A compiler with the interface of esbuild that the service uses.
  "node_modules/esbuild/index.js": `
    const { transformSync } = require("rolldown/utils");
    const runtimes = { transform: "classic", automatic: "automatic" };
    exports.transformSync = (source, { sourcefile, loader, jsx }) =>
      transformSync(sourcefile, source, { lang: loader, jsx: { runtime: runtimes[jsx] } });`,
  "express-server/index.ts": `
    import express from "npm:express@4.18.2"
    const app = express()
    app.use(express.json())
    app.get('/express-server', (req, res) => { res.cookie("a", "1").cookie("b", "2").send('Welcome to ' + req.query.place) })
    app.post('/express-server/hello', (req, res) => { res.status(201).send({ msg: \`Hello \${req.body.name}!\`, ip: req.socket.remoteAddress !== "" }) })
    app.delete('/express-server', (_req, res) => { res.status(204).end() })
    app.get('/express-server/streamed', async (_req, res) => { for (const each of "meow") res.write(each); res.end() })
    app.listen(8000, () => console.log("listening at 8000"))`,
  "commonjs-server/package.json": '{ "type": "commonjs" }',
  "commonjs-server/index.js": `
    const http = require("http");
    const server = http.createServer(async (request, response) => {
      let length = 0;
      for await (const piece of request) length += piece.length;
      response.writeHead(200, { "content-type": "text/plain" });
      response.end([request.method, request.url, length, server.address().port].join(" "));
    });
    server.listen({ port: 8080 });`,
  "embedding/index.ts": `
    import { STATUS_CODE } from "https://deno.land/std/http/status.ts"
    const session = new Supabase.ai.Session("gte-small")
    Deno.serve(async () => {
      try {
        return Response.json(await session.run("text", { mean_pool: true, normalize: true }))
      } catch (error) {
        return new Response(error.message, { status: STATUS_CODE.NotImplemented })
      }
    })`,
  "fails-later/index.ts": `
    Deno.serve(() => new Response("never"));
    throw new Error("a mistake below serve");`,
  "old-client/index.ts": `
    import { cors } from "jsr:@supabase/ssr@0.5/cors";
    import { other } from "jsr:@supabase/server@1/other";
    Deno.serve(() => new Response(String(cors ?? other)));`,
  "unknown/index.ts": `
    import { join } from "jsr:@std/path@1/join";
    import { SMTPClient } from "https://deno.land/x/other@1.6.0/mod.ts";
    import Stripe from "https://esm.sh/stripe@12.4.1?target=deno";
    const lazily = () => import("npm:openai@4");
    Deno.serve(() => new Response(join(SMTPClient, Stripe, lazily)));`,
};

const { publishable } = makeProjectKeys(
  makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null }),
);
const project = useFixture(() => makeFunctionsProject(FILES));
const database = useDatabase({
  sql: `create table public.animals (id bigint primary key, name text, owner text default 'nobody');
    alter table public.animals enable row level security;
    create policy own on public.animals using (owner = (select auth.jwt() ->> 'sub'));
    grant select, insert on public.animals to authenticated, service_role;
    insert into public.animals values (1, 'Lion')`,
});
const service = useService({
  database,
  settings: () => ({ FUNCTIONS_DIR: project.folder, AUTH_AUTOCONFIRM: "true", JWT_SECRET: SECRET }),
});
let user: { readonly id: string; readonly subject: string; readonly token: string };
beforeAll(async () => {
  const client = createClient(service.url, publishable, { auth: { persistSession: false } });
  const { data } = await client.auth.signUp({ email: "ann@example.org", password: "Long enough for 1 test" });
  const token = data.session!.access_token;
  user = { id: data.user!.id, subject: decodeJwt(token).sub!, token };
  const admin = createClient(service.url, jwt.sign({ role: "service_role" }, SECRET));
  await admin.from("animals").insert({ id: 2, name: "Cat", owner: user.subject }).throwOnError();
});

async function call(name: string, init: RequestInit = {}) {
  const headers = { Authorization: `Bearer ${user.token}` };
  const response = await fetch(`${service.url}/functions/v1/${name}`, { headers, ...init });
  return { status: response.status, headers: response.headers, text: await response.text() };
}
const post = (name: string, body: object) => call(name, { method: "POST", body: JSON.stringify(body) });
const linesOf = async (name: string) =>
  (await service.operations.functionLines()).filter((line) => line.function === name).map(({ text }) => text);

// The first test reads the report before any request of a function.
test("what cannot be imported is named before the first request, with the command and the line that help", async () => {
  await until(async () => (await linesOf("unknown")).length >= 4 && (await linesOf("old-client")).length >= 2);
  expect(await linesOf("unknown")).toEqual([
    expect.stringMatching(/unknown\/index\.ts:2: the package @std\/path is not installed: npx jsr add @std\/path@1$/),
    expect.stringMatching(
      /unknown\/index\.ts:3: nothing is loaded .* to "imports" of deno\.json: "https:\/\/deno\.land\/x\/other@1\.6\.0\/mod\.ts": "npm:<package>"$/,
    ),
    expect.stringMatching(/unknown\/index\.ts:4: the package stripe is not installed: npm install stripe@12\.4\.1$/),
    expect.stringMatching(/unknown\/index\.ts:5: the package openai is not installed: npm install openai@4$/),
  ]);
  expect(await linesOf("old-client")).toEqual([
    expect.stringMatching(
      /index\.ts:2: the installed version of @supabase\/ssr has no cors: npm install @supabase\/ssr@0\.5$/,
    ),
    expect.stringMatching(
      /:3: the installed version of @supabase\/server has no other: npm install @supabase\/server@1$/,
    ),
  ]);
  const loaded = Object.keys(FILES).flatMap((file) => /^([a-z][\w-]*)\/index\.ts$/.exec(file)?.[1] ?? []);
  expect(await linesOf("embedding")).toEqual([
    expect.stringMatching(
      /embedding\/index\.ts:3: Supabase\.ai is not available here.*npm:openai .*npm:@huggingface\/transformers/,
    ),
  ]);
  for (const name of loaded.filter((each) => !["unknown", "old-client", "embedding"].includes(each)))
    expect([name, await linesOf(name)]).toEqual([name, []]);
});

test("hello-world, with types of jsr, greets", async () => {
  expect(JSON.parse((await post("hello-world", { name: "Ada" })).text)).toEqual({
    message: "Hello Ada from Supabase!",
  });
});

test("a function that awaits serve of std, with encodings, digests and zod, answers", async () => {
  expect(JSON.parse((await post("std-serve", { text: "abc" })).text)).toEqual({
    base64: "YWJj",
    md5: "900150983cd24fb0d6963f7d28e17f72",
    bytes: [10, 255],
    local: "tcp",
  });
  expect(await post("std-serve", {})).toMatchObject({ status: 400, text: "ZodError" });
});

test("the headers for browsers are those of supabase-js", async () => {
  const { headers } = await call("browser-with-cors", { method: "OPTIONS" });
  expect(headers.get("access-control-allow-headers")).toContain("x-client-info");
});

test.each(["with-auth-jsr", "with-auth-esm"])("%s reads rows as the signed-up user", async (name) => {
  const { status, headers, text } = await call(name);
  expect([status, JSON.parse(text)]).toEqual([200, { user: user.id, data: [{ name: "Cat" }] }]);
  expect(headers.get("access-control-allow-origin")).toBe("*");
});

test("postgres-on-the-edge reads rows as the owner of the database", async () => {
  expect(JSON.parse((await call("postgres-on-the-edge")).text)).toEqual([
    { id: "1", name: "Lion", owner: "nobody" },
    { id: "2", name: "Cat", owner: user.subject },
  ]);
});

test("an application of oak listens by the function", async () => {
  expect((await call("oak-server/a")).text).toBe("Oak at /oak-server/a tcp false");
});

test("a function in TSX runs, with JSX and without", async () => {
  expect(JSON.parse((await call("make-server")).text)).toEqual({ key: "demon:1" });
  expect(JSON.parse((await call("jsx-page")).text)).toEqual({
    className: "big",
    children: ["Hello, ", "Ada & Bob", "!\u00a0"],
  });
});

test("an application of express serves the function, on no port of its own", async () => {
  const { status, headers, text } = await call("express-server?place=Deno");
  expect([status, text, headers.getSetCookie()]).toEqual([200, "Welcome to Deno", ["a=1; Path=/", "b=2; Path=/"]]);
  const init = {
    method: "POST",
    headers: { Authorization: `Bearer ${user.token}`, "Content-Type": "application/json" },
  };
  const created = await call("express-server/hello", { ...init, body: '{"name":"Ada"}' });
  expect([created.status, JSON.parse(created.text)]).toEqual([201, { msg: "Hello Ada!", ip: true }]);
  expect((await call("express-server", { method: "DELETE" })).status).toBe(204);
  expect((await call("express-server/streamed")).text).toBe("meow");
  expect((await call("express-server/nothing")).status).toBe(404);
  expect(await linesOf("express-server")).toContain("listening at 8000");
});

test("a server of node:http in CommonJS gets bodies of any length", async () => {
  const body = "x".repeat(300_000);
  expect((await call("commonjs-server/a?b=c", { method: "PUT", body })).text).toBe(
    "PUT /commonjs-server/a?b=c 300000 8080",
  );
});

test("a model of Supabase.ai says what replaces it", async () => {
  const text = expect.stringMatching(/gte-small of Supabase\.ai is not available here, and .*use npm:openai/);
  expect(await call("embedding")).toMatchObject({ status: 501, text });
});

test("a function reads files beside it, and works after its response", async () => {
  expect((await call("static-file")).text).toBe("<h1>Static</h1><h1>Static</h1>");
  await until(async () => (await linesOf("static-file")).length > 0);
  expect(await linesOf("static-file")).toEqual(["after the response"]);
});

test("a function whose module fails after serve does not start", async () => {
  expect((await call("fails-later")).status).toBe(503);
  expect(await linesOf("fails-later")).toEqual([expect.stringContaining("a mistake below serve")]);
});

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { promisify } from "node:util";
import { createClient } from "graphql-ws";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { freePort } from "../../../bench/measuring/free-port.ts";
import { makeAuthority } from "../../certificates.ts";
import { useClient, useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { anonKey, makeClient, subscribed, token } from "../../realtime/service.ts";
import { REPOSITORY } from "../../repository.ts";
import { useService } from "../../serve.ts";
import { until } from "../../until.ts";

const NGINX = "/usr/sbin/nginx";
const SCHEMA = `
  create function public.request_headers() returns json stable language sql
    as $$ select current_setting('request.headers')::json $$;
  grant execute on function public.request_headers to anon;
  create table public.long_rows as select n, repeat('x', 100000) as text from generate_series(1, 400) n;
  grant select on public.long_rows to anon;
  insert into public.users (name, email) values ('Ann', 'ann@example.org');
`;

// Debian's package nginx-light, which .ci/run installs.
describe.runIf(existsSync(NGINX))("deploy/nginx.conf, installed as docs/deployment.md says", () => {
  let ca: Buffer;
  let nginx: ChildProcess;
  let said = "";
  let port: number;
  let url: string;

  // Where root tests, nginx's workers are somebody else, and keep long bodies in files there.
  const folder = useFolder("nginx-", 0o755);
  const database = useDatabase({ sql: SCHEMA });
  const owner = useClient(database.ownerUrl);
  beforeAll(async () => {
    port = await freePort();
    url = `https://localhost:${port}`;
  });
  const service = useService({
    database,
    settings: () => ({ TRUST_PROXY: "1", PUBLIC_URL: url, MAX_BODY_MEMORY_BYTES: "65536" }),
  });
  beforeAll(async () => {
    const authority = await makeAuthority(folder, "authority");
    ca = await readFile(authority.certificate);
    await mkdir(join(folder, "live/localhost"), { recursive: true });
    const { certificate, key } = await authority.sign("localhost", "site");
    await rename(certificate, join(folder, "live/localhost/fullchain.pem"));
    await rename(key, join(folder, "live/localhost/privkey.pem"));
    await promisify(execFile)("sh", ["-ec", await installation()], {
      cwd: REPOSITORY,
      env: { PATH: process.env.PATH, NAME: "localhost" },
    });
    const text = await readFile(join(folder, "nginx.conf"), "utf8");
    const own = text
      // Some users who run the tests may not raise it.
      .replace(/^worker_rlimit_nofile .*\n/m, "")
      .replace("listen 443 ssl", `listen ${port} ssl`)
      .replace("127.0.0.1:3000", new URL(service.url).host)
      .replace(
        "http {",
        `http {\n  access_log off;\n  client_body_temp_path ${folder}/body;\n  proxy_temp_path ${folder}/proxy;\n`,
      );
    await writeFile(join(folder, "nginx.conf"), own);
    const words = [
      "-p",
      folder,
      "-c",
      join(folder, "nginx.conf"),
      "-g",
      `daemon off; pid ${folder}/pid; error_log stderr;`,
    ];
    nginx = spawn(NGINX, words, { stdio: ["ignore", "ignore", "pipe"] });
    nginx.stderr!.on("data", (chunk) => (said += chunk));
    await until(async () => nginx.exitCode !== null || (await ask("/health").catch(() => null))?.status === 200);
    expect(said.replace(/.*\[warn\].*\n/g, "")).toBe("");
  });
  afterAll(async () => {
    const ended = once(nginx, "close");
    nginx.kill("SIGTERM");
    await ended;
  });

  /** The command of the page that writes the configuration, in the folder of the test. */
  async function installation(): Promise<string> {
    const page = await readFile(join(REPOSITORY, "docs/deployment.md"), "utf8");
    const [command] = /^ +sed [^>]*node_modules\/content-service\/deploy\/nginx\.conf > \S+$/m.exec(page)!;
    return command
      .replaceAll("/etc/letsencrypt", folder)
      .replace("node_modules/content-service/", "")
      .replace("/etc/nginx/nginx.conf", join(folder, "nginx.conf"));
  }

  async function ask(path: string, { method = "GET", headers = {}, body = "" } = {}) {
    const asked = request(`${url}${path}`, { ca, method, headers: { apikey: anonKey, ...headers } }).end(body);
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    let text = "";
    for await (const chunk of answer) text += chunk;
    return { status: answer.statusCode, headers: answer.headers, text };
  }

  test("answers the check of the page", async () => {
    expect((await ask("/health")).text).toMatch(/^\{"status":"ok"/);
  });

  test("passes the client's address and scheme to the service and ignores forged headers", async () => {
    const forged = { "X-Forwarded-For": "8.8.8.8", "X-Forwarded-Proto": "http" };
    const { text } = await ask("/rest/v1/rpc/request_headers", { headers: forged });
    expect(JSON.parse(text)).toMatchObject({ "x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "https" });
    expect(JSON.parse(text).host).toBe("localhost");
  });

  test("passes large responses and requests completely", async () => {
    const { status, text } = await ask("/rest/v1/long_rows?select=text");
    expect([status, text.length > 40_000_000]).toEqual([200, true]);
    const body = JSON.stringify({ query: `{ __typename } # ${"x".repeat(2_000_000)}` });
    const asked = await ask("/graphql", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    expect(asked.text).not.toContain("nginx");
  });

  test("passes error responses of the service unchanged, including 413", async () => {
    const { status, text } = await ask("/api/v1/nowhere");
    expect([status, JSON.parse(text).error.code]).toEqual([404, "RESOURCE_NOT_FOUND"]);
    const body = " ".repeat(10 * 2 ** 20 + 1);
    const large = await ask("/api/v1/users", { method: "POST", body });
    expect([large.status, JSON.parse(large.text).error.code]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
  });

  test.each(["/storage/v1/object/pictures/large.png", "/functions/v1/nothing"])(
    "leaves it to the service to refuse bodies for %s up to 50 MiB",
    async (path) => {
      const [small, large] = await Promise.all(
        [2 ** 20, 50 * 2 ** 20].map((size) => ask(path, { method: "POST", body: " ".repeat(size) })),
      );
      expect(small!.text).not.toContain("nginx");
      expect([large!.status, large!.text]).toEqual([small!.status, small!.text]);
    },
  );

  test("buffers bodies until they are complete, so that slow ones take no memory of the service", async () => {
    const headers = { apikey: anonKey, Authorization: `Bearer ${token({ role: "service_role" })}` };
    // These exceed the memory for all of them.
    const beginnings = Array.from({ length: 3 }, () => {
      const asked = request(`${url}/rest/v1/users`, {
        ca,
        method: "POST",
        headers: { ...headers, "Content-Length": 10_000_000 },
      });
      asked.on("error", () => {}).write(Buffer.alloc(9_000_000));
      return asked;
    });
    await until(() => beginnings.every(({ socket }) => socket?.writableLength === 0));
    const { status } = await ask("/rest/v1/users", { method: "POST", headers, body: " ".repeat(2_000_000) });
    expect(status).toBe(400);
    for (const asked of beginnings) asked.destroy();
  });

  test("passes the head and the events of a live query on at once, also where it continues an unchanged result", async () => {
    const headers = { apikey: anonKey, accept: "text/event-stream" };
    const open = async (more: Record<string, string>) => {
      const asked = request(`${url}/rest/v1/long_rows?select=n&n=lt.3`, { ca, headers: { ...headers, ...more } }).end();
      const [answer] = (await once(asked, "response")) as [IncomingMessage];
      const [chunk] = (await once(answer, "data")) as [Buffer];
      asked.destroy();
      return String(chunk);
    };
    await owner.query("alter table public.long_rows add primary key (n)");
    await until(async () => (await open({})).startsWith("id: "));
    const id = /^id: (.*)$/m.exec(await open({}))![1]!;
    expect(await open({ "last-event-id": id })).toBe(":\n\n");
  });

  class TrustingSocket extends WebSocket {
    constructor(address: string, protocols?: string | string[]) {
      super(address, protocols, { ca });
    }
  }

  test("proxies Realtime WebSockets", async () => {
    const client = makeClient(url, null, TrustingSocket as unknown as typeof globalThis.WebSocket);
    const heard: unknown[] = [];
    const channel = client
      .channel("room", { config: { broadcast: { self: true } } })
      .on("broadcast", { event: "word" }, ({ payload }) => heard.push(payload.text));
    await subscribed(channel);
    await channel.send({ type: "broadcast", event: "word", payload: { text: "hello" } });
    await until(() => heard.length > 0);
    expect(heard).toEqual(["hello"]);
    await client.removeAllChannels();
  });

  test("allows more sockets than nginx's default", async () => {
    const sockets = Array.from({ length: 600 }, () => {
      return new TrustingSocket(`${url.replace("https", "wss")}/graphql`, "graphql-transport-ws");
    });
    const opened = await Promise.allSettled(sockets.map((socket) => once(socket, "open")));
    expect(opened.filter(({ status }) => status === "rejected")).toHaveLength(0);
    await Promise.all(
      sockets.map((socket) => {
        const closed = once(socket, "close");
        socket.terminate();
        return closed;
      }),
    );
  });

  test("proxies GraphQL subscriptions", async () => {
    const client = createClient({ url: `${url.replace("https", "wss")}/graphql`, webSocketImpl: TrustingSocket });
    const result = client.iterate({ query: "subscription { onArticleCreated { title } }" });
    const first = result.next();
    let isTold = false;
    first.then(() => (isTold = true));
    await until(async () => {
      await owner.query(
        "insert into public.articles (title, content, author_id) values ('Breaking news', 'By hand.', 1)",
      );
      return isTold;
    });
    expect((await first).value).toEqual({ data: { onArticleCreated: { title: "Breaking news" } } });
    await client.dispose();
  });
});

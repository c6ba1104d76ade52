import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { Agent, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../../bench/measuring/free-port.ts";
import { useFolder } from "../../fixture.ts";
import { anonKey, token } from "../../realtime/service.ts";
import { useService } from "../../serve.ts";
import { until } from "../../until.ts";

const NGINX = "/usr/sbin/nginx";
const SCHEMA = `
  create table public.notes (id integer primary key, owner text not null, body text not null);
  alter table public.notes enable row level security;
  create policy own on public.notes using (owner = auth.jwt()->>'email');
  grant select on public.notes to anon, authenticated;
  insert into public.notes values (1, 'ann@example.org', 'the note of Ann'), (2, 'bob@example.org', 'the note of Bob');
  create function public.my_notes() returns setof public.notes stable language sql as $$ select * from public.notes $$;
  create function public.price_list() returns text stable language plpgsql as $$
    begin
      perform set_config('response.headers', '[{"cache-control": "public, max-age=60"}]', true);
      return 'the same for everybody';
    end $$;
  create function public.kept_by_browsers() returns setof public.notes stable language plpgsql as $$
    begin
      perform set_config('response.headers', '[{"Cache-Control": "max-age=60"}, {"Vary": "Accept-Language"}]', true);
      return query select * from public.notes;
    end $$;
  grant execute on function public.my_notes, public.price_list, public.kept_by_browsers to anon, authenticated;
`;

const ann = token({ role: "authenticated", sub: "7d5c8a40-0000-4000-8000-000000000001", email: "ann@example.org" });
const bob = token({ role: "authenticated", sub: "7d5c8a40-0000-4000-8000-000000000002", email: "bob@example.org" });

/** Each with other headers. Those that are refused count, too: their errors must not be served to the others. */
const CALLERS = {
  ann: { Authorization: `Bearer ${ann}` },
  "ann, with a key": { Authorization: `Bearer ${ann}`, apikey: anonKey },
  bob: { Authorization: `Bearer ${bob}` },
  service: { Authorization: `Bearer ${token({ role: "service_role" })}` },
  refused: { Authorization: "Bearer forged" },
  "refused for a key": { "X-API-Key": "forged" },
  "with a cookie": { Cookie: "SESSION=forged" },
  anonymous: {},
};

const PATHS = [
  "/",
  "/rest/v1/",
  "/rest/v1/notes",
  "/rest/v1/notes?id=eq.1",
  "/rest/v1/notes?select=id,body&limit=1",
  "/rest/v1/rpc/my_notes",
  "/rest/v1/rpc/kept_by_browsers",
  "/rest/v1/users?select=*",
  "/rest/v1/nowhere",
  "/users",
  "/users/1",
  "/api/v1/users",
  "/api/v1/notes",
  "/api/v1/notes/1",
  "/graphql?query=%7B__typename%7D",
  "/graphql?query=%7Busers%7Bid%7D%7D",
  "/auth/me",
  "/auth/sessions",
  "/auth/csrf-token",
  "/csrf-token",
  "/auth/v1/user",
  "/auth/v1/settings",
  "/auth/v1/factors",
  "/auth/v1/admin/users",
  "/admin/v1/catalog",
  "/tasks/1",
  "/openapi.json",
  "/realtime/v1/api/tenants",
  "/studio",
  "/account",
];
const ACCEPTED = ["*/*", "text/csv", "application/geo+json", "application/vnd.pgrst.object+json", "text/html"];

// Debian's package nginx-light, which .ci/run installs.
describe.runIf(existsSync(NGINX))("a shared cache", () => {
  let nginx: ChildProcess;
  /** `heeding` stores the responses that `Cache-Control` allows; `careless` ignores it, and has only `Vary`. */
  const caches = { heeding: 0, careless: 0 };
  const agent = new Agent({ keepAlive: true });

  const folder = useFolder("shared-cache-", 0o755);
  const service = useService({ sql: SCHEMA, settings: { TRUST_PROXY: "1", REST_REQUIRE_APIKEY: "false" } });
  beforeAll(async () => {
    caches.heeding = await freePort();
    caches.careless = await freePort();
    await writeFile(join(folder, "nginx.conf"), configuration(folder, new URL(service.url).host, caches));
    const options = `daemon off; pid ${folder}/pid; error_log stderr;`;
    nginx = spawn(NGINX, ["-p", folder, "-c", join(folder, "nginx.conf"), "-g", options], { stdio: "ignore" });
    const isUp = () =>
      ask(caches.careless, "/health", {}).then(
        ({ status }) => status === 200,
        () => false,
      );
    await until(async () => nginx.exitCode !== null || (await isUp()));
    expect(nginx.exitCode).toBeNull();
  });
  afterAll(async () => {
    agent.destroy();
    const ended = once(nginx, "close");
    nginx.kill("SIGTERM");
    await ended;
  });

  async function ask(port: number, path: string, headers: Readonly<Record<string, string>>, method = "GET") {
    const sent = request({ agent, port, path, method, headers }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    return { status: response.statusCode, headers: response.headers, body: await text(response) };
  }

  test.each(["heeding", "careless"] as const)("that is %s serves no response to another caller", async (kind) => {
    const wrong: string[] = [];
    for (const path of PATHS) {
      for (const accept of path.startsWith("/rest/") ? ACCEPTED : ["application/json", "text/html"]) {
        for (const [caller, credentials] of Object.entries(CALLERS)) {
          const { status, headers } = await ask(caches[kind], path, { Accept: accept, ...credentials });
          // The first response to a caller.
          if (headers["x-cache"] === "HIT" && !/\bpublic\b/.test(headers["cache-control"] ?? ""))
            wrong.push(`${path} as ${accept}, ${caller}: ${status} from the cache`);
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  test("serves rows to their owner only, whatever was asked before", async () => {
    for (const port of Object.values(caches)) {
      for (const path of ["/rest/v1/notes?select=body", "/rest/v1/rpc/my_notes?select=body"]) {
        const bodies = [];
        for (const as of [CALLERS.ann, CALLERS.anonymous, CALLERS.bob, { apikey: anonKey }, CALLERS.ann])
          bodies.push(JSON.parse((await ask(port, path, as)).body));
        const of = (name: string) => [{ body: `the note of ${name}` }];
        expect(bodies).toEqual([of("Ann"), [], of("Bob"), [], of("Ann")]);
      }
    }
  });

  test("keeps what a function declares to be public", async () => {
    const first = await ask(caches.heeding, "/rest/v1/rpc/price_list", CALLERS.ann);
    expect([first.headers["cache-control"], first.headers["x-cache"]]).toEqual(["public, max-age=60", "MISS"]);
    const second = await ask(caches.heeding, "/rest/v1/rpc/price_list", CALLERS.bob);
    expect([second.body, second.headers["x-cache"]]).toEqual([first.body, "HIT"]);
  });

  test("keeps what a function declares to be fresh for the same credentials only", async () => {
    const path = "/rest/v1/rpc/kept_by_browsers?id=gt.0";
    const first = await ask(caches.heeding, path, CALLERS.ann);
    expect(first.headers).toMatchObject({
      "cache-control": "max-age=60",
      vary: "Accept-Language, Authorization, apikey, X-API-Key, Cookie",
    });
    expect((await ask(caches.heeding, path, CALLERS.ann)).headers["x-cache"]).toBe("HIT");
    const other = await ask(caches.heeding, path, CALLERS.bob);
    expect([other.headers["x-cache"], JSON.parse(other.body)]).toEqual(["MISS", [expect.objectContaining({ id: 2 })]]);
  });

  test("is told the same by every method, error and part of a table", async () => {
    const port = Number(new URL(service.url).port);
    for (const [method, path, headers] of [
      ["GET", "/rest/v1/notes", {}],
      ["HEAD", "/rest/v1/notes", {}],
      ["OPTIONS", "/rest/v1/notes", {}],
      ["DELETE", "/rest/v1/notes", {}],
      ["GET", "/rest/v1/notes?limit=1", { Prefer: "count=exact" }],
      ["GET", "/rest/v1/notes?offset=9", { Prefer: "count=exact" }],
      ["GET", "/rest/v1/nowhere", {}],
      ["POST", "/rest/v1/rpc/my_notes", {}],
      ["GET", "/rest/v1/", {}],
    ] as const) {
      const response = await ask(port, path, { ...CALLERS.ann, ...headers }, method);
      expect([method, path, response.headers["cache-control"]]).toEqual([method, path, "private, no-cache"]);
      expect(response.headers.vary).toMatch(/Authorization, .*apikey, .*Cookie/);
    }
  });
});

function configuration(
  folder: string,
  service: string,
  ports: { readonly heeding: number; readonly careless: number },
) {
  const server = (port: number, settings: string) => `
    server {
      listen 127.0.0.1:${port};
      location / {
        proxy_pass http://${service};
        proxy_cache ${settings === "" ? "heeding" : "careless"};
        proxy_cache_key $request_uri$http_accept;
        proxy_cache_valid any 10m;
        proxy_set_header X-Forwarded-For $remote_addr;
        ${settings}
        add_header X-Cache $upstream_cache_status always;
      }
    }`;
  return `
    events {}
    http {
      access_log off;
      client_body_temp_path ${folder}/body;
      proxy_temp_path ${folder}/proxy;
      proxy_cache_path ${folder}/heeding keys_zone=heeding:1m;
      proxy_cache_path ${folder}/careless keys_zone=careless:1m;
      ${server(ports.heeding, "")}
      ${server(ports.careless, "proxy_ignore_headers Cache-Control Expires Set-Cookie;")}
    }`;
}

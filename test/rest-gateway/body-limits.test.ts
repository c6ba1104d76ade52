import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import jwt from "jsonwebtoken";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { SECRET } from "../secret.ts";
import { serve, useService } from "../serve.ts";
import { until } from "../until.ts";

const tokenOf = (role: string) => jwt.sign({ role }, SECRET);
const ANON = { apikey: tokenOf("anon") };
const SERVICE = { apikey: tokenOf("service_role") };
const BEARER = { Authorization: `Bearer ${tokenOf("service_role")}` };
const ANON_BEARER = { Authorization: `Bearer ${tokenOf("anon")}` };
const NOBODY = {};

const MOST = { anonymous: 20_000, graphql: 30_000, row: 40_000, body: 60_000 };

const database = useDatabase({ sql: "insert into public.users (name, email) values ('Ann', 'ann@example.org')" });
const service = useService({
  database,
  settings: {
    MAX_BODY_BYTES: String(MOST.body),
    MAX_ANONYMOUS_BODY_BYTES: String(MOST.anonymous),
    GRAPHQL_MAX_BODY_BYTES: String(MOST.graphql),
    MAX_ROW_BYTES: String(MOST.row),
    MAX_BODY_MEMORY_BYTES: "65536",
  },
});

type Headers = Readonly<Record<string, string>>;

/** JSON of that many bytes, which no interface makes anything of but an error of its own. */
const bodyOf = (bytes: number) => JSON.stringify("x".repeat(bytes - 2));

async function post(path: string, headers: Headers, body: string, method = "POST") {
  const response = await fetch(service.url + path, {
    method,
    headers: { "Content-Type": "application/json", ...headers },
    body,
  });
  return { status: response.status, retryAfter: response.headers.get("retry-after"), text: await response.text() };
}

const ROUTES: readonly (readonly [path: string, method: string, headers: Headers, most: number])[] = [
  ["/rest/v1/articles", "POST", ANON, MOST.anonymous],
  ["/rest/v1/articles", "POST", SERVICE, MOST.body],
  ["/rest/v1/articles?id=eq.1", "PATCH", ANON, MOST.anonymous],
  ["/rest/v1/rpc/search", "POST", SERVICE, MOST.body],
  ["/users", "POST", NOBODY, MOST.anonymous],
  ["/users", "POST", ANON_BEARER, MOST.anonymous],
  ["/users", "POST", BEARER, MOST.body],
  ["/users/1", "PATCH", NOBODY, MOST.anonymous],
  ["/users/1", "PATCH", BEARER, MOST.row],
  ["/api/v1/users/1", "PUT", BEARER, MOST.row],
  ["/api/v1/articles/1/publish", "POST", BEARER, MOST.row],
  ["/graphql", "POST", NOBODY, MOST.anonymous],
  ["/graphql", "POST", ANON, MOST.anonymous],
  ["/graphql", "POST", BEARER, MOST.graphql],
  ["/realtime/v1/api/broadcast", "POST", ANON, MOST.anonymous],
  ["/realtime/v1/api/broadcast", "POST", SERVICE, MOST.body],
  ["/realtime/v1/api/broadcast/room/events/word", "POST", ANON, MOST.anonymous],
  ["/auth/login", "POST", NOBODY, MOST.body],
  ["/api/auth/login", "POST", NOBODY, MOST.body],
];

describe("a body for", () => {
  test.each(ROUTES)("%s by %s with %j may have %i bytes", async (path, method, headers, most) => {
    const { status, text } = await post(path, headers, bodyOf(most + 1), method);
    expect([status, text.includes("PAYLOAD_TOO_LARGE")]).toEqual([413, true]);
    expect(text).toContain(`larger than ${most} bytes`);
    expect((await post(path, headers, bodyOf(most), method)).status).not.toBe(413);
  });

  test("a sign-in may have 64 KiB, whatever the limit of other bodies", async () => {
    const roomy = await serve(database);
    try {
      const send = (bytes: number) =>
        fetch(`${roomy.url}/auth/login`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: bodyOf(bytes),
        });
      expect((await send(65_537)).status).toBe(413);
      expect((await send(65_536)).status).toBe(400);
    } finally {
      await roomy.stop();
    }
  });

  test("the refusal of an anonymous caller states the limit of authenticated callers", async () => {
    const { text } = await post("/rest/v1/articles", ANON, bodyOf(MOST.anonymous + 1));
    expect(JSON.parse(text).hint).toContain(`${MOST.body} bytes`);
  });
});

test("invalid credentials are refused before the body is read", async () => {
  const { hostname, port } = new URL(service.url);
  for (const [path, header] of [
    ["/rest/v1/articles", "apikey: none.of.these"],
    ["/users", "Authorization: Bearer none.of.these"],
    ["/realtime/v1/api/broadcast", "apikey: none.of.these"],
  ]) {
    const socket = connect(Number(port), hostname);
    let said = "";
    socket.on("data", (chunk) => (said += chunk));
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\n${header}\r\nContent-Length: 100\r\n\r\n`);
    await until(() => said.includes("\r\n\r\n"));
    expect(said).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
  }
});

describe("while the memory for bodies is used up", () => {
  const occupants: Socket[] = [];
  const occupy = async () => {
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname).on("error", () => {});
    const head = `POST /rest/v1/articles HTTP/1.1\r\nHost: a\r\napikey: ${SERVICE.apikey}\r\nContent-Length: 59000\r\n\r\n`;
    socket.write(head + "x".repeat(17_000));
    occupants.push(socket);
    await once(socket, "connect");
  };
  beforeAll(async () => {
    // The memory of an answered request is released a moment after its client has read the answer, and may be in the way of an occupant.
    await until(async () => {
      await occupy();
      await sleep(20);
      return (await post("/rest/v1/articles", SERVICE, bodyOf(25_000))).status === 503;
    });
  });
  afterAll(() => {
    for (const socket of occupants) socket.destroy();
  });

  const table = { code: "PGRST001", message: expect.any(String), details: null, hint: null };
  const resource = { error: expect.objectContaining({ code: "SERVICE_UNAVAILABLE" }) };
  const graphql = { errors: [{ message: expect.any(String), extensions: { code: "SERVICE_UNAVAILABLE" } }] };

  test.each([
    ["/rest/v1/articles", SERVICE, table],
    ["/users", BEARER, resource],
    ["/api/v1/users", BEARER, resource],
    ["/graphql", BEARER, graphql],
    ["/realtime/v1/api/broadcast", SERVICE, resource],
    ["/auth/login", NOBODY, resource],
  ])(
    "%s refuses a large body temporarily, in its own error format, and accepts a small one",
    async (path, headers, response) => {
      const refused = await post(path, headers, bodyOf(25_000));
      expect([refused.status, refused.retryAfter]).toEqual([503, "1"]);
      expect(JSON.parse(refused.text)).toEqual(response);
      expect((await post(path, headers, bodyOf(1_000))).status).toBeLessThan(500);
    },
  );
});

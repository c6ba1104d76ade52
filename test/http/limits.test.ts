import { once } from "node:events";
import jwt from "jsonwebtoken";
import { describe, expect, test, vi } from "vitest";
import WebSocket from "ws";
import { useFixture } from "../fixture.ts";
import { newAddress } from "../new-address.ts";
import { newPerson, openGateways, type Sent } from "../rest-gateway/sign-in/gateways.ts";
import { SECRET } from "../secret.ts";

const LIMIT = 40;

const gateways = useFixture(() => openGateways({ settings: { RATE_LIMIT: String(LIMIT), SIGN_UP_LIMIT: "3" } }));

/** Asks until it is too much; the answers before, and the one that said so. */
async function exhaust(path: string, sent: Sent, service = gateways.one) {
  for (let admitted = 0; admitted <= LIMIT; admitted++) {
    const answer = await gateways.get(`${service.url}${path}`, sent);
    if (answer.status === 429) return { admitted, refusal: answer };
  }
  throw new Error(`${path} has no limit`);
}

const apikey = jwt.sign({ role: "anon" }, SECRET);

describe("a response of a rate-limited route", () => {
  test.each(["/rest/v1/articles?limit=1", "/csrf-token", "/no/such/thing", "/graphql?query={__typename}"])(
    "%s has the limit, the remaining requests and the end of the window",
    async (path) => {
      const sent = { from: newAddress(), headers: { apikey } };
      const first = await gateways.get(`${gateways.one.url}${path}`, sent);
      const second = await gateways.get(`${gateways.one.url}${path}`, sent);
      expect(first.status).not.toBe(429);
      expect(first.headers.get("x-ratelimit-limit")).toBe(String(LIMIT));
      expect(first.headers.get("x-ratelimit-remaining")).toBe(String(LIMIT - 1));
      expect(second.headers.get("x-ratelimit-remaining")).toBe(String(LIMIT - 2));
      const seconds = Number(first.headers.get("x-ratelimit-reset")) - Date.now() / 1000;
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThan(62);
    },
  );

  test.each(["/health", "/health/live", "/graphiql", "/studio"])("%s has no rate-limit headers", async (path) => {
    const answer = await gateways.get(`${gateways.one.url}${path}`, { from: newAddress() });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-ratelimit-limit")).toBeNull();
  });
});

describe("requests above the limit", () => {
  test("are refused with Retry-After, in the table interface's error format", async () => {
    const { admitted, refusal } = await exhaust("/rest/v1/articles?limit=1", {
      from: newAddress(),
      headers: { apikey },
    });
    expect(admitted).toBe(LIMIT);
    expect(refusal.body).toMatchObject({ code: "RATE_LIMITED", details: null });
    expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(refusal.headers.get("x-ratelimit-remaining")).toBe("0");
  });

  test("are refused as a GraphQL error", async () => {
    const { refusal } = await exhaust("/graphql?query={__typename}", { from: newAddress() });
    expect(refusal.body.errors[0].extensions.code).toBe("RATE_LIMITED");
    expect(refusal.headers.get("retry-after")).not.toBeNull();
  });

  test("are refused with an error envelope on other paths, unknown ones included", async () => {
    const { refusal } = await exhaust("/no/such/thing", { from: newAddress() });
    expect(refusal.body.error.code).toBe("RATE_LIMITED");
  });

  test("are counted per user, whatever the client address", async () => {
    const { pair } = await newPerson(gateways);
    const other = await newPerson(gateways);
    const from = newAddress();
    let refused = 0;
    for (let sent = 0; sent < LIMIT + 5; sent++) {
      const as = { token: pair.accessToken, headers: { apikey }, from: newAddress() };
      const { status } = await gateways.get(`${gateways.one.url}/rest/v1/articles?limit=1`, as);
      if (status === 429) refused++;
    }
    expect(refused).toBe(5);
    const { status } = await gateways.get(`${gateways.one.url}/rest/v1/articles?limit=1`, {
      token: other.pair.accessToken,
      headers: { apikey },
      from,
    });
    expect(status).toBe(200);
  });

  test("with invalid credentials are counted by client address", async () => {
    const from = newAddress();
    let refused = 0;
    for (let sent = 0; sent < LIMIT + 5; sent++) {
      const { status } = await gateways.get(`${gateways.one.url}/rest/v1/articles`, {
        from,
        headers: { apikey: `made.up.${sent}` },
      });
      if (status === 429) refused++;
    }
    expect(refused).toBe(5);
  });

  test("at one gateway count at the other one", async () => {
    const sent = { from: newAddress(), headers: { apikey } };
    await exhaust("/rest/v1/articles?limit=1", sent);
    await vi.waitFor(
      async () => {
        const answer = await gateways.get(`${gateways.two.url}/rest/v1/articles?limit=1`, sent);
        expect(answer.status).toBe(429);
      },
      { timeout: 10_000, interval: 200 },
    );
  });

  test("for WebSockets are refused before the upgrade", async () => {
    const from = newAddress();
    await exhaust("/no/such/thing", { from });
    const socket = new WebSocket(`${gateways.one.url.replace("http", "ws")}/graphql`, "graphql-transport-ws", {
      headers: { "X-Forwarded-For": from },
    });
    const [, response] = await once(socket, "unexpected-response");
    expect(response.statusCode).toBe(429);
    expect(Number(response.headers["retry-after"])).toBeGreaterThan(0);
    socket.on("error", () => {}).terminate();
  });
});

describe("registration", () => {
  test("has a stricter limit per address over all gateways", async () => {
    const from = newAddress();
    const statuses: number[] = [];
    for (const service of [gateways.one, gateways.two, gateways.one, gateways.two]) {
      statuses.push((await gateways.post(`${service.url}/auth/register`, {}, { from })).status);
    }
    expect(statuses).toEqual([400, 400, 400, 429]);
  });

  test.each(["/auth/sign-up", "/auth/forgotten-password"])("is limited on the page %s", async (path) => {
    const headers = { "X-Forwarded-For": newAddress() };
    const submit = () =>
      fetch(`${gateways.one.url}${path}`, { method: "POST", body: new URLSearchParams({ email: "" }), headers });
    for (let sent = 0; sent < 3; sent++) expect((await submit()).status).toBe(400);
    const refusal = await submit();
    expect([refusal.status, refusal.headers.get("content-type")]).toEqual([429, "text/html; charset=utf-8"]);
    expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refusal.text()).toContain('role="alert">Too many requests of this kind from your address.');
  });
});

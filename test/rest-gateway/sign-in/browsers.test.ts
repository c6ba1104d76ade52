import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { Wire } from "../../graphql/server/socket/wire.ts";
import { cookieOf, newPerson, newSession, openGateways, type Person } from "./gateways.ts";

const FRIEND = "https://app.example.org";
const PUBLIC = "https://api.example.org";

let ada: Person;
const gateways = useFixture(() => openGateways({ settings: { CORS_ORIGINS: FRIEND, PUBLIC_URL: PUBLIC } }));
beforeAll(async () => {
  ada = await newPerson(gateways);
  await gateways.owner.query("insert into auth.permissions values ('articles:publish', '')");
});

/** Changes of the claims of a user's session. */
const CHANGES = [
  ["has another role", "select auth.assign_role($1, 'admin', null)"],
  ["has another permission", "insert into auth.user_permissions (user_id, permission) values ($1, 'articles:publish')"],
] as const;

const QUERY = { query: "{ me { id } }" };
const at = (path: string) => `${gateways.one.url}${path}`;
const ask = (headers: Record<string, string>, token?: string) =>
  gateways.post(at("/graphql"), QUERY, { headers, token });
const MINE = () => ({ data: { me: { id: String(ada.userId) } } });

describe("a session at /graphql", () => {
  test("authenticates with its CSRF token, and each use renews it", async () => {
    const session = await newSession(gateways, ada.email);
    await gateways.owner.query("update auth.sessions set last_used_at = now() - interval '20 minutes'");
    const response = await ask(session);
    expect(response).toMatchObject({ status: 200, body: MINE() });
    expect(response.headers.get("set-cookie")).toMatch(/^SESSION=[\w-]{43}; Path=\/; .*Max-Age=1800$/);
    expect(cookieOf(response)).toBe(session.Cookie);
    const { rows } = await gateways.owner.query(
      "select last_used_at > now() - interval '1 minute' as renewed from auth.sessions where user_id = $1",
      [ada.userId],
    );
    expect(rows).toEqual([{ renewed: true }]);
  });

  test("without a CSRF token, or with another one, is 403, for queries too", async () => {
    const { Cookie } = await newSession(gateways, ada.email);
    for (const headers of [{ Cookie }, { Cookie, "X-CSRF-Token": "guessed" }]) {
      const response = await ask(headers);
      expect(response.status).toBe(403);
      expect(response.body.errors[0].extensions.code).toBe("PERMISSION_DENIED");
    }
  });

  test.each([
    [{ Origin: "https://evil.example.org" }, 403],
    [{ "Sec-Fetch-Site": "cross-site" }, 403],
    [{ Origin: FRIEND, "Sec-Fetch-Site": "same-site" }, 200],
    [{ Origin: PUBLIC }, 200],
    [{ "Sec-Fetch-Site": "same-origin" }, 200],
  ])("from %j is %i though it has the token", async (from, status) => {
    expect((await ask({ ...(await newSession(gateways, ada.email)), ...from })).status).toBe(status);
  });

  test("can read by GET without a CSRF token, because other pages cannot read the response", async () => {
    const { Cookie } = await newSession(gateways, ada.email);
    const response = await gateways.get(at(`/graphql?query=${encodeURIComponent(QUERY.query)}`), {
      headers: { Cookie },
    });
    expect(response).toMatchObject({ status: 200, body: MINE() });
  });

  test("that has ended is anonymous, and an access token takes precedence", async () => {
    const eve = await newPerson(gateways);
    const { Cookie } = await newSession(gateways, eve.email);
    expect(await ask({ Cookie }, ada.pair.accessToken)).toMatchObject({ status: 200, body: MINE() });
    await gateways.owner.query("delete from auth.sessions");
    const response = await ask({ Cookie });
    expect(response.status).toBe(200);
    expect(response.body.errors[0].extensions.code).toBe("AUTH_REQUIRED");
    expect(response.headers.get("set-cookie")).toBeNull();
  });
});

describe("a session that opens a socket", () => {
  const open = async (headers: Record<string, string>, payload = {}) => {
    const wire = await Wire.open(at("/graphql").replace(/^http/, "ws"), "graphql-transport-ws", headers);
    wire.say({ type: "connection_init", payload });
    await wire.hear();
    return wire;
  };
  const who = async (wire: Wire) => {
    wire.say({ type: "subscribe", id: "1", payload: QUERY });
    const message = await wire.hear();
    return message;
  };

  test.each([
    ["our own page", () => new URL(gateways.one.url).origin],
    ["our page at the public address", () => PUBLIC],
    ["a page of CORS_ORIGINS", () => FRIEND],
  ])("from %s is authenticated as its user", async (_whose, origin) => {
    const { Cookie } = await newSession(gateways, ada.email);
    const wire = await open({ Cookie, Origin: origin() });
    expect(await who(wire)).toMatchObject({ payload: MINE() });
    wire.close();
  });

  test("without an Origin is anonymous, and a token in the first message takes precedence", async () => {
    const { Cookie } = await newSession(gateways, ada.email);
    const anonymous = await open({ Cookie });
    expect(JSON.stringify(await who(anonymous))).toContain("AUTH_REQUIRED");
    anonymous.close();
    const eve = await newPerson(gateways);
    const Origin = FRIEND;
    const wire = await open({ Cookie, Origin }, { Authorization: `Bearer ${eve.pair.accessToken}` });
    expect(await who(wire)).toMatchObject({ payload: { data: { me: { id: String(eve.userId) } } } });
    wire.close();
  });

  test("is anonymous if CORS_ORIGINS allows all origins", async () => {
    const open2 = await openGateways();
    try {
      const person = await newPerson(open2);
      const { Cookie } = await newSession(open2, person.email);
      const url = `${open2.one.url}/graphql`.replace(/^http/, "ws");
      const wire = await Wire.open(url, "graphql-transport-ws", { Cookie, Origin: "https://evil.example.org" });
      wire.say({ type: "connection_init" });
      await wire.hear();
      expect(JSON.stringify(await who(wire))).toContain("AUTH_REQUIRED");
      wire.close();
    } finally {
      await open2.close();
    }
  });

  test("closes the socket when its user signs out", async () => {
    const session = await newSession(gateways, ada.email);
    const wire = await open({ Cookie: session.Cookie, Origin: FRIEND });
    expect(await who(wire)).toMatchObject({ payload: MINE() });
    await wire.hear();
    await gateways.post(at("/api/auth/logout"), undefined, { headers: session });
    expect(await wire.closed()).toEqual({ code: 4403, reason: "Token expired" });
  });

  test.each(CHANGES)("closes the socket when its user %s", async (_, change) => {
    const person = await newPerson(gateways);
    const { Cookie } = await newSession(gateways, person.email);
    const wire = await open({ Cookie, Origin: FRIEND });
    expect(await who(wire)).toMatchObject({ payload: { data: { me: { id: String(person.userId) } } } });
    await wire.hear();
    await gateways.owner.query(change, [person.userId]);
    expect(await wire.closed()).toEqual({ code: 4403, reason: "Token expired" });
  });
});

describe("a live query of a session", () => {
  const LIVE_QUERIES = {
    REST: "/api/v1/articles",
    GraphQL: `/graphql?query=${encodeURIComponent("subscription { live { articles { edges { node { id } } } } }")}`,
  };
  const openLive = async (kind: keyof typeof LIVE_QUERIES) => {
    const person = await newPerson(gateways);
    const { Cookie } = await newSession(gateways, person.email);
    const response = await fetch(at(LIVE_QUERIES[kind]), { headers: { Accept: "text/event-stream", Cookie } });
    expect(response.status).toBe(200);
    return { response, userId: person.userId };
  };

  describe.each(["REST", "GraphQL"] as const)("by %s", (kind) => {
    test.concurrent.each(CHANGES)("ends when its user %s", async (_, change) => {
      const { response, userId } = await openLive(kind);
      await gateways.owner.query(change, [userId]);
      expect(await response.text()).toContain("AUTH_EXPIRED");
    });

    test.concurrent("ends with the idle time of the session, which it does not extend", async () => {
      const { response, userId } = await openLive(kind);
      await gateways.owner.query(
        `update auth.sessions set last_used_at = now() - interval '29 minutes', idle_expires_at = now() + interval '8 seconds'
          where user_id = $1`,
        [userId],
      );
      expect(await response.text()).toContain("AUTH_EXPIRED");
    });
  });
});

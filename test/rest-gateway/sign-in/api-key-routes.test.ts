import { randomUUID } from "node:crypto";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { Wire } from "../../graphql/server/socket/wire.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { type Gateways, newPerson, newSession, openGateways } from "./gateways.ts";

const ADMIN = { ADMIN_EMAIL: "root@example.org", ADMIN_PASSWORD: "Obsidian-Ladder-4" };

let token: string;
const gateways = useFixture(() => openGateways({ settings: ADMIN }));
beforeAll(async () => {
  const login = { username: ADMIN.ADMIN_EMAIL, password: ADMIN.ADMIN_PASSWORD };
  token = (await gateways.post(`${gateways.one.url}/auth/login`, login)).body.accessToken;
});

const at = (path: string) => `${gateways.one.url}${path}`;
const create = (key: object, sent = { token } as Parameters<Gateways["post"]>[2]) =>
  gateways.post(at("/auth/keys"), key, sent);
const list = async () => (await gateways.get(at("/auth/keys"), { token })).body.keys;
const revoke = (id: number | string) => gateways.get(at(`/auth/keys/${id}`), { token, method: "DELETE" });

describe("an API key that an administrator creates", () => {
  test("may be that of nobody in particular, as in an open Studio, but not of somebody who is acted as", async () => {
    const sign = (claims: object) => ({ token: jwt.sign({ role: "admin", ...claims }, SECRET) });
    expect((await create({ role: "admin" }, sign({ act: { sub: "operator" } }))).status).toBe(403);
    const { status, body } = await create({ role: "admin" }, sign({}));
    expect(status).toBe(201);
    const { rows } = await gateways.owner.query(
      "select details ->> 'by' as by from auth.audit_log where details ->> 'api_key' = $1",
      [String(body.id)],
    );
    expect(rows).toEqual([{ by: null }]);
    const keys = await gateways.get(at("/auth/keys"), sign({}));
    expect(keys.body.keys.map(({ id }: { id: number }) => id)).toContain(body.id);
    expect((await gateways.get(at("/auth/keys"), sign({ sub: "somebody elsewhere" }))).status).not.toBe(200);
  });

  test("is shown once, works at every gateway, is listed by its first characters, and is invalid after its revocation", async () => {
    const { userId } = await newPerson(gateways);
    const made = await create({ role: "authenticated", owner: userId, name: "backup" });
    expect(made.status).toBe(201);
    const { id, key } = made.body;
    expect(key).toMatch(/^key_[\w-]{43}$/);
    expect(made.headers.get("location")).toBe(`/auth/keys/${id}`);
    expect(made.headers.get("cache-control")).toBe("no-store");

    const me = () =>
      gateways.post(`${gateways.two.url}/graphql`, { query: "{ me { id } }" }, { headers: { "X-API-Key": key } });
    expect((await me()).body).toEqual({ data: { me: { id: String(userId) } } });

    const listed = (await list()).find((each: { id: number }) => each.id === id);
    expect(listed).toMatchObject({ begins: key.slice(0, 12), role: "authenticated", owner: userId, name: "backup" });
    expect(JSON.stringify(listed)).not.toContain(key);

    expect((await revoke(id)).status).toBe(204);
    await until(async () => (await me()).body.errors !== undefined);
    expect((await revoke(id)).status).toBe(404);
    expect((await list()).find((each: { id: number }) => each.id === id).revokedAt).not.toBeNull();

    const { rows } = await gateways.owner.query(
      "select event, details ->> 'by' as by from auth.audit_log where details ->> 'api_key' = $1 order by id",
      [String(id)],
    );
    const [{ user_id: admin }] = (
      await gateways.owner.query("select user_id from auth.user_roles where role = 'admin'")
    ).rows;
    expect(rows).toEqual([
      { event: "api_key.created", by: admin },
      { event: "api_key.revoked", by: admin },
    ]);
  });

  test("closes its own sockets when it is revoked, and no others", async () => {
    const open = async (key: string) => {
      const wire = await Wire.open(at("/graphql").replace(/^http/, "ws"), "graphql-transport-ws");
      wire.say({ type: "connection_init", payload: { "X-API-Key": key } });
      await wire.hear();
      return wire;
    };
    const { userId } = await newPerson(gateways);
    const [one, two] = [
      (await create({ role: "authenticated", owner: userId })).body,
      (await create({ role: "authenticated", owner: userId })).body,
    ];
    const [wire, other] = [await open(one.key), await open(two.key)];
    await revoke(one.id);
    expect(await wire.closed()).toEqual({ code: 4403, reason: "Token expired" });
    expect(other.socket.readyState).toBe(WebSocket.OPEN);
    other.close();
  });

  test("can be created with a session and its CSRF token", async () => {
    const { email, userId } = await newPerson(gateways);
    await gateways.owner.query("select auth.assign_role($1, 'admin', null)", [userId]);
    const session = await newSession(gateways, email);
    expect((await create({ role: "anon" }, { headers: { Cookie: session.Cookie } })).status).toBe(403);
    expect((await create({ role: "anon" }, { headers: session })).status).toBe(201);
  });

  test.each([
    [{}, "MISSING_FIELD", "role"],
    [{ role: "postgres" }, "VALIDATION_ERROR", "role"],
    [{ role: "anon", expires: "tomorrow" }, "VALIDATION_ERROR", "expires"],
    [{ role: "anon", expires: "2020-01-01" }, "VALIDATION_ERROR", "expires"],
    [{ role: "anon", expires: "2099-02-30" }, "VALIDATION_ERROR", "expires"],
    [{ role: "anon", owner: "7" }, "VALIDATION_ERROR", "owner"],
  ])("%j is refused: %s", async (key, code, field) => {
    const result = await create(key);
    expect(result).toMatchObject({ status: 400, body: { error: { code } } });
    expect(result.body.error.details[0].field).toBe(field);
  });

  test("in a role that policies do not bind needs STUDIO_SQL=true", async () => {
    const refused = await create({ role: "service_role" });
    expect(refused).toMatchObject({ status: 403, body: { error: { code: "PERMISSION_DENIED" } } });
    const before = (await list()).length;
    const permitting = await serve(gateways.database, { STUDIO_SQL: "on" });
    try {
      const made = await gateways.post(`${permitting.url}/auth/keys`, { role: "service_role" }, { token });
      expect([made.status, (await list()).length]).toEqual([201, before + 1]);
    } finally {
      await permitting.stop();
    }
  });

  test("for an unknown user is 404", async () => {
    expect((await create({ role: "authenticated", owner: 987_654 })).status).toBe(404);
  });
});

describe("any other caller", () => {
  test("is refused: anonymous 401, a user and an API key 403", async () => {
    const { pair } = await newPerson(gateways);
    const { key } = (await create({ role: "admin", name: randomUUID() })).body;
    for (const [status, sent] of [
      [401, {}],
      [403, { token: pair.accessToken }],
      [403, { headers: { "X-API-Key": key } }],
    ] as const) {
      expect((await create({ role: "anon" }, sent)).status).toBe(status);
      expect((await gateways.get(at("/auth/keys"), sent)).status).toBe(status);
      expect((await gateways.get(at("/auth/keys/1"), { ...sent, method: "DELETE" })).status).toBe(status);
    }
  });

  test("is refused with a former administrator's token: 403", async () => {
    const { email, userId } = await newPerson(gateways);
    await gateways.owner.query("select auth.assign_role($1, 'admin', null)", [userId]);
    const session = await newSession(gateways, email);
    const making = await gateways.owner.connect();
    try {
      await making.query("begin");
      await making.query("select auth.assign_role($1, 'authenticated', null)", [userId]);
      const answer = create({ role: "admin" }, { headers: session });
      const blocked = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
        and query like '%auth.create_api_key%'`;
      await until(async () => (await gateways.owner.query(blocked)).rowCount === 1);
      await making.query("commit");
      expect(await answer).toMatchObject({ status: 403, body: { error: { code: "PERMISSION_DENIED" } } });
    } finally {
      making.release();
    }
  });

  test("gets the allowed methods, and an error for an invalid id", async () => {
    expect((await gateways.get(at("/auth/keys"), { token, method: "PUT" })).headers.get("allow")).toBe(
      "GET, HEAD, OPTIONS, POST",
    );
    expect((await gateways.get(at("/auth/keys/7"), { token })).status).toBe(405);
    expect((await revoke("seven")).body.error.code).toBe("INVALID_ID");
    expect((await revoke("7/8")).status).toBe(404);
  });
});

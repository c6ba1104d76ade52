import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { ADMIN_EMAIL, type OperatedService, openOperatedService, tokenFor, USER_EMAIL } from "./operated-service.ts";

const SESSION = "/admin/v1/session";
const VIEW_AS = "/admin/v1/view-as";

/** The headers of a request that a page of this service sends in a browser. */
const ownPage = (at: OperatedService) => ({
  host: new URL(at.service.url).host,
  origin: new URL(at.service.url).origin,
  "sec-fetch-site": "same-origin",
});
const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString());

describe("POST /admin/v1/session for administrators", () => {
  const operated = useFixture(() => openOperatedService({ STUDIO: "administrators" }));

  test("makes a token of 15 minutes for the session of an administrator, with its CSRF token", async () => {
    const headers = await operated.signIn(ADMIN_EMAIL);
    const answer = await operated.send(SESSION, { method: "POST", headers });
    expect(answer.status).toBe(200);
    expect(answer.headers["cache-control"]).toBe("no-store");
    const { access_token: token, ...rest } = answer.body;
    const claims = claimsOf(token);
    expect(claims.exp - claims.iat).toBe(15 * 60);
    expect(rest).toEqual({
      expires_at: claims.exp,
      role: "admin",
      user: { id: operated.adminId, email: ADMIN_EMAIL, name: "Root" },
      studio: {
        ...{ mode: "administrators", sql: false, migrations: "off", development: true, graphiql: true },
        project: expect.stringMatching(/^[0-9a-f]{16}$/),
      },
    });
    const users = await operated.send("/auth/v1/admin/users", { token, headers: { apikey: token } });
    expect(users.body.users.map(({ email }: { email: string }) => email)).toContain(USER_EMAIL);
    expect(operated.logged()).not.toContain(token);
  });

  test("its token ends with the session", async () => {
    const headers = await operated.signIn(ADMIN_EMAIL);
    const { access_token: token } = (await operated.send(SESSION, { method: "POST", headers })).body;
    expect((await operated.send(SESSION, { method: "POST", token })).status).toBe(200);
    await operated.send("/api/auth/logout", { method: "POST", headers });
    const ended = new Set<number>();
    while (!ended.has(401)) ended.add((await operated.send(SESSION, { method: "POST", token })).status);
    expect(ended.has(403)).toBe(false);
  });

  test("returns the token that was sent, which is not made to last longer", async () => {
    const token = tokenFor({ sub: operated.adminId, role: "admin", exp: Math.floor(Date.now() / 1000) + 60 });
    const { body } = await operated.send(SESSION, { method: "POST", token });
    expect(body).toMatchObject({
      access_token: token,
      expires_at: claimsOf(token).exp,
      user: { id: operated.adminId },
    });
    const byKey = await operated.send(SESSION, { method: "POST", headers: { "x-api-key": token } });
    expect(byKey.status).toBe(403);
  });

  test.each([
    ["nobody", () => ({}), 401],
    ["a user's token", () => ({ token: operated.tokens.user }), 403],
    ["a server's token", () => ({ token: operated.tokens.service }), 403],
    ["whoever is at the machine", () => ({ headers: ownPage(operated) }), 401],
  ])("is refused to %s", async (_who, sent, status) => {
    expect((await operated.send(SESSION, { method: "POST", ...sent() })).status).toBe(status);
  });

  test("is refused to a session without its CSRF token, to a page of another site, and to a user's session", async () => {
    const { cookie, ...csrf } = await operated.signIn(ADMIN_EMAIL);
    const statusWith = async (headers: Record<string, string>) =>
      (await operated.send(SESSION, { method: "POST", headers })).status;
    expect(await statusWith({ cookie })).toBe(403);
    expect(await statusWith({ cookie, ...csrf, origin: "https://evil.example", "sec-fetch-site": "cross-site" })).toBe(
      403,
    );
    expect(await statusWith(await operated.signIn(USER_EMAIL))).toBe(403);
    expect(await statusWith({ cookie, ...csrf })).toBe(200);
  });

  test("is recorded in the audit log", async () => {
    await operated.send(SESSION, { method: "POST", token: operated.tokens.admin });
    expect((await operated.events()).at(-1)).toMatchObject({
      event: "studio.opened",
      user_id: operated.adminId,
      details: { credential: "known" },
    });
  });
});

describe("POST /admin/v1/session where Studio is open", () => {
  const operated = useFixture(() => openOperatedService({ STUDIO: "open" }));

  const open = (headers: Record<string, string>) => operated.send(SESSION, { method: "POST", headers });

  test("makes a token of the role admin for a page of this service on this machine", async () => {
    const answer = await open(ownPage(operated));
    expect(answer.body).toMatchObject({ role: "admin", user: null, studio: { mode: "open" } });
    const again = await operated.send(SESSION, { method: "POST", token: answer.body.access_token });
    expect(again.body.access_token).toBe(answer.body.access_token);
    expect((await operated.events())[0]).toMatchObject({ event: "studio.opened", user_id: null });
  });

  test.each<[string, Record<string, string | undefined>]>([
    ["that names another host, as after DNS rebinding", { host: "evil.example:80", origin: "http://evil.example:80" }],
    ["of a page of another site", { "sec-fetch-site": "cross-site", origin: "https://evil.example" }],
    ["of a page at another port", { "sec-fetch-site": "same-site", origin: "http://127.0.0.1:9" }],
    ["whose origin is another one than the header says", { origin: "https://evil.example" }],
    ["without an origin", { origin: undefined }],
    ["of no browser", { "sec-fetch-site": undefined }],
    ["that was typed into the address bar", { "sec-fetch-site": "none" }],
    ["that a proxy forwards", { "x-forwarded-for": "203.0.113.9" }],
    ["that a proxy forwards for this machine", { "x-forwarded-for": "127.0.0.1" }],
    ["with the header Forwarded", { forwarded: "for=127.0.0.1" }],
    ["with the header Via", { via: "1.1 proxy" }],
    ["with the header X-Real-IP", { "x-real-ip": "127.0.0.1" }],
    ["of a host below localhost's name", { host: "localhost.evil.example", origin: "http://localhost.evil.example" }],
  ])("is refused to a request %s", async (_what, headers) => {
    const sent = Object.entries({ ...ownPage(operated), ...headers }).filter(([, value]) => value !== undefined);
    expect((await open(Object.fromEntries(sent) as Record<string, string>)).status).toBe(401);
  });

  test("a token that cannot be read is refused here, too", async () => {
    expect((await open({ ...ownPage(operated), authorization: "Bearer eyJ.e30.x" })).status).toBe(401);
  });

  test("an administrator who is signed in gets a token of the own", async () => {
    const answer = await open({ ...ownPage(operated), ...(await operated.signIn(ADMIN_EMAIL)) });
    expect(answer.body.user).toMatchObject({ id: operated.adminId });
  });
});

test("Studio is open on a database without accounts, too", async () => {
  const operated = await openOperatedService({ STUDIO: "open" }, "empty");
  try {
    const answer = await operated.send(SESSION, { method: "POST", headers: ownPage(operated) });
    expect(answer.status).toBe(200);
    const viewed = await operated.send(VIEW_AS, { token: answer.body.access_token, body: { role: "anon" } });
    expect(viewed.body.claims).toMatchObject({ role: "anon", act: { sub: "operator" } });
    const user = await operated.send(VIEW_AS, { token: answer.body.access_token, body: { user: "1" } });
    expect(user.status).toBe(404);
  } finally {
    await operated.close();
  }
});

test("Studio is not for other machines with STUDIO=off: its addresses are not found", async () => {
  const operated = await openOperatedService({ STUDIO: "off" });
  try {
    const answer = await operated.send(SESSION, { method: "POST", token: operated.tokens.admin });
    expect(answer.status).toBe(404);
  } finally {
    await operated.close();
  }
});

describe("POST /admin/v1/view-as", () => {
  const operated = useFixture(() => openOperatedService({ STUDIO: "administrators" }));

  const viewAs = (body: object) => operated.send(VIEW_AS, { token: operated.tokens.admin, body });

  test("makes a token with the claims of a user, and says who acts", async () => {
    const login = { username: USER_EMAIL, password: "Tangerine-Boat-7" };
    const real = await operated.send("/auth/v1/token?grant_type=password", {
      headers: { apikey: operated.tokens.service },
      body: { email: login.username, password: login.password },
    });
    const { session_id: _session, amr: _methods, iat: _iat, exp: _exp, ...signedIn } = claimsOf(real.body.access_token);
    const answer = await viewAs({ user: operated.userId });
    const { iat, exp, amr, act, ...claims } = claimsOf(answer.body.access_token);
    expect(claims).toEqual(signedIn);
    expect([exp - iat, amr, act]).toEqual([900, [], { sub: operated.adminId, role: "admin" }]);
    expect(answer.body).toMatchObject({ role: "authenticated", expires_at: exp, claims: { ...claims, act } });
    expect((await operated.events()).at(-1)).toMatchObject({
      event: "studio.viewed_as",
      user_id: operated.adminId,
      details: { role: "authenticated", user: operated.userId },
    });
  });

  test("a user can be named by the uuid of the account, too", async () => {
    const { rows } = await operated.owner.query("select id from auth.users where user_id = $1", [operated.userId]);
    expect((await viewAs({ user: rows[0].id })).body.claims.sub).toBe(operated.userId);
  });

  test("its token reads the rows of that user, and not as an administrator", async () => {
    const { access_token: token } = (await viewAs({ user: operated.userId })).body;
    const rows = await operated.send("/rest/v1/users?select=email&email=not.is.null", {
      token,
      headers: { apikey: token },
    });
    expect(rows.status).toBe(200);
    expect((await operated.send(VIEW_AS, { token, body: { role: "anon" } })).status).toBe(403);
  });

  test("its token ends with the session of the administrator", async () => {
    const headers = await operated.signIn(ADMIN_EMAIL);
    const { body: session } = await operated.send(SESSION, { method: "POST", headers });
    const viewed = await Promise.all(
      [{ role: "anon" }, { user: operated.userId }].map((body) =>
        operated.send(VIEW_AS, { token: session.access_token, body }),
      ),
    );
    for (const { body } of viewed) expect(body.claims.act.sub).toBe(operated.adminId);
    await operated.send("/api/auth/logout", { method: "POST", headers });
    for (const { body } of viewed) await refused(body.access_token);
  });

  test.each([
    ["is disabled", { ban_duration: "1h" }],
    ["has another role", { role: "authenticated" }],
  ])("its token ends when the administrator %s", async (_what, change) => {
    const own = operated.tokens.admin;
    const headers = { apikey: own };
    const account = { email: `${randomUUID()}@example.org`, email_confirm: true, role: "admin" };
    const added = await operated.send("/auth/v1/admin/users", { token: own, headers, body: account });
    const { rows } = await operated.owner.query(
      "select user_id, extract(epoch from tokens_valid_from) as iat from auth.users where id = $1",
      [added.body.id],
    );
    const claims = { sub: rows[0].user_id, role: "admin", iat: Number(rows[0].iat) };
    const viewed = await operated.send(VIEW_AS, { token: tokenFor(claims), body: { role: "anon" } });
    const { access_token: token } = viewed.body;
    expect((await operated.send("/users", { token })).status).not.toBe(401);
    const changed = { method: "PUT", token: own, headers, body: change };
    expect((await operated.send(`/auth/v1/admin/users/${added.body.id}`, changed)).status).toBe(200);
    await refused(token);
  });

  test("its token ends when the administrator, who has viewed by a session, has another role", async () => {
    const email = `${randomUUID()}@example.org`;
    const account = { email, password: "Tangerine-Boat-7", email_confirm: true, role: "admin" };
    const token = operated.tokens.admin;
    const added = await operated.send("/auth/v1/admin/users", { token, headers: { apikey: token }, body: account });
    const headers = await operated.signIn(email);
    const viewed = await operated.send(VIEW_AS, { headers, body: { role: "anon" } });
    expect((await operated.send("/users", { token: viewed.body.access_token })).status).not.toBe(401);
    await operated.owner.query(
      "select auth.assign_role(user_id, 'authenticated', null) from auth.users where id = $1",
      [added.body.id],
    );
    await refused(viewed.body.access_token);
  });

  /** Resolves when the service no longer accepts the token. */
  const refused = (token: string) => until(async () => (await operated.send("/users", { token })).status === 401);

  test("its token cannot be renewed, nor manage accounts, also if it is one of an administrator", async () => {
    const { access_token: token, claims } = (await viewAs({ user: operated.adminId })).body;
    expect(claims.role).toBe("admin");
    const headers = { apikey: token };
    const statuses = await Promise.all(
      [
        operated.send(SESSION, { method: "POST", token }),
        operated.send(VIEW_AS, { token, body: { role: "anon" } }),
        operated.send("/auth/v1/admin/users", { token, headers }),
        operated.send("/auth/v1/user", { method: "PUT", token, headers, body: { password: "Obsidian-Ladder-4" } }),
        operated.send("/auth/v1/logout", { method: "POST", token, headers }),
        operated.send("/auth/keys", { token, body: { role: "admin" } }),
        operated.send("/auth/me", { token }),
      ].map(async (answer) => (await answer).status),
    );
    expect(statuses.slice(0, -1)).toEqual(Array.from({ length: 6 }, () => 403));
  });

  test("makes a token of a role that requests may take", async () => {
    const { body } = await viewAs({ role: "anon" });
    expect(body).toMatchObject({ role: "anon", claims: { role: "anon", act: { sub: operated.adminId } } });
    expect(body.claims.sub).toBeUndefined();
    const refused = await viewAs({ role: "postgres" });
    expect([refused.status, refused.body.error.message]).toEqual([400, 'Requests cannot use the role "postgres".']);
  });

  test("a role that bypasses row-level security needs STUDIO_SQL", async () => {
    const refused = await viewAs({ role: "service_role" });
    expect(refused.status).toBe(403);
    expect(refused.body.error.message).toContain("set STUDIO_SQL=true");
  });

  test("so does a role that inherits the owner of tables", async () => {
    const { owner } = operated;
    const heir = `heir_${randomUUID().slice(0, 8)}`;
    const role = `owner_${randomUUID().slice(0, 8)}`;
    await owner.query(`create role ${role}; create role ${heir}; grant ${heir} to authenticator;
      insert into auth.roles values ('${heir}', 'A role of a project.')`);
    const statusesOf = async () => {
      const body = { role: heir };
      const key = await operated.send("/auth/keys", { token: operated.tokens.admin, body });
      return [(await viewAs(body)).status, key.status];
    };
    try {
      await owner.query("notify pgrst, 'reload schema'");
      await until(async () => isDeepStrictEqual(await statusesOf(), [200, 201]));
      await owner.query(`create table public.kept (id integer); alter table public.kept enable row level security;
        alter table public.kept owner to ${role}; grant ${role} to ${heir}`);
      await expect.poll(async () => isDeepStrictEqual(await statusesOf(), [403, 403])).toBe(true);
    } finally {
      await owner.query(`drop table if exists public.kept; delete from auth.api_keys where role = '${heir}';
        delete from auth.roles where name = '${heir}'; drop role ${heir}; drop role ${role}`);
    }
  });

  test.each([
    [{}, 400],
    [{ role: "anon", user: "1" }, 400],
    [{ user: "no-such-user" }, 404],
    [{ user: "999999999" }, 404],
    [{ user: "00000000-0000-0000-0000-000000000000" }, 404],
    [{ role: 7 }, 400],
  ])("%j is refused with %i", async (body, status) => {
    expect((await viewAs(body)).status).toBe(status);
  });

  test("a user who cannot sign in is refused by the reason", async () => {
    const add = await operated.send("/auth/v1/admin/users", {
      token: operated.tokens.admin,
      headers: { apikey: operated.tokens.admin },
      body: { email: "banned@example.org", ban_duration: "1h" },
    });
    const { status, body } = await viewAs({ user: add.body.id });
    expect([status, body.error.message]).toEqual([400, "This user cannot sign in: This account is disabled."]);
  });
});

test("with STUDIO_SQL=true a role that bypasses row-level security can be viewed", async () => {
  const operated = await openOperatedService({ STUDIO_SQL: "on" });
  try {
    const viewed = await operated.send(VIEW_AS, { token: operated.tokens.admin, body: { role: "service_role" } });
    expect(viewed.body.role).toBe("service_role");
  } finally {
    await operated.close();
  }
});

test("the function of CLAIMS_HOOK changes the claims of a user, but not who acts", async () => {
  const operated = await openOperatedService({ CLAIMS_HOOK: "public.add_tenant" });
  try {
    await operated.owner.query(`
      create function public.add_tenant(event jsonb) returns jsonb language sql as $$
        select jsonb_set(event, '{claims}', (event -> 'claims') - 'act' || '{"tenant": "acme"}') $$;
      grant execute on function public.add_tenant to supabase_auth_admin;
      grant usage on schema public to supabase_auth_admin`);
    const viewed = await operated.send(VIEW_AS, { token: operated.tokens.admin, body: { user: operated.userId } });
    expect(viewed.body.claims).toMatchObject({ tenant: "acme", act: { sub: operated.adminId } });
  } finally {
    await operated.close();
  }
});

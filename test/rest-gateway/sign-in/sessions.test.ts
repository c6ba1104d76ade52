import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { newAddress } from "../../new-address.ts";
import { cookieOf, type Gateways, newPerson, newSession, openGateways, PASSWORD } from "./gateways.ts";

const gateways = useFixture(() => openGateways({ settings: { CORS_ORIGINS: "https://app.example.org" } }));

const at = (path: string) => `${gateways.one.url}${path}`;
const atOther = (path: string) => `${gateways.two.url}${path}`;
const post: Gateways["post"] = (...sent) => gateways.post(...sent);
const me = (Cookie: string, to = at) => gateways.get(to("/api/auth/me"), { headers: { Cookie } });
const login = (username: string, password = PASSWORD, headers = {}) =>
  post(at("/api/auth/login"), { username, password }, { headers });

describe("a session", () => {
  test("starts with a cookie that scripts and other sites cannot read", async () => {
    const { email } = await newPerson(gateways);
    const response = await login(email);
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ username: email, role: "authenticated", message: expect.any(String) });
    expect(response.headers.get("cache-control")).toBe("no-store");
    const [id, ...attributes] = response.headers.get("set-cookie")!.split("; ");
    expect(id).toMatch(/^SESSION=[\w-]{43}$/);
    expect(attributes).toEqual(["Path=/", "HttpOnly", "Secure", "SameSite=Strict", "Max-Age=1800"]);
  });

  test("is accepted at any gateway, and each use renews the cookie", async () => {
    const { email, userId } = await newPerson(gateways);
    const before = Date.now();
    const cookie = cookieOf(await login(email))!;
    const response = await me(cookie, atOther);
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ userId, username: email, role: "authenticated", loginTime: expect.any(String) });
    expect(Math.abs(Date.parse(response.body.loginTime) - before)).toBeLessThan(60_000);
    expect(cookieOf(response)).toBe(cookie);
  });

  test("has a new id at each login, never one that the browser sent", async () => {
    const { email } = await newPerson(gateways);
    const Cookie = `SESSION=${"a".repeat(43)}`;
    const first = cookieOf(await login(email, PASSWORD, { Cookie }))!;
    expect(first).not.toBe(Cookie);
    expect(cookieOf(await login(email, PASSWORD, { Cookie: first }))).not.toBe(first);
  });

  test("ends when its user signs in elsewhere", async () => {
    const { email } = await newPerson(gateways);
    const first = cookieOf(await login(email))!;
    const second = cookieOf(await post(atOther("/api/auth/login"), { username: email, password: PASSWORD }))!;
    expect([(await me(first)).status, (await me(second)).status]).toEqual([401, 200]);
  });

  test("ends after half an hour without use, and after its maximum lifetime", async () => {
    const { email, userId } = await newPerson(gateways);
    for (const end of ["idle_expires_at", "expires_at"]) {
      const cookie = cookieOf(await login(email))!;
      expect((await me(cookie)).status).toBe(200);
      await gateways.owner.query(`update auth.sessions set ${end} = now() where user_id = $1`, [userId]);
      expect(await me(cookie, atOther)).toMatchObject({ status: 401, body: { error: { code: "AUTH_REQUIRED" } } });
    }
  });

  test.each(["", "SESSION=", "SESSION=nonsense", `OTHER=${"a".repeat(43)}`, `SESSION=${"a".repeat(43)}`])(
    "does not exist for the cookie %j: 401",
    async (cookie) => {
      const response = await me(cookie);
      expect(response).toMatchObject({ status: 401, body: { error: { code: "AUTH_REQUIRED" } } });
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
    },
  );

  test("is not created with a wrong password, an unknown user or a disabled account", async () => {
    const { email, userId } = await newPerson(gateways);
    const [wrong, anonymous] = await Promise.all([login(email, "Wrong-Boat-7"), login("nobody@example.org")]);
    expect([wrong.status, anonymous.status]).toEqual([401, 401]);
    expect(wrong.body.error.message).toBe(anonymous.body.error.message);
    expect(cookieOf(wrong)).toBeNull();
    await gateways.owner.query("select auth.disable_account($1, null)", [userId]);
    expect(await login(email)).toMatchObject({ status: 403, body: { error: { code: "ACCOUNT_DISABLED" } } });
  });

  test("is throttled together with other logins", async () => {
    const { email } = await newPerson(gateways);
    const from = newAddress();
    const attempt = (url: string) => post(url, { username: email, password: "Wrong-Boat-7" }, { from });
    const urls = ["/auth/login", "/api/auth/login", "/auth/login", "/api/auth/login", "/auth/login"];
    for (const url of urls) expect((await attempt(at(url))).status).toBe(401);
    expect((await attempt(atOther("/api/auth/login"))).status).toBe(429);
  });
});

describe("a sign-out", () => {
  test("ends the session everywhere and deletes the cookie", async () => {
    const { email } = await newPerson(gateways);
    const headers = await newSession(gateways, email);
    const response = await post(atOther("/api/auth/logout"), undefined, { headers });
    expect(response).toMatchObject({ status: 200, body: { message: expect.any(String) } });
    expect(response.headers.get("set-cookie")).toMatch(/^SESSION=; .*Max-Age=0$/);
    expect((await me(headers.Cookie)).status).toBe(401);
    expect((await post(at("/api/auth/logout"), undefined, { headers })).status).toBe(401);
  });

  test("does not revoke tokens", async () => {
    const { email, pair } = await newPerson(gateways);
    await post(at("/api/auth/logout"), undefined, { headers: await newSession(gateways, email) });
    expect((await post(at("/auth/refresh"), { refreshToken: pair.refreshToken })).status).toBe(200);
  });
});

describe("a state-changing request with a cookie", () => {
  const CHANGES = ["/api/auth/logout", "/auth/logout", "/auth/password", "/api/mfa/enable", "/api/mfa/verify?code=1"];

  test.each(CHANGES)("%s requires the CSRF token", async (path) => {
    const [ada, eve] = [await newPerson(gateways), await newPerson(gateways)];
    const session = await newSession(gateways, ada.email);
    const { "X-CSRF-Token": other } = await newSession(gateways, eve.email);
    for (const headers of [{ Cookie: session.Cookie }, { ...session, "X-CSRF-Token": other }]) {
      const response = await post(at(path), undefined, { headers });
      expect(response).toMatchObject({ status: 403, body: { error: { code: "PERMISSION_DENIED" } } });
    }
    expect((await me(session.Cookie)).status).toBe(200);
  });

  test.each([
    [{ "Sec-Fetch-Site": "cross-site" }, 403],
    [{ Origin: "https://evil.example.org" }, 403],
    [{ Origin: "null" }, 403],
    [{ Origin: "https://evil.example.org", "Sec-Fetch-Site": "same-site" }, 403],
    [{ Origin: "https://app.example.org", "Sec-Fetch-Site": "same-site" }, 200],
    [{ Origin: "https://app.example.org" }, 200],
    [{ "Sec-Fetch-Site": "same-origin" }, 200],
    [{}, 200],
  ])("from %j is %i even with the CSRF token", async (from, status) => {
    const { email } = await newPerson(gateways);
    const headers = { ...(await newSession(gateways, email)), ...from };
    expect((await post(at("/api/auth/logout"), undefined, { headers })).status).toBe(status);
  });

  test("needs no CSRF token if an access token authenticates it", async () => {
    const { email, pair } = await newPerson(gateways);
    const { Cookie } = await newSession(gateways, email);
    const response = await post(at("/auth/logout"), undefined, { token: pair.accessToken, headers: { Cookie } });
    expect(response.status).toBe(200);
  });

  test("to change the password ends other sessions and gives this one a new id", async () => {
    const { email, pair } = await newPerson(gateways);
    const headers = await newSession(gateways, email);
    const change = { currentPassword: PASSWORD, newPassword: "Marmalade-Kite-9" };
    const response = await post(at("/auth/password"), change, { headers });
    expect(response).toMatchObject({ status: 200, body: { message: expect.any(String) } });
    expect((await me(headers.Cookie)).status).toBe(401);
    expect((await me(cookieOf(response)!, atOther)).status).toBe(200);
    expect((await post(at("/auth/refresh"), { refreshToken: pair.refreshToken })).status).toBe(401);
  });

  test("without a session gets a CSRF token that is not valid", async () => {
    const { email } = await newPerson(gateways);
    const { Cookie } = await newSession(gateways, email);
    const { status, body } = await gateways.get(at("/csrf-token"));
    expect([status, typeof body.csrfToken]).toEqual([200, "string"]);
    const headers = { Cookie, "X-CSRF-Token": body.csrfToken };
    expect((await post(at("/api/auth/logout"), {}, { headers })).status).toBe(403);
    expect((await me(Cookie)).status).toBe(200);
  });
});

import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { newAddress } from "../../new-address.ts";
import { cookieOf, newFactor, newPerson, openGateways, PASSWORD } from "./gateways.ts";

const TARGET = "https://app.example.org/welcome";

const gateways = useFixture(() => openGateways({ settings: { SIGN_IN_REDIRECTS: "https://app.example.org/*" } }));

const at = (path: string) => `${gateways.one.url}${path}`;
const get = (path: string, Cookie?: string) => gateways.get(at(path), { headers: Cookie ? { Cookie } : {} });

/** Submits a form like a browser, but does not follow a redirect. */
async function submit(path: string, fields: Record<string, string>, headers: Record<string, string> = {}) {
  const response = await fetch(at(path), {
    method: "POST",
    redirect: "manual",
    body: new URLSearchParams(fields),
    headers: { Origin: new URL(gateways.one.url).origin, "X-Forwarded-For": newAddress(), ...headers },
  });
  const { status, headers: told } = response;
  return { status, headers: told, location: told.get("location"), text: await response.text() };
}

const PAGES = [
  "/auth/sign-in",
  "/auth/sign-in/code",
  "/auth/sign-up",
  "/auth/forgotten-password",
  "/auth/new-password?token=x",
  "/auth/confirm-address?token=x",
  "/auth/change-address?token=x",
  "/auth/invitation?token=x",
];

describe("a sign-in page", () => {
  test.each(PAGES)("%s runs no scripts, loads nothing, cannot be framed and is not cached", async (path) => {
    const told = await get(path);
    expect(told.status).toBe(200);
    expect(told.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(told.headers.get("cache-control")).toBe("no-store");
    expect(told.headers.get("referrer-policy")).toBe("same-origin");
    const policy = told.headers.get("content-security-policy")!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/script-src|unsafe/);
    expect(told.text).toContain('<html lang="en">');
    expect(told.text).not.toContain("<script");
  });

  test("escapes all values", async () => {
    const evil = '"><img src=x onerror=alert(1)>';
    const query = new URLSearchParams({ redirect_to: evil, token: evil });
    for (const path of ["/auth/sign-in", "/auth/sign-up", "/auth/new-password"]) {
      expect((await get(`${path}?${query}`)).text).not.toContain("<img");
    }
    const told = await submit("/auth/sign-in", { username: evil, password: "x" });
    expect(told.text).not.toContain("<img");
    expect(told.text).toContain("&lt;img");
  });

  test.each([
    "/auth/sign-in",
    "/auth/sign-up",
    "/auth/forgotten-password",
    "/auth/new-password",
    "/auth/invitation",
    "/auth/sign-out",
  ])("%s accepts only its own form, not one of another site or another content type", async (path) => {
    const foreign = await submit(path, { username: "a", password: "b" }, { Origin: "https://evil.example.org" });
    expect(foreign.status).toBe(403);
    expect(foreign.headers.get("set-cookie")).toBeNull();
    const told = await gateways.post(at(path), { username: "a" });
    expect(told).toMatchObject({ status: 415, body: { error: { code: "UNSUPPORTED_MEDIA_TYPE" } } });
  });

  test("reports empty fields at the fields", async () => {
    const told = await submit("/auth/sign-in", { username: "ada", password: "" });
    expect(told.status).toBe(400);
    expect(told.text).toContain('id="password-fault"');
    expect(told.text).toMatch(/<input id="password"[^>]*aria-invalid="true"/);
  });
});

describe("a sign-in on the pages", () => {
  test("redirects to this service or to an allowed URL", async () => {
    const { email } = await newPerson(gateways);
    for (const [redirect_to, location] of [
      ["/graphiql?a=b#c", "/graphiql?a=b#c"],
      [`${gateways.one.url}/health`, "/health"],
      ["/.//evil.example", `${gateways.one.url}//evil.example`],
      ["/a/..//evil.example", `${gateways.one.url}//evil.example`],
      [TARGET, TARGET],
      ["", "/auth/account"],
    ] as const) {
      const told = await submit("/auth/sign-in", { username: email, password: PASSWORD, redirect_to });
      expect([told.status, told.location]).toEqual([303, location]);
      expect(told.headers.getSetCookie()[0]).toMatch(/^SESSION=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Strict/);
    }
    expect((await get("/auth/sign-in")).headers.get("content-security-policy")).toContain(
      "form-action 'self' https://app.example.org;",
    );
  });

  test("is throttled together with other logins, with Retry-After", async () => {
    const { email } = await newPerson(gateways);
    const from = { "X-Forwarded-For": newAddress() };
    const attempt = (password: string) => submit("/auth/sign-in", { username: email, password }, from);
    for (let n = 0; n < 5; n++) expect((await attempt("Wrong-Boat-7")).status).toBe(401);
    const told = await attempt(PASSWORD);
    expect(told.status).toBe(429);
    expect(Number(told.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(told.text).toContain("Too many failed attempts");
  });

  test("with a code can start at one gateway and end at another, unless the password changes", async () => {
    const { email, pair } = await newPerson(gateways);
    const { backupCodes } = await newFactor(gateways, pair.accessToken);
    const first = await submit("/auth/sign-in", { username: email, password: PASSWORD, redirect_to: "/health" });
    expect([first.status, first.location]).toEqual([303, "/auth/sign-in/code?redirect_to=%2Fhealth"]);
    const Cookie = first.headers.get("set-cookie")!.split(";", 1)[0]!;
    expect(Buffer.from(Cookie.split("=")[1]!, "base64url").includes(PASSWORD)).toBe(false);

    const finish = async (code: string, cookie = Cookie) => {
      const told = await fetch(`${gateways.two.url}/auth/sign-in/code`, {
        method: "POST",
        redirect: "manual",
        body: new URLSearchParams({ code, redirect_to: "/health" }),
        headers: { Cookie: cookie, "X-Forwarded-For": newAddress() },
      });
      return { status: told.status, location: told.headers.get("location"), cookies: told.headers.getSetCookie() };
    };
    expect((await finish("000000")).status).toBe(401);
    expect((await finish(backupCodes[0]!, "SIGNING_IN=made-up")).status).toBe(401);
    expect((await finish(backupCodes[0]!, "OTHER=1")).status).toBe(401);
    const told = await finish(backupCodes[0]!);
    expect([told.status, told.location]).toEqual([303, "/health"]);
    expect(told.cookies.map((cookie) => cookie.split("=", 1)[0])).toEqual(["SESSION", "SIGNING_IN"]);
    expect((await finish(backupCodes[0]!)).status).toBe(401);

    const change = { currentPassword: PASSWORD, newPassword: "Marmalade-Kite-9" };
    await gateways.post(at("/auth/password"), change, { token: pair.accessToken });
    expect((await finish(backupCodes[1]!)).status).toBe(401);
  });

  test("ends when the sign-out form is submitted with its CSRF token", async () => {
    const { email } = await newPerson(gateways);
    const login = await gateways.post(at("/api/auth/login"), { username: email, password: PASSWORD });
    const Cookie = cookieOf(login)!;
    const page = await get("/auth/sign-in", Cookie);
    expect(page.text).toContain(email);
    expect(cookieOf(page)).toBe(Cookie);
    const csrf = /name="csrf" value="([^"]+)"/.exec(page.text)![1]!;

    const me = async () => (await get("/api/auth/me", Cookie)).status;
    for (const wrong of ["", "guessed"]) {
      expect((await submit("/auth/sign-out", { csrf: wrong }, { Cookie })).status).toBe(403);
    }
    expect(await me()).toBe(200);
    const told = await submit("/auth/sign-out", { csrf }, { Cookie });
    expect([told.status, told.location]).toEqual([303, "/auth/sign-in"]);
    expect(told.headers.get("set-cookie")).toMatch(/^SESSION=; .*Max-Age=0$/);
    expect(await me()).toBe(401);
  });
});

test("a provider has a button, which passes the redirect", async () => {
  await gateways.owner.query(
    "insert into auth.providers (name, kind, issuer, client_id, title) values ('acme', 'oidc', 'https://id.example.org', 'us', 'Acme & Co')",
  );
  const { text } = await get("/auth/sign-in?redirect_to=%2Fhealth");
  expect(text).toContain('href="/auth/providers/acme/sign-in?redirect_to=%2Fhealth"');
  expect(text).toContain("Sign in with Acme &amp; Co");
});

test.each([
  ["/auth/sign-in", "/auth/sign-up"],
  ["/auth/sign-up", "/auth/sign-in"],
  ["/auth/sign-in/code", "/auth/sign-in"],
])("the link of %s to %s passes the redirect", async (path, other) => {
  expect((await get(`${path}?redirect_to=%2Fhealth`)).text).toContain(`href="${other}?redirect_to=%2Fhealth"`);
  expect((await get(path)).text).toContain(`href="${other}"`);
});

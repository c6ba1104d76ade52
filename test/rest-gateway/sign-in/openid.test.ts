import { createHash, randomBytes } from "node:crypto";
import { generate } from "otplib";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { at, openFederatedGateways, PROGRAM, SITE, whoIs } from "./federated-gateways.ts";
import { newFactor, newPerson, PASSWORD } from "./gateways.ts";
import { CLIENT, openOpenIdProvider } from "./openid-provider.ts";

const SIGN_IN = at("/auth/providers/example/sign-in");
const gateways = useFixture(openFederatedGateways);
const provider = useFixture(() => openOpenIdProvider([SITE]));
beforeAll(async () => {
  await gateways.addProvider({
    name: "example",
    kind: "oidc",
    issuer: provider.issuer,
    title: "The Example",
    clientId: CLIENT.id,
    secret: CLIENT.secret,
  });
});

const signIn = (login: string, query = "", browser = gateways.browser()) =>
  provider.signIn(browser, `${SIGN_IN}${query}`, login);

/** Links an identity, and returns the last response to the user, who may be away for some time. */
async function link(token: string, login: string, away = async () => {}) {
  const { status, headers, body } = await gateways.post(
    `${gateways.one.url}/auth/providers/example/link`,
    {},
    { token },
  );
  expect(status).toBe(200);
  const Cookie = headers.get("set-cookie")!.split(";", 1)[0]!;
  const back = await provider.signIn(gateways.browser(), body.address, login);
  await away();
  return gateways.get(`${gateways.two.url}${back.url.pathname}${back.url.search}`, { headers: { Cookie } });
}

const NEW_PASSWORD = "Quartz-Bird-8";

async function resetPassword(email: string): Promise<void> {
  await gateways.post(`${gateways.one.url}/auth/forgot-password`, { email });
  const mail = await gateways.linkIn({ to: email, about: "Set a new password" });
  const reset = { token: mail.searchParams.get("token"), password: NEW_PASSWORD };
  expect((await gateways.post(`${gateways.one.url}/auth/reset-password`, reset)).status).toBe(200);
}

async function userOf(email: string) {
  const { rows } = await gateways.owner.query(
    `select users.id, users.name, account.verified_email, account.password_hash,
      (select count(*)::int from auth.identities where identities.user_id = users.id) as identities
    from public.users left join auth.users as account on account.user_id = users.id where users.email = $1`,
    [email],
  );
  return rows[0];
}

describe("a sign-in through an OpenID Connect provider", () => {
  test("is listed for anonymous callers", async () => {
    const { body } = await gateways.get(`${gateways.one.url}/auth/providers`);
    expect(body).toEqual({
      providers: [{ name: "example", title: "The Example", kind: "oidc", address: "/auth/providers/example/sign-in" }],
    });
  });

  test("sends scopes, state, nonce and PKCE, and returns to the public URL", async () => {
    const { headers, status } = await gateways.browser().ask(SIGN_IN);
    expect(status).toBe(303);
    const { origin, searchParams } = new URL(headers.get("location")!);
    expect(origin).toBe(provider.issuer);
    expect(Object.fromEntries(searchParams)).toEqual({
      response_type: "code",
      client_id: CLIENT.id,
      scope: "openid profile email",
      redirect_uri: at("/auth/providers/example/callback"),
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: "S256",
    });
    const cookie = headers.get("set-cookie")!;
    expect(cookie).toMatch(
      /^FEDERATION=[\w-]{43}; Path=\/auth\/providers; HttpOnly; Secure; Max-Age=1800; SameSite=Lax$/,
    );
  });

  test("creates an account the first time and finds it afterwards, at any gateway", async () => {
    const browser = gateways.browser();
    const shown = await signIn("ada", "", browser);
    expect(shown).toMatchObject({ status: 200, body: { username: "ada@example.org", role: "authenticated" } });
    const cookie = shown.headers.getSetCookie().find((each) => each.startsWith("SESSION="));
    expect(cookie).toMatch(/^SESSION=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Strict; Max-Age=1800$/);
    const { userId } = await whoIs(browser);
    expect(await userOf("ada@example.org")).toEqual({
      id: String(userId),
      name: "The ada",
      verified_email: "ada@example.org",
      password_hash: null,
      identities: 1,
    });

    const other = gateways.browser({ gateway: "two" });
    await signIn("ada", "", other);
    expect((await whoIs(other)).userId).toBe(userId);
    expect(await whoIs(browser)).toBeNull();
  });

  test("can start at one gateway and end at another", async () => {
    const browser = gateways.browser();
    const request = await browser.ask(SIGN_IN);
    const back = await provider.signIn(gateways.browser(), request.headers.get("location")!, "wanderer");
    // The sign-in is refused without the cookie of the browser that left.
    expect(back.status).toBe(400);
    const cookie = `FEDERATION=${browser.cookies(SITE).get("FEDERATION")}`;
    const callback = `${gateways.two.url}${back.url.pathname}${back.url.search}`;
    const result = await gateways.get(callback, { headers: { Cookie: cookie } });
    expect(result).toMatchObject({ status: 200, body: { username: "wanderer@example.org" } });
  });

  test("can redirect to this service or to an allowed URL", async () => {
    const browser = gateways.browser();
    expect((await signIn("target", "?redirect_to=/auth/providers", browser)).url.href).toBe(at("/auth/providers"));
    expect((await whoIs(browser)).username).toBe("target@example.org");
    const { url } = await signIn("target", `?redirect_to=${encodeURIComponent(`${PROGRAM}?from=here`)}`);
    expect(url.href).toBe(`${PROGRAM}?from=here`);
  });

  test.each([
    "https://evil.example.org/",
    "https://app.example.org/other",
    "https://app.example.org.evil.example/signed-in",
    "https://user@app.example.org/signed-in",
    "http://app.example.org/signed-in",
    "//evil.example.org",
    "/\\evil.example.org",
    "/\t/evil.example.org",
    "javascript:alert(1)",
    "https://service.example.org@evil.example/",
  ])("does not redirect to %j", async (target) => {
    const shown = await gateways.browser().ask(`${SIGN_IN}?redirect_to=${encodeURIComponent(target)}`);
    expect(shown).toMatchObject({ status: 400, body: { error: { code: "VALIDATION_ERROR" } } });
  });

  test("shows browsers a page, and navigates to the target from a page of this site", async () => {
    const browser = gateways.browser({ accept: "text/html,*/*" });
    const shown = await signIn("reader", "", browser);
    expect(shown.text).toContain("You are signed in as <bdi>reader@example.org</bdi>.");
    expect(shown.headers.get("content-security-policy")).toContain("default-src 'none'");

    const request = await browser.ask(`${SIGN_IN}?redirect_to=/health`);
    const back = await browser.ask(request.headers.get("location")!);
    const callback = back.headers.get("location")!;
    expect(callback).toContain("/callback?code=");
    const last = await browser.ask(callback, { headers: { "Sec-Fetch-Site": "cross-site" } });
    expect(last).toMatchObject({ status: 200 });
    expect(last.headers.get("refresh")).toBe(`0; url=${at("/health")}`);
  });
});

test("a code that the provider refuses because it was used is 401", async () => {
  const [thief, browser] = [gateways.browser(), gateways.browser()];
  const request = await browser.ask(SIGN_IN);
  const departure = new URL(request.headers.get("location")!);
  const back = await provider.signIn(gateways.browser(), departure, "robbed");
  const used = await browser.ask(back.url);
  expect(used.status).toBe(200);

  const begun = new URL((await thief.ask(SIGN_IN)).headers.get("location")!);
  const replayed = new URL(back.url);
  replayed.searchParams.set("state", begun.searchParams.get("state")!);
  expect(await thief.ask(replayed)).toMatchObject({ status: 401, body: { error: { code: "PROVIDER_REFUSED" } } });
  expect(await gateways.lastRefusal()).toMatchObject({ because: "The provider returned the error invalid_grant" });
});

describe("tokens for an application", () => {
  const verifier = randomBytes(32).toString("base64url");
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  const query = `?mode=token&code_challenge=${challenge}&redirect_to=${encodeURIComponent(PROGRAM)}`;
  const exchange = (code: string | null, codeVerifier?: string, url = gateways.two.url) =>
    gateways.post(`${url}/auth/providers/exchange`, { code, codeVerifier });

  test("are returned once for a code with its verifier", async () => {
    const { url, headers } = await signIn("program", query);
    expect(`${url.origin}${url.pathname}`).toBe(PROGRAM);
    expect([...url.searchParams.keys()]).toEqual(["code"]);
    expect(headers.getSetCookie().join()).not.toContain("SESSION=");
    const code = url.searchParams.get("code");
    const result = await exchange(code, verifier);
    expect(result).toMatchObject({ status: 200, body: { tokenType: "Bearer", expiresIn: 3600 } });
    const me = await gateways.post(`${gateways.one.url}/auth/logout`, undefined, { token: result.body.accessToken });
    expect(me.status).toBe(200);
    expect(await exchange(code, verifier)).toMatchObject({ status: 400, body: { error: { code: "SIGN_IN_ENDED" } } });
  });

  test.each([undefined, "another verifier"])(
    "are refused with the verifier %j, and the code is used up",
    async (wrong) => {
      const code = (await signIn("program", query)).url.searchParams.get("code");
      expect(await exchange(code, wrong)).toMatchObject({ status: 400, body: { error: { code: "SIGN_IN_ENDED" } } });
      expect((await exchange(code, verifier)).status).toBe(400);
    },
  );

  test("are refused after a minute and for a disabled account", async () => {
    const late = (await signIn("program", query)).url.searchParams.get("code");
    await gateways.owner.query("update auth.federation_codes set expires_at = now() - interval '1 second'");
    expect((await exchange(late, verifier)).status).toBe(400);

    const code = (await signIn("program", query)).url.searchParams.get("code");
    const { id } = await userOf("program@example.org");
    await gateways.owner.query("select auth.disable_account($1, null)", [id]);
    expect(await exchange(code, verifier)).toMatchObject({
      status: 403,
      body: { error: { code: "ACCOUNT_DISABLED" } },
    });
    await gateways.owner.query("select auth.enable_account($1, null)", [id]);
  });

  test("are refused after a password change", async () => {
    const code = (await signIn("program", query)).url.searchParams.get("code");
    const { id } = await userOf("program@example.org");
    await gateways.owner.query("select auth.set_password($1, '$none')", [id]);
    expect(await exchange(code, verifier)).toMatchObject({ status: 400, body: { error: { code: "SIGN_IN_ENDED" } } });
  });

  test.each([
    ["?mode=token", "MISSING_FIELD", "redirect_to"],
    ["?mode=token&redirect_to=https://evil.example.org/", "VALIDATION_ERROR", "redirect_to"],
    ["?mode=cookie", "VALIDATION_ERROR", "mode"],
    [`${query}x`, "VALIDATION_ERROR", "redirect_to"],
    ["?mode=token&redirect_to=/&code_challenge=short", "VALIDATION_ERROR", "code_challenge"],
    ["?mode=token&redirect_to=/&code_challenge_method=plain", "VALIDATION_ERROR", "code_challenge_method"],
  ])("cannot be requested with %s", async (wrong, code, field) => {
    expect(await gateways.browser().ask(`${SIGN_IN}${wrong}`)).toMatchObject({
      status: 400,
      body: { error: { code, details: [{ field }] } },
    });
  });
});

describe("the account of a federated sign-in", () => {
  const PASS = `select outcome from auth.pass_federation(
    'example', $1, '{}', $2, $3, jsonb_populate_record(null::auth.client_info, '{}'))`;

  test("is the one with the same e-mail address, if both sides have verified it", async () => {
    const { email, userId } = await newPerson(gateways);
    await gateways.owner.query("update auth.users set verified_email = $1 where user_id = $2", [email, userId]);
    const browser = gateways.browser();
    await signIn(email.split("@")[0]!, "", browser);
    expect((await whoIs(browser)).userId).toBe(userId);
  });

  test("is one whose address nobody has proved here, and ends what was there before", async () => {
    const { email, userId, pair } = await newPerson(gateways);
    const browser = gateways.browser();
    await signIn(email.split("@")[0]!, "", browser);
    expect((await whoIs(browser)).userId).toBe(userId);
    const refresh = { refreshToken: pair.refreshToken };
    expect((await gateways.post(`${gateways.one.url}/auth/refresh`, refresh)).status).toBe(401);
    expect(
      (await gateways.post(`${gateways.one.url}/auth/login`, { username: email, password: PASSWORD })).status,
    ).toBe(401);
  });

  test("is not one that has proved another address: 409", async () => {
    const { email } = await newPerson(gateways);
    await gateways.owner.query("update auth.users set verified_email = 'former@example.org' where email = $1", [email]);
    expect(await signIn(email.split("@")[0]!)).toMatchObject({
      status: 409,
      body: { error: { code: "RESOURCE_CONFLICT" } },
    });
    expect((await userOf(email)).identities).toBe(0);
  });

  test("is not one whose address is unverified at the provider: 409", async () => {
    const email = "unverified-carl@example.org";
    const { rows } = await gateways.owner.query(
      "select auth.add_account('Carl', $1, 'authenticated', null, null) as id",
      [email],
    );
    expect(await signIn("unverified-carl")).toMatchObject({ status: 409 });
    await gateways.owner.query("delete from public.users where id = $1", [rows[0].id]);
    expect(await signIn("unverified-carl")).toMatchObject({ status: 200 });
    expect((await userOf(email)).verified_email).toBeNull();
  });

  test("loses identities that were linked before the owner of an unverified address reset the password", async () => {
    await signIn("unverified-eve");
    const { id } = await userOf("unverified-eve@example.org");
    // The one who reads it sets a password by mail.
    await gateways.owner.query(
      "update auth.users set password_changed_at = now() + interval '1 second', verified_email = 'unverified-eve@example.org' where user_id = $1",
      [id],
    );
    expect(await signIn("unverified-eve")).toMatchObject({ status: 409 });
  });

  test("is created for an existing user without credentials, if the provider has verified the address", async () => {
    const { rows } = await gateways.owner.query(
      "insert into public.users (name, email) values ('Entered', 'entered@example.org') returning id",
    );
    const browser = gateways.browser();
    await signIn("entered", "", browser);
    expect((await whoIs(browser)).userId).toBe(Number(rows[0].id));
  });

  test("is not created if the provider may not create accounts: 403", async () => {
    await gateways.owner.query("update auth.providers set sign_ups = false");
    try {
      expect(await signIn("newcomer")).toMatchObject({ status: 403, body: { error: { code: "SIGN_UP_CLOSED" } } });
      expect(await userOf("newcomer@example.org")).toBeUndefined();
      expect(await gateways.lastRefusal()).toMatchObject({ reason: "SIGN_UP_CLOSED" });
    } finally {
      await gateways.owner.query("update auth.providers set sign_ups = true");
    }
    expect((await signIn("newcomer")).status).toBe(200);
  });

  test("stays disabled: 403", async () => {
    await signIn("banned");
    const { id } = await userOf("banned@example.org");
    await gateways.owner.query("select auth.disable_account($1, null)", [id]);
    expect(await signIn("banned")).toMatchObject({ status: 403, body: { error: { code: "ACCOUNT_DISABLED" } } });
  });

  test("can be linked by its signed-in user, whatever the address", async () => {
    const { userId, pair } = await newPerson(gateways);
    const result = await link(pair.accessToken, "unverified-linked");
    expect(result).toMatchObject({ status: 200, body: { message: expect.any(String) } });
    const later = gateways.browser();
    await signIn("unverified-linked", "", later);
    expect((await whoIs(later)).userId).toBe(userId);
  });

  test("is not linked with a forbidden redirect, which is refused with its field", async () => {
    const { pair } = await newPerson(gateways);
    const request = await gateways.post(
      `${gateways.one.url}/auth/providers/example/link`,
      { redirectTo: "https://evil.example.org/" },
      { token: pair.accessToken },
    );
    expect(request).toMatchObject({ status: 400, body: { error: { details: [{ field: "redirectTo" }] } } });
  });

  test("loses identities that were linked before a password reset by e-mail", async () => {
    const { email, userId, pair } = await newPerson(gateways);
    await gateways.owner.query("update auth.users set verified_email = $1 where username = $1", [email]);
    await link(pair.accessToken, "unverified-squatter");
    expect((await signIn("unverified-squatter")).status).toBe(200);
    await resetPassword(email);
    expect(await signIn("unverified-squatter")).toMatchObject({ status: 409 });

    const login = { username: email, password: NEW_PASSWORD };
    const { body } = await gateways.post(`${gateways.one.url}/auth/login`, login);
    await link(body.accessToken, "unverified-squatter");
    const browser = gateways.browser();
    await signIn("unverified-squatter", "", browser);
    expect((await whoIs(browser)).userId).toBe(userId);

    const change = { currentPassword: NEW_PASSWORD, newPassword: "Velvet-Stone-9" };
    const changed = await gateways.post(`${gateways.one.url}/auth/password`, change, { token: body.accessToken });
    expect(changed.status).toBe(200);
    expect((await signIn("unverified-squatter")).status).toBe(200);
  });

  test("is not linked with a forbidden redirect, which is refused with its field", async () => {
    const { pair } = await newPerson(gateways);
    const request = await gateways.post(
      `${gateways.one.url}/auth/providers/example/link`,
      { redirectTo: "https://evil.example.org/" },
      { token: pair.accessToken },
    );
    expect(request).toMatchObject({ status: 400, body: { error: { details: [{ field: "redirectTo" }] } } });
  });

  test("loses identities that were linked before the address was verified and the password reset", async () => {
    const { email, pair } = await newPerson(gateways);
    await gateways.owner.query("update auth.users set verified_email = $1 where username = $1", [email]);
    await link(pair.accessToken, "unverified-trojan");
    await resetPassword(email);
    expect(await signIn("unverified-trojan")).toMatchObject({ status: 409 });
  });

  test("keeps an identity after a password reset if the provider has verified the address", async () => {
    const browser = gateways.browser();
    await signIn("forgetful", "", browser);
    const { userId } = await whoIs(browser);
    await resetPassword("forgetful@example.org");
    const later = gateways.browser();
    await signIn("forgetful", "", later);
    expect((await whoIs(later)).userId).toBe(userId);
  });

  test("is not linked while a password reset is pending", async () => {
    const { email } = await newPerson(gateways);
    await gateways.owner.query("update auth.users set verified_email = $1 where username = $1", [email]);
    const { id } = await userOf(email);
    await gateways.post(`${gateways.one.url}/auth/forgot-password`, { email });
    const mail = await gateways.linkIn({ to: email, about: "Set a new password" });
    const setter = await gateways.owner.connect();
    try {
      await setter.query("begin");
      await setter.query("select now()");
      await gateways.owner.query(PASS, ["fast-thief", id, new Date()]);
      const token = mail.searchParams.get("token")!;
      await setter.query("select auth.reset_password(sha256($1), '$none', null)", [Buffer.from(token)]);
      await setter.query("commit");
    } finally {
      setter.release();
    }
    const known = ["fast-thief", null, new Date()];
    expect((await gateways.owner.query(PASS, known)).rows).toEqual([{ outcome: "conflict" }]);
  });

  test("is not linked by a sign-in that started before a password change", async () => {
    const { email, pair } = await newPerson(gateways);
    const result = await link(pair.accessToken, "unverified-thief", () => resetPassword(email));
    expect(result).toMatchObject({ status: 400, body: { error: { code: "SIGN_IN_ENDED" } } });
    expect((await userOf(email)).identities).toBe(0);
  });

  test("is not linked by a callback that runs during a password change", async () => {
    const { email } = await newPerson(gateways);
    const { id } = await userOf(email);
    const leaving = [id, new Date()];
    expect((await gateways.owner.query(PASS, ["early-thief", ...leaving])).rows).toEqual([{ outcome: "linked" }]);
    await resetPassword(email);
    expect((await gateways.owner.query(PASS, ["early-thief", ...leaving])).rows).toEqual([{ outcome: "ended" }]);
  });

  test("is not found by a sign-in that waits for a password change", async () => {
    const { email } = await newPerson(gateways);
    const { id } = await userOf(email);
    await gateways.owner.query(PASS, ["waiting-thief", id, new Date()]);
    const setter = await gateways.owner.connect();
    try {
      await setter.query("begin");
      await setter.query("select auth.lock_account($1)", [id]);
      const waiting = gateways.owner.query(PASS, ["waiting-thief", null, new Date()]);
      // A gateway may have something to write about the account as well.
      const blocked = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
        and query like '%auth.pass_federation%'`;
      await until(async () => (await gateways.owner.query(blocked)).rowCount === 1);
      await setter.query("update auth.identities set is_vouched = false where user_id = $1", [id]);
      await setter.query("update auth.users set password_changed_at = clock_timestamp() where user_id = $1", [id]);
      await setter.query("commit");
      expect((await waiting).rows).toEqual([{ outcome: "conflict" }]);
    } finally {
      setter.release();
    }
  });

  test("is not one whose address is equal only by Postgres's collation: 409", async () => {
    const email = "kim@example.org";
    await gateways.owner.query("select auth.add_account('Kim', $1, 'authenticated', null, null)", [email]);
    const { rows } = await gateways.owner.query("select lower($1) as folded", ["\u212aim@example.org"]);
    expect(rows[0].folded).toBe(email);
    expect(await signIn("\u212aim")).toMatchObject({ status: 409 });
    expect((await signIn("KIM")).status).toBe(200);
    expect((await userOf(email)).identities).toBe(1);
  });

  test("cannot be linked without a signed-in user or without a CSRF token", async () => {
    const link = `${gateways.one.url}/auth/providers/example/link`;
    expect((await gateways.post(link, {})).status).toBe(401);
    const browser = gateways.browser();
    await signIn("forged", "", browser);
    const Cookie = `SESSION=${browser.cookies(SITE).get("SESSION")}`;
    expect((await gateways.post(link, {}, { headers: { Cookie } })).status).toBe(403);
  });

  test("is created once by two concurrent first sign-ins", async () => {
    const [one, two] = [gateways.browser(), gateways.browser({ gateway: "two" })];
    const result = await Promise.all([signIn("twins", "", one), signIn("twins", "", two)]);
    expect(result.map(({ status }) => status)).toEqual([200, 200]);
    expect((await userOf("twins@example.org")).identities).toBe(1);
  });
});

describe("an account with an authenticator app", () => {
  async function newGuarded(login: string) {
    const browser = gateways.browser();
    const query = `?mode=token&redirect_to=${encodeURIComponent(PROGRAM)}`;
    const code = (await signIn(login, query, browser)).url.searchParams.get("code");
    const { body } = await gateways.post(`${gateways.one.url}/auth/providers/exchange`, { code });
    return newFactor(gateways, body.accessToken);
  }

  test("still requires its code, which any gateway accepts", async () => {
    const { backupCodes } = await newGuarded("guarded");
    const browser = gateways.browser();
    const shown = await signIn("guarded", "?redirect_to=/auth/providers", browser);
    expect(shown).toMatchObject({ status: 401, body: { error: { code: "MFA_REQUIRED" } } });
    expect(await whoIs(browser)).toBeNull();

    const Cookie = `FEDERATION=${browser.cookies(SITE).get("FEDERATION")}`;
    const send = (code: string, headers = { Cookie }) =>
      gateways.post(`${gateways.two.url}/auth/providers/code`, { code }, { headers });
    expect(await send("wrong")).toMatchObject({ status: 401, body: { error: { code: "INVALID_CODE" } } });
    expect(await send(backupCodes[0]!, { Cookie: `FEDERATION=${"a".repeat(43)}` })).toMatchObject({
      status: 400,
      body: { error: { code: "SIGN_IN_ENDED" } },
    });
    const passed = await fetch(`${gateways.two.url}/auth/providers/code`, {
      method: "POST",
      redirect: "manual",
      headers: { Cookie, "Content-Type": "application/json" },
      body: JSON.stringify({ code: backupCodes[0] }),
    });
    expect([passed.status, passed.headers.get("location")]).toEqual([303, at("/auth/providers")]);
    expect(passed.headers.get("set-cookie")).toContain("SESSION=");
    expect((await send(backupCodes[1]!)).status).toBe(400);
  });

  test("shows browsers a page for the code, with errors", async () => {
    const { secret } = await newGuarded("paged");
    const browser = gateways.browser({ accept: "text/html" });
    const request = await signIn("paged", "", browser);
    expect(request.url.pathname).toBe("/auth/providers/code");
    expect(request.text).toContain('name="code"');
    const wrong = await browser.go(request.url, { form: { code: "000000" } });
    expect(wrong.status).toBe(401);
    expect(wrong.text).toContain('role="alert"');
    await gateways.owner.query("update auth.mfa_factors set last_used_step = null");
    const right = await browser.go(request.url, { form: { code: await generate({ secret }) } });
    expect(right.text).toContain("You are signed in as <bdi>paged@example.org</bdi>.");
  });

  test.each([
    ["the provider was disabled", "select auth.enable_provider('example', false, null)"],
    [
      "another password was set",
      "select auth.set_password(id, '$none') from users where email = 'belated@example.org'",
    ],
  ])("refuses the code when meanwhile %s", async (_what, statement) => {
    const { rows } = await gateways.owner.query("select from users where email = 'belated@example.org'");
    if (rows.length === 0) await newGuarded("belated");
    const browser = gateways.browser();
    expect((await signIn("belated", "", browser)).status).toBe(401);
    const headers = { Cookie: `FEDERATION=${browser.cookies(SITE).get("FEDERATION")}` };
    const send = () => gateways.post(`${gateways.one.url}/auth/providers/code`, { code: "000000" }, { headers });
    expect(await send()).toMatchObject({ status: 401, body: { error: { code: "INVALID_CODE" } } });
    await gateways.owner.query(statement);
    try {
      expect(await send()).toMatchObject({ status: 400, body: { error: { code: "SIGN_IN_ENDED" } } });
    } finally {
      await gateways.owner.query("select auth.enable_provider('example', true, null)");
    }
  });

  test("is protected by the login throttle", async () => {
    await newGuarded("throttled");
    const browser = gateways.browser();
    await signIn("throttled", "", browser);
    const headers = { Cookie: `FEDERATION=${browser.cookies(SITE).get("FEDERATION")}` };
    const send = () =>
      gateways.post(`${gateways.one.url}/auth/providers/code`, { code: "000000" }, { headers, from: "10.9.9.9" });
    for (let attempt = 0; attempt < 5; attempt++) expect((await send()).status).toBe(401);
    expect((await send()).status).toBe(429);
  });
});

describe("a sign-out", () => {
  async function signOut(browser = gateways.browser(), body = {}) {
    const Cookie = ["SESSION", "FEDERATION"].map((name) => `${name}=${browser.cookies(SITE).get(name)}`).join("; ");
    const { csrfToken } = (await gateways.get(`${gateways.one.url}/csrf-token`, { headers: { Cookie } })).body;
    const headers = { Cookie, "X-CSRF-Token": csrfToken };
    return gateways.post(`${gateways.two.url}/auth/providers/example/sign-out`, body, { headers });
  }

  test("ends the session here and at the provider and returns", async () => {
    const browser = gateways.browser();
    await signIn("leaver", "", browser);
    const result = await signOut(browser, { redirectTo: "/health" });
    expect(result.status).toBe(200);
    expect(await whoIs(browser)).toBeNull();
    const address = new URL(result.body.address);
    expect(address.origin).toBe(provider.issuer);
    expect(address.searchParams.get("post_logout_redirect_uri")).toBe(at("/auth/providers/example/signed-out"));
    expect(address.searchParams.get("id_token_hint")).toMatch(/^ey/);

    const request = await browser.go(address);
    const form = Object.fromEntries(
      [...request.text.matchAll(/name="([^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [name!, value!]),
    );
    const action = new URL(/action="([^"]+)"/.exec(request.text)![1]!, request.url);
    expect((await browser.go(action, { form: { ...form, logout: "yes" } })).url.href).toBe(at("/health"));
  });

  test("requires a session, a CSRF token and an allowed redirect", async () => {
    const browser = gateways.browser();
    await signIn("leaver", "", browser);
    const Cookie = `SESSION=${browser.cookies(SITE).get("SESSION")}`;
    const address = `${gateways.one.url}/auth/providers/example/sign-out`;
    expect((await gateways.post(address, {})).status).toBe(401);
    expect((await gateways.post(address, {}, { headers: { Cookie } })).status).toBe(403);
    expect(await signOut(browser, { redirectTo: "https://evil.example.org/" })).toMatchObject({
      status: 400,
      body: { error: { details: [{ field: "redirectTo" }] } },
    });
    expect(await whoIs(browser)).not.toBeNull();
    expect((await signOut(browser)).status).toBe(200);
  });

  test("of a session that was created by a password has no provider URL", async () => {
    const { email } = await newPerson(gateways);
    const login = await gateways.post(`${gateways.one.url}/api/auth/login`, {
      username: email,
      password: "Tangerine-Boat-7",
    });
    const Cookie = login.headers.get("set-cookie")!.split(";", 1)[0]!;
    const { csrfToken } = (await gateways.get(`${gateways.one.url}/csrf-token`, { headers: { Cookie } })).body;
    const headers = { Cookie, "X-CSRF-Token": csrfToken };
    const result = await gateways.post(`${gateways.one.url}/auth/providers/example/sign-out`, {}, { headers });
    expect(result).toMatchObject({ status: 200, body: { address: null } });
  });
});

describe("endpoints of providers", () => {
  test("redirect to the host name that the provider knows", async () => {
    const unnamed = await openFederatedGateways({ PUBLIC_URL: "" });
    const path = "/auth/providers/any/sign-in?mode=token";
    const { port } = new URL(unnamed.one.url);
    const result = await fetch(`http://localhost:${port}${path}`, { redirect: "manual" });
    expect([result.status, result.headers.get("location")]).toEqual([303, unnamed.one.url + path]);
    expect((await unnamed.get(unnamed.one.url + path)).status).toBe(404);
    await unnamed.close();
    expect((await gateways.get(gateways.one.url + path)).status).toBe(404);
  });

  test.each([
    ["/auth/providers/unknown/sign-in", 404],
    ["/auth/providers/example/other", 404],
    ["/auth/providers/example", 404],
    ["/auth/providers/", 404],
    ["/auth/providers/example/metadata", 404],
    ["/auth/providers/example/sign-out", 405],
    ["/auth/providers/exchange", 405],
  ])("GET %s is %i", async (path, status) => {
    expect((await gateways.get(`${gateways.one.url}${path}`)).status).toBe(status);
  });

  test("of a disabled provider do not exist, and it is not listed", async () => {
    await gateways.owner.query("select auth.enable_provider('example', false, null)");
    expect((await gateways.browser().ask(SIGN_IN)).status).toBe(404);
    expect((await gateways.get(`${gateways.one.url}/auth/providers`)).body.providers).toEqual([]);
    await gateways.owner.query("select auth.enable_provider('example', true, null)");
    expect((await gateways.browser().ask(SIGN_IN)).status).toBe(303);
  });
});

test("logs and audit log contain no secret, code or token of a sign-in", async () => {
  const browser = gateways.browser();
  const secrets = new Set([CLIENT.secret]);
  const request = await browser.ask(`${SIGN_IN}?mode=token&redirect_to=${encodeURIComponent(PROGRAM)}`);
  const departure = new URL(request.headers.get("location")!);
  for (const name of ["state", "nonce"]) secrets.add(departure.searchParams.get(name)!);
  const back = await provider.signIn(gateways.browser(), departure, "secretive");
  secrets.add(back.url.searchParams.get("code")!);
  const cookie = browser.cookies(SITE).get("FEDERATION")!;
  const callback = `${gateways.one.url}${back.url.pathname}${back.url.search}`;
  const arrive = () => fetch(callback, { redirect: "manual", headers: { Cookie: `FEDERATION=${cookie}` } });
  const code = new URL((await arrive()).headers.get("location")!).searchParams.get("code")!;
  expect((await arrive()).status).toBe(400);
  const { body } = await gateways.post(`${gateways.one.url}/auth/providers/exchange`, { code });
  for (const each of [cookie, code, body.accessToken, body.refreshToken]) secrets.add(each);

  const { rows } = await gateways.owner.query("select to_jsonb(audit_log)::text as line from auth.audit_log");
  const logs = gateways.logged() + rows.map(({ line }) => line).join("\n");
  expect(rows.length).toBeGreaterThan(10);
  expect(gateways.logged()).toContain("/auth/providers/example/callback");
  for (const secret of secrets) expect(logs).not.toContain(secret);
});

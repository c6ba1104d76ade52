import { generate } from "otplib";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { newAddress } from "../../../new-address.ts";
import { until } from "../../../until.ts";
import { at, openFederatedGateways } from "../federated-gateways.ts";
import { cookieOf, newFactor, newPerson, newSession, PASSWORD, type Person } from "../gateways.ts";

const NEW_PASSWORD = "Marmalade-Kite-9";
const ACCOUNT = "/auth/account";
const HOSTILE = `"><img src=x onerror=alert(1)>`;

const gateways = useFixture(openFederatedGateways);
beforeAll(async () => {
  await gateways.addProvider({
    name: "acme",
    kind: "oauth2",
    issuer: "https://id.example.org",
    clientId: "us",
    title: `Acme ${HOSTILE}`,
    settings: {
      authorization_endpoint: "https://id.example.org/authorize",
      token_endpoint: "https://id.example.org/token",
      userinfo_endpoint: "https://id.example.org/user",
    },
  });
});

const urlOf = (path: string) => `${gateways.one.url}${path}`;

/** The browser of somebody who is signed in to a session. */
async function newBrowser(person?: Person, code?: string) {
  const { email, userId, pair } = person ?? (await newPerson(gateways));
  let { Cookie } = await newSession(gateways, email, code);
  const ask = async (path: string, init: RequestInit, headers: Record<string, string> = {}) => {
    const response = await fetch(urlOf(path), {
      ...init,
      redirect: "manual",
      headers: { Cookie, Origin: gateways.one.url, "X-Forwarded-For": newAddress(), ...headers },
    });
    const text = await response.text();
    return { status: response.status, location: response.headers.get("location"), headers: response.headers, text };
  };
  const get = (path = ACCOUNT, headers = {}) => ask(path, {}, headers);
  const csrf = async () => /name="csrf" value="([^"]+)"/.exec((await get()).text)?.[1] ?? "";
  return {
    email,
    userId,
    pair,
    get,
    post: async (path: string, fields: Record<string, string>, headers = {}) =>
      ask(path, { method: "POST", body: new URLSearchParams({ csrf: await csrf(), ...fields }) }, headers),
    cookie: () => Cookie,
    useCookieOf: (headers: Headers) => {
      Cookie = cookieOf({ headers } as never)!;
    },
  };
}

const FORMS: readonly (readonly [string, Record<string, string>])[] = [
  [ACCOUNT, { name: "Eve" }],
  [`${ACCOUNT}/verification`, {}],
  [`${ACCOUNT}/password`, { currentPassword: PASSWORD, newPassword: NEW_PASSWORD }],
  [`${ACCOUNT}/address`, { email: "eve@example.org", password: PASSWORD }],
  [`${ACCOUNT}/authenticator`, { step: "enroll", password: PASSWORD }],
  [`${ACCOUNT}/backup-codes`, { password: PASSWORD, code: "123456" }],
  [`${ACCOUNT}/passkeys`, { name: "Laptop", password: PASSWORD }],
  [`${ACCOUNT}/passkeys/edit`, { step: "remove", passkey: "x", password: PASSWORD }],
  [`${ACCOUNT}/sign-ins`, { all: "true" }],
  [`${ACCOUNT}/keys`, { name: "x", password: PASSWORD }],
  [`${ACCOUNT}/keys/revoke`, { key: "1" }],
  [`${ACCOUNT}/providers/link`, { provider: "acme" }],
  [`${ACCOUNT}/providers/unlink`, { provider: "acme" }],
];

describe("a form of the account page", () => {
  test.each(FORMS)(
    "%s is refused without the CSRF token of the session, and from another site",
    async (path, fields) => {
      const [browser, other] = [await newBrowser(), await newBrowser()];
      const before = await state(browser.userId);
      const foreign = /name="csrf" value="([^"]+)"/.exec((await other.get()).text)![1]!;
      for (const csrf of ["", "guessed", foreign]) {
        expect((await browser.post(path, { ...fields, csrf })).status).toBe(403);
      }
      expect((await browser.post(path, fields, { Origin: "https://evil.example.org" })).status).toBe(403);
      expect(await state(browser.userId)).toEqual(before);
    },
  );

  test.each(FORMS)("%s leads to the sign-in page without a session, and changes nothing", async (path, fields) => {
    const browser = await newBrowser();
    const before = await state(browser.userId);
    const { status, location } = await browser.post(path, fields, { Cookie: "SESSION=x" });
    expect([status, location]).toEqual([303, "/auth/sign-in?redirect_to=%2Fauth%2Faccount"]);
    expect(await state(browser.userId)).toEqual(before);
  });

  test.each(FORMS.filter(([, { password, currentPassword }]) => password ?? currentPassword))(
    "%s changes nothing with a wrong password, which counts as a failed login",
    async (path, fields) => {
      const browser = await newBrowser();
      const before = await state(browser.userId);
      const wrong = { ...fields, ...("password" in fields ? { password: "Wrong-1" } : { currentPassword: "Wrong-1" }) };
      const from = { "X-Forwarded-For": newAddress() };
      for (let attempt = 0; attempt < 5; attempt++) {
        const { status, text } = await browser.post(path, wrong, from);
        expect([status, text.includes("The current password is wrong.")]).toEqual([400, true]);
      }
      expect((await browser.post(path, fields, from)).status).toBe(429);
      expect(await state(browser.userId)).toEqual(before);
    },
  );

  test("of an API key or a token is none: pages take the session only", async () => {
    const { pair } = await newPerson(gateways);
    const { status, headers } = await gateways.get(urlOf(ACCOUNT), { token: pair.accessToken });
    // The redirect was followed to the sign-in page.
    expect([status, headers.get("set-cookie")]).toEqual([200, null]);
  });
});

/** Returns everything that the forms can change. */
async function state(userId: number) {
  const { rows } = await gateways.owner.query(
    `select users.name, users.email, account.verified_email, account.password_hash, account.tokens_valid_from,
       (select count(*) from auth.api_keys where owner_id = users.id and revoked_at is null) as keys,
       (select count(*) from auth.refresh_tokens where user_id = users.id and revoked_at is null) as tokens,
       (select count(*) from auth.mfa_factors where user_id = users.id) as factors,
       (select count(*) from auth.identities where user_id = users.id) as identities,
       (select count(*) from auth.mail_tokens where user_id = users.id and purpose = 'change') as changes
     from public.users join auth.users as account on account.user_id = users.id where users.id = $1`,
    [userId],
  );
  expect(rows).toHaveLength(1);
  return rows[0];
}

describe("the account page", () => {
  test("has the security headers of all sign-in pages", async () => {
    const browser = await newBrowser();
    for (const path of ["", "/password", "/address", "/authenticator", "/backup-codes", "/keys"]) {
      const { status, headers, text } = await browser.get(ACCOUNT + path);
      expect([path, status, headers.get("cache-control")]).toEqual([path, 200, "no-store"]);
      expect(headers.get("content-security-policy")).toMatch(/^default-src 'none';.*frame-ancestors 'none'/);
      expect(headers.get("content-security-policy")).not.toMatch(/script-src|unsafe/);
      expect(text).not.toContain("<script");
      expect(headers.get("set-cookie")).toContain("SESSION=");
    }
  });

  test("leads to the sign-in page without a session, and is loaded again after a navigation from another site", async () => {
    const browser = await newBrowser();
    const none = await browser.get(`${ACCOUNT}/keys`, { Cookie: "" });
    expect([none.status, none.location]).toEqual([303, "/auth/sign-in?redirect_to=%2Fauth%2Faccount%2Fkeys"]);
    const crossSite = { Cookie: "", "Sec-Fetch-Site": "cross-site" };
    const { status, headers } = await browser.get(`${ACCOUNT}?done=linked`, crossSite);
    expect([status, headers.get("refresh")]).toEqual([200, "0; url=/auth/account?done=linked"]);
  });

  test("escapes names of users, keys, programs and providers, and ignores unknown messages", async () => {
    const browser = await newBrowser();
    expect((await browser.post(ACCOUNT, { name: HOSTILE })).location).toBe("/auth/account?done=name");
    await browser.post(`${ACCOUNT}/keys`, { name: HOSTILE, password: PASSWORD });
    const credentials = { username: browser.email, password: PASSWORD };
    await gateways.post(urlOf("/auth/login"), credentials, { headers: { "User-Agent": `<img src=y> ${HOSTILE}` } });
    const pages = [
      await browser.get(`${ACCOUNT}?done=${encodeURIComponent(HOSTILE)}`),
      await browser.get(`${ACCOUNT}/keys`),
    ];
    for (const { text } of pages) {
      expect(text).not.toContain("<img");
      expect(text).toContain("&lt;img");
    }
    const refused = await browser.post(ACCOUNT, { name: `${HOSTILE}${"x".repeat(200)}` });
    expect([refused.status, refused.text.includes("<img")]).toEqual([400, false]);
    expect(refused.text).toContain("at most 200 characters");
  });

  test("changes the name, with the rules of the table", async () => {
    const browser = await newBrowser();
    await browser.post(ACCOUNT, { name: "Grace" });
    expect(await state(browser.userId)).toMatchObject({ name: "Grace" });
    const { status, text } = await browser.post(ACCOUNT, { name: " " });
    expect([status, text.includes('id="name-fault"')]).toEqual([400, true]);
    expect(await state(browser.userId)).toMatchObject({ name: "Grace" });
  });
});

describe("a password that is changed on the page", () => {
  test("ends all other sign-ins, and the browser continues with a new session", async () => {
    const browser = await newBrowser();
    const previous = browser.cookie();
    const change = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD };
    const { status, location, headers } = await browser.post(`${ACCOUNT}/password`, change);
    expect([status, location]).toEqual([303, "/auth/account?done=password"]);
    browser.useCookieOf(headers);
    expect((await browser.get()).status).toBe(200);
    expect((await browser.get(ACCOUNT, { Cookie: previous })).status).toBe(303);
    const { refreshToken } = browser.pair;
    expect((await gateways.post(urlOf("/auth/refresh"), { refreshToken })).status).toBe(401);
  });

  test("must follow the policy, which is shown at its field", async () => {
    const browser = await newBrowser();
    const change = { currentPassword: PASSWORD, newPassword: "easy" };
    const { status, text } = await browser.post(`${ACCOUNT}/password`, change);
    expect([status, text.includes('id="newPassword-fault"')]).toEqual([400, true]);
    expect(text).not.toContain(PASSWORD);
  });
});

describe("an e-mail address that is changed on the page", () => {
  const begin = async () => {
    const browser = await newBrowser();
    const email = `new-${browser.email}`;
    const { status, text } = await browser.post(`${ACCOUNT}/address`, { email, password: PASSWORD });
    expect([status, text.includes(email)]).toEqual([200, true]);
    const link = await gateways.linkIn({ to: email, about: "Confirm your new e-mail address" });
    return { browser, email, token: link.searchParams.get("token")! };
  };
  const confirm = (browser: Awaited<ReturnType<typeof newBrowser>>, token: string) =>
    browser.post("/auth/change-address", { token });

  test("stays until the link in the e-mail to the new one is used, once; the old one gets two notices", async () => {
    const { browser, email, token } = await begin();
    const notice = await gateways.linkIn({ to: browser.email, about: "Your e-mail address is about to change" });
    expect(notice.pathname).toBe("/auth/forgotten-password");
    expect((await browser.get(`/auth/change-address?token=${token}`)).status).toBe(200);
    expect(await state(browser.userId)).toMatchObject({ email: browser.email });
    expect((await confirm(browser, token)).text).toContain("The address is changed");
    expect(await state(browser.userId)).toMatchObject({ email, verified_email: email });
    expect((await confirm(browser, token)).status).toBe(400);
    const login = await gateways.post(urlOf("/auth/login"), { username: email, password: PASSWORD });
    expect(login.status).toBe(200);
    const mail = await gateways.mailTo({ to: browser.email, about: "Your e-mail address has changed" });
    expect(mail).not.toContain(email);
  });

  test("stays after a new password, which invalidates the link", async () => {
    const { browser, token } = await begin();
    const change = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD };
    await gateways.post(urlOf("/auth/password"), change, { token: browser.pair.accessToken });
    expect((await confirm(browser, token)).status).toBe(400);
    expect(await state(browser.userId)).toMatchObject({ email: browser.email });
  });

  test("cannot be another user's, not even if that user registers meanwhile", async () => {
    const [browser, other] = [await newBrowser(), await newPerson(gateways)];
    const taken = await browser.post(`${ACCOUNT}/address`, { email: other.email.toUpperCase(), password: PASSWORD });
    expect([taken.status, taken.text.includes("already registered")]).toEqual([409, true]);
    const { browser: late, email, token } = await begin();
    await gateways.post(urlOf("/auth/register"), { name: "Bob", email, password: PASSWORD });
    expect((await confirm(late, token)).status).toBe(409);
    expect(await state(late.userId)).toMatchObject({ email: late.email });
  });

  test.each(["nobody", "<a@example.org>", `${HOSTILE}@example.org`])(
    "is refused where it is none: %s",
    async (email) => {
      const browser = await newBrowser();
      const { status, text } = await browser.post(`${ACCOUNT}/address`, { email, password: PASSWORD });
      expect([status, text.includes('id="email-fault"'), text.includes("<img")]).toEqual([400, true, false]);
    },
  );

  test("gets at most one e-mail a minute", async () => {
    const { browser } = await begin();
    const again = await browser.post(`${ACCOUNT}/address`, { email: `z-${browser.email}`, password: PASSWORD });
    expect([again.status, again.text.includes("within the last minute")]).toEqual([429, true]);
  });
});

describe("the sign-ins of a user", () => {
  const families = async (browser: Awaited<ReturnType<typeof newBrowser>>) =>
    [...(await browser.get()).text.matchAll(/name="family" value="([^"]+)"/g)].map(([, family]) => family!);
  const refresh = async (refreshToken: string) =>
    (await gateways.post(urlOf("/auth/refresh"), { refreshToken })).status;

  test("are listed with their programs, and end one by one", async () => {
    const browser = await newBrowser();
    const credentials = { username: browser.email, password: PASSWORD };
    const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    const second = await gateways.post(urlOf("/auth/login"), credentials, { headers: { "User-Agent": firefox } });
    const { text } = await browser.get();
    expect(text).toContain("Firefox on Linux");
    expect(text).toContain("this browser");
    const [newest, first] = await families(browser);
    expect((await browser.post(`${ACCOUNT}/sign-ins`, { family: newest! })).location).toBe(
      "/auth/account?done=sign-in",
    );
    expect(await families(browser)).toEqual([first]);
    expect(await refresh(second.body.refreshToken)).toBe(401);
    expect(await refresh(browser.pair.refreshToken)).toBe(200);
    expect(await families(browser)).toEqual([first]);
  });

  test("end all together, except this browser's; access tokens end too", async () => {
    const browser = await newBrowser();
    expect((await browser.post(`${ACCOUNT}/sign-ins`, { all: "true" })).location).toBe("/auth/account?done=sign-ins");
    expect(await families(browser)).toEqual([]);
    expect(await refresh(browser.pair.refreshToken)).toBe(401);
    const { rows } = await gateways.owner.query(
      "select tokens_valid_from > now() - interval '1 minute' as recent from auth.users where user_id = $1",
      [browser.userId],
    );
    expect(rows).toEqual([{ recent: true }]);
    expect((await browser.get()).status).toBe(200);
  });

  test("of another user cannot be ended, and made-up ones are 404", async () => {
    const [eve, ada] = [await newBrowser(), await newBrowser()];
    const [family] = await families(ada);
    for (const each of [family!, "x", "00000000-0000-4000-8000-000000000000"]) {
      expect((await eve.post(`${ACCOUNT}/sign-ins`, { family: each })).status).toBe(404);
    }
    await eve.post(`${ACCOUNT}/sign-ins`, { all: "true" });
    expect(await families(ada)).toEqual([family]);
    expect(await refresh(ada.pair.refreshToken)).toBe(200);
    expect((await ada.get()).status).toBe(200);
  });
});

describe("an API key of a user", () => {
  const make = async (browser: Awaited<ReturnType<typeof newBrowser>>, fields: Record<string, string> = {}) => {
    const { text } = await browser.post(`${ACCOUNT}/keys`, { name: "backup", password: PASSWORD, ...fields });
    return /<code>(key_[\w-]+)<\/code>/.exec(text)![1]!;
  };
  const idOf = async (browser: Awaited<ReturnType<typeof newBrowser>>) =>
    /name="key" value="(\d+)"/.exec((await browser.get(`${ACCOUNT}/keys`)).text)?.[1] ?? null;
  const whoUses = async (key: string) => {
    const headers = { "X-API-Key": key, "Content-Type": "application/json" };
    const { body } = await gateways.post(urlOf("/graphql"), { query: "{ me { id } }" }, { headers });
    return body.data?.me?.id ?? null;
  };

  test("is shown once, acts as its user in the user's role, and ends when it is revoked", async () => {
    const browser = await newBrowser();
    const key = await make(browser, { expires: "2999-12-31" });
    expect(await whoUses(key)).toBe(String(browser.userId));
    const { text } = await browser.get(`${ACCOUNT}/keys`);
    expect(text).toContain(key.slice(0, 12));
    expect(text).toContain("2999-12-31");
    expect(text).not.toContain(key);
    expect((await gateways.get(urlOf("/auth/keys"), { headers: { "X-API-Key": key } })).status).toBe(403);
    const revoked = await browser.post(`${ACCOUNT}/keys/revoke`, { key: (await idOf(browser))! });
    expect([revoked.status, revoked.location]).toEqual([303, `${ACCOUNT}/keys`]);
    expect(await idOf(browser)).toBeNull();
    await until(async () => (await whoUses(key)) === null);
  });

  test("cannot be revoked, nor seen, by another user", async () => {
    const [ada, eve] = [await newBrowser(), await newBrowser()];
    const key = await make(ada);
    const id = (await idOf(ada))!;
    expect(await idOf(eve)).toBeNull();
    expect((await eve.post(`${ACCOUNT}/keys/revoke`, { key: id })).status).toBe(404);
    for (const made of ["x", "1 or true", "99999999999999999999"]) {
      expect((await eve.post(`${ACCOUNT}/keys/revoke`, { key: made })).status).toBe(400);
    }
    expect(await idOf(ada)).toBe(id);
    expect(await whoUses(key)).toBe(String(ada.userId));
  });

  test.each(["2020-01-01", "2027-02-30", "soon"])("does not expire at %s", async (expires) => {
    const browser = await newBrowser();
    const refused = await browser.post(`${ACCOUNT}/keys`, { name: "x", password: PASSWORD, expires });
    expect([refused.status, refused.text.includes('id="expires-fault"')]).toEqual([400, true]);
    expect(await state(browser.userId)).toMatchObject({ keys: "0" });
  });

  test("is refused beyond the 50th", async () => {
    const browser = await newBrowser();
    await gateways.owner.query(
      `insert into auth.api_keys (key_hash, prefix, role, owner_id)
       select sha256(gen_random_uuid()::text::bytea), 'key_made', 'authenticated', $1 from generate_series(1, 50)`,
      [browser.userId],
    );
    const refused = await browser.post(`${ACCOUNT}/keys`, { name: "x", password: PASSWORD });
    expect([refused.status, refused.text.includes("You have 50 keys already")]).toEqual([400, true]);
  });

  test("of an administrator is in role admin until that role is lost", async () => {
    const browser = await newBrowser();
    await gateways.owner.query("select auth.assign_role($1, 'admin', null)", [browser.userId]);
    const key = await make(browser);
    const roles = async () =>
      (
        await gateways.owner.query("select role, revoked_at is null as live from auth.api_keys where owner_id = $1", [
          browser.userId,
        ])
      ).rows;
    expect(await roles()).toEqual([{ role: "admin", live: true }]);
    expect(await whoUses(key)).toBe(String(browser.userId));
    await gateways.owner.query("select auth.assign_role($1, 'authenticated', null)", [browser.userId]);
    expect(await roles()).toEqual([{ role: "admin", live: false }]);
  });
});

describe("an authenticator app", () => {
  const secretIn = (text: string) => /<dt>Key<\/dt><dd><code>([A-Z2-7 ]+)</.exec(text)![1]!.replaceAll(" ", "");

  test("is enrolled with the password and a code, and removed with both", async () => {
    const browser = await newBrowser();
    const enrolment = await browser.post(`${ACCOUNT}/authenticator`, { step: "enroll", password: PASSWORD });
    expect(enrolment.text).toContain('src="data:image/png;base64,');
    const secret = secretIn(enrolment.text);
    const wrong = await browser.post(`${ACCOUNT}/authenticator`, { step: "enable", code: "000000" });
    expect([wrong.status, secretIn(wrong.text)]).toEqual([400, secret]);
    const on = await browser.post(`${ACCOUNT}/authenticator`, { step: "enable", code: await generate({ secret }) });
    const codes = [...on.text.matchAll(/<li><code>([a-z2-9]{8})<\/code>/g)].map(([, code]) => code!);
    expect(codes).toHaveLength(10);
    expect((await browser.get()).text).toContain("10 left");

    const [first, second, third] = codes;
    const renewed = await browser.post(`${ACCOUNT}/backup-codes`, { password: PASSWORD, code: first! });
    expect(renewed.text).toContain("Your new backup codes");
    const [fresh] = [...renewed.text.matchAll(/<li><code>([a-z2-9]{8})<\/code>/g)].map(([, code]) => code!);
    const disable = { step: "disable", password: PASSWORD };
    expect((await browser.post(`${ACCOUNT}/authenticator`, { ...disable, code: second! })).status).toBe(400);
    expect(
      (await browser.post(`${ACCOUNT}/authenticator`, { ...disable, password: "Wrong-1", code: third! })).status,
    ).toBe(400);
    const off = await browser.post(`${ACCOUNT}/authenticator`, { ...disable, code: fresh! });
    expect(off.location).toBe("/auth/account?done=authenticator");
    expect(await state(browser.userId)).toMatchObject({ factors: "0" });
  });

  test("that is enabled is not replaced by another enrolment", async () => {
    const person = await newPerson(gateways);
    const { secret, backupCodes } = await newFactor(gateways, person.pair.accessToken);
    const browser = await newBrowser(person, backupCodes[0]);
    const again = await browser.post(`${ACCOUNT}/authenticator`, { step: "enroll", password: PASSWORD });
    expect([again.status, again.text.includes("enabled already")]).toEqual([409, true]);
    expect(again.text).not.toContain(secret);
  });
});

describe("a provider", () => {
  const link = (userId: number) =>
    gateways.owner.query(
      "insert into auth.identities (issuer, subject, user_id) values ('https://id.example.org', $1::bigint::text, $1)",
      [userId],
    );

  test("is linked through a page that leads to it, and comes back to the account page", async () => {
    const browser = await newBrowser();
    const { status, headers, text } = await browser.post(`${ACCOUNT}/providers/link`, { provider: "acme" });
    const [, address] = /^0; url=(.+)$/.exec(headers.get("refresh")!)!;
    expect([status, new URL(address!).origin]).toEqual([200, "https://id.example.org"]);
    expect(text).toContain("Go on</a>");
    expect(headers.getSetCookie().join()).toMatch(/FEDERATION=[\w-]{43}/);
    const { rows } = await gateways.owner.query(
      "select user_id, redirect_to, mode from auth.federation_states where user_id = $1",
      [browser.userId],
    );
    expect(rows).toEqual([
      { user_id: String(browser.userId), redirect_to: at("/auth/account?done=linked"), mode: "session" },
    ]);
    expect((await browser.post(`${ACCOUNT}/providers/link`, { provider: "none" })).status).toBe(404);
  });

  test("is unlinked by its user only, and not as the only way to sign in", async () => {
    const [ada, eve] = [await newBrowser(), await newBrowser()];
    await link(ada.userId);
    expect((await eve.post(`${ACCOUNT}/providers/unlink`, { provider: "acme" })).status).toBe(404);
    expect(await state(ada.userId)).toMatchObject({ identities: "1" });
    await gateways.owner.query("update auth.users set password_hash = null where user_id = $1", [ada.userId]);
    const only = await ada.post(`${ACCOUNT}/providers/unlink`, { provider: "acme" });
    expect([only.status, only.text.includes("Set a password first.")]).toEqual([400, true]);
    expect(await state(ada.userId)).toMatchObject({ identities: "1" });
    await gateways.owner.query("update auth.users set password_hash = '$x' where user_id = $1", [ada.userId]);
    const { location } = await ada.post(`${ACCOUNT}/providers/unlink`, { provider: "acme" });
    expect(location).toBe("/auth/account?done=unlinked");
    expect(await state(ada.userId)).toMatchObject({ identities: "0" });
  });

  test("is the only way in for an account without a password, whose pages say how to set one", async () => {
    const browser = await newBrowser();
    await gateways.owner.query("update auth.users set password_hash = null where user_id = $1", [browser.userId]);
    for (const path of ["/password", "/address", "/authenticator", "/keys"]) {
      const { text } = await browser.get(ACCOUNT + path);
      expect([path, text.includes('href="/auth/forgotten-password"')]).toEqual([path, true]);
    }
    const refused = await browser.post(`${ACCOUNT}/keys`, { name: "x", password: "" });
    expect(refused.status).toBe(400);
  });
});

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../database.ts";
import { useFixture, useFolder } from "../../../fixture.ts";
import { serve, useService } from "../../../serve.ts";
import { until } from "../../../until.ts";
import { ANON_KEY, makeClient, newAddress, PASSWORD } from "./auth-client.ts";
import { MailFolder } from "./mail-folder.ts";

const APPLICATION = "https://app.example.org";

const database = useDatabase();
const mails = useFixture(() => MailFolder.open());
const owner = useFixture(() => new pg.Pool({ connectionString: database.ownerUrl, max: 2 }));
const settings = () => ({
  MAIL_DIR: mails.path,
  SITE_URL: APPLICATION,
  SIGN_IN_REDIRECTS: "https://other.example.org/*, com.example.app://signed-in",
});
const service = useService({ database, settings: () => ({ ...settings(), AUTH_AUTOCONFIRM: "false" }) });
/** Accounts count as confirmed at once; e-mails are not limited. */
const lenient = useService({
  database,
  settings: () => ({ ...settings(), AUTH_AUTOCONFIRM: "true", MAIL_INTERVAL_SECONDS: "0" }),
});

/** Storage that outlives a client, as a browser's. */
function memoryStorage() {
  const items = new Map<string, string>();
  return {
    getItem: (name: string) => items.get(name) ?? null,
    setItem: (name: string, value: string) => void items.set(name, value),
    removeItem: (name: string) => void items.delete(name),
  };
}

const newClient = (at = service) => makeClient(at.url);
const newPkceClient = (at = service) =>
  makeClient(at.url, { flowType: "pkce", persistSession: true, storage: memoryStorage() });

/** Opens a link as a browser does, and returns where it leads. */
async function open(link: URL): Promise<URL> {
  const response = await fetch(link, { redirect: "manual" });
  expect(response.status).toBe(303);
  return new URL(response.headers.get("location")!);
}

const fragmentOf = ({ hash }: URL) => Object.fromEntries(new URLSearchParams(hash.slice(1)));

/** Creates somebody with a confirmed address and the password. */
async function newUser() {
  const email = newAddress();
  const { error } = await newClient(lenient).auth.signUp({ email, password: PASSWORD });
  expect(error).toBeNull();
  return email;
}

const STRANGERS_PASSWORD = "Velvet-Stone-9";

/** Registers an address for somebody without proof. */
async function registerStranger(email: string): Promise<{ readonly refreshToken: string }> {
  const response = await fetch(`${service.url}/auth/register`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ name: "Eve", email, password: STRANGERS_PASSWORD }),
  });
  expect(response.status).toBe(201);
  return (await response.json()) as { refreshToken: string };
}

describe("a sign-up with confirmation", () => {
  test("is completed by the link, which redirects with the session", async () => {
    const client = newClient();
    const email = newAddress();
    const { data, error } = await client.auth.signUp({
      email,
      password: PASSWORD,
      options: { emailRedirectTo: `${APPLICATION}/welcome`, data: { first_name: "Ada" } },
    });
    expect({ session: data.session, error }).toEqual({ session: null, error: null });
    const refused = await client.auth.signInWithPassword({ email, password: PASSWORD });
    expect(refused.error).toMatchObject({ code: "email_not_confirmed" });

    const { link, subject } = await mails.receiveOne(email);
    expect(subject).toBe("Confirm your e-mail address");
    expect(link.href).toContain(`type=signup&redirect_to=${APPLICATION}/welcome`);
    const target = await open(link);
    expect(target.href).toMatch(/^https:\/\/app\.example\.org\/welcome#access_token=/);
    const fragment = fragmentOf(target);
    expect(fragment).toMatchObject({ type: "signup", token_type: "bearer", expires_in: "3600" });
    const { access_token, refresh_token } = fragment as { access_token: string; refresh_token: string };
    const session = await client.auth.setSession({ access_token, refresh_token });
    expect(session.data.user).toMatchObject({ email, email_confirmed_at: expect.any(String) });
    expect((await client.auth.signInWithPassword({ email, password: PASSWORD })).error).toBeNull();
  });

  test("is completed by the code, which signs in, once", async () => {
    const client = newClient();
    const email = newAddress();
    await client.auth.signUp({ email, password: PASSWORD });
    const { code: token } = await mails.receiveOne(email);
    const { data, error } = await client.auth.verifyOtp({ email, token, type: "signup" });
    expect(error).toBeNull();
    expect(data.session!.user).toMatchObject({ email, confirmed_at: expect.any(String) });
    const again = await newClient().auth.verifyOtp({ email, token, type: "signup" });
    expect(again.error).toMatchObject({ code: "otp_expired", message: "Token has expired or is invalid", status: 403 });
  });

  test("is completed by an exchange of the code that the link leads to, with PKCE", async () => {
    const client = newPkceClient();
    const email = newAddress();
    const { error } = await client.auth.signUp({ email, password: PASSWORD });
    expect(error).toBeNull();
    const { link } = await mails.receiveOne(email);
    expect(link.searchParams.get("token")).toMatch(/^pkce_/);
    const target = await open(link);
    expect(target.hash).toBe("");
    const code = target.searchParams.get("code")!;
    const stolen = await newPkceClient().auth.exchangeCodeForSession(code);
    expect(stolen.error).not.toBeNull();
    const { data, error: refusal } = await client.auth.exchangeCodeForSession(code);
    expect(refusal).toBeNull();
    expect(data.session!.user.email).toBe(email);
  });

  test("sends its e-mail again", async () => {
    const email = newAddress();
    await newClient(lenient).auth.resend({ type: "signup", email });
    await newClient().auth.signUp({ email, password: PASSWORD });
    await mails.receiveOne(email);
    const { error } = await newClient(lenient).auth.resend({ type: "signup", email });
    expect(error).toBeNull();
    const [first, second] = await mails.receive(email, 2);
    expect(fragmentOf(await open(first!.link))).toMatchObject({ error_code: "otp_expired" });
    expect(fragmentOf(await open(second!.link))).toHaveProperty("access_token");
  });

  test("confirms its own password, and none of other sign-ups once nobody knows whose mail is sent again", async () => {
    for (const isRepeated of [false, true]) {
      const email = newAddress();
      await registerStranger(email);
      await newClient().auth.signUp({ email, password: PASSWORD });
      const sent = await mails.receive(email, 2);
      let mail = sent.find(({ link }) => link.pathname === "/auth/v1/verify")!;
      if (isRepeated) {
        await owner.query(
          "update auth.mail_tokens set created_at = now() - interval '2 days', expires_at = now() - interval '1 day' where email = $1",
          [email],
        );
        await newClient(lenient).auth.resend({ type: "signup", email });
        mail = (await mails.receive(email, 3)).find((other) => !sent.some(({ text }) => text === other.text))!;
      }
      expect(fragmentOf(await open(mail.link))).toHaveProperty("access_token");
      const own = await newClient().auth.signInWithPassword({ email, password: PASSWORD });
      expect(own.error?.code).toBe(isRepeated ? "invalid_credentials" : undefined);
      const theirs = await newClient().auth.signInWithPassword({ email, password: STRANGERS_PASSWORD });
      expect(theirs.error?.code).toBe("invalid_credentials");
    }
  });

  test("is needed to refresh the tokens of a registration here, which are not used up before", async () => {
    const { refreshToken } = await registerStranger(newAddress());
    const refused = await newClient().auth.refreshSession({ refresh_token: refreshToken });
    expect(refused.error).toMatchObject({ status: 400, code: "email_not_confirmed" });
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify({ refreshToken });
    expect((await fetch(`${service.url}/auth/refresh`, { method: "POST", headers, body })).status).toBe(200);
  });
});

describe("a sign-in without a password", () => {
  test("creates the account of a new address, with metadata, and signs in by code", async () => {
    const client = newClient();
    const email = newAddress();
    const { data, error } = await client.auth.signInWithOtp({ email, options: { data: { first_name: "Ada" } } });
    expect({ data, error }).toEqual({ data: { user: null, session: null }, error: null });
    const { code: token } = await mails.receiveOne(email);
    const verified = await client.auth.verifyOtp({ email, token, type: "email" });
    expect(verified.error).toBeNull();
    expect(verified.data.user).toMatchObject({ email, user_metadata: { first_name: "Ada" } });
    const { data: claims } = await client.auth.getClaims();
    expect(claims!.claims).toMatchObject({ aal: "aal1", amr: [{ method: "otp" }] });
  });

  test("sends a magic link to an existing account, whose password stays", async () => {
    const email = await newUser();
    const client = newClient();
    await client.auth.signInWithOtp({ email: email.toUpperCase() });
    const { link, subject, code: token } = await mails.receiveOne(email);
    expect(subject).toBe("Your sign-in link");
    const wrongType = await client.auth.verifyOtp({ email, token, type: "recovery" });
    expect(wrongType.error).toMatchObject({ code: "otp_expired" });
    expect(fragmentOf(await open(link))).toMatchObject({ type: "magiclink", access_token: expect.any(String) });
    expect((await client.auth.signInWithPassword({ email, password: PASSWORD })).error).toBeNull();
  });

  test("opens the session of a page that uses the link's secret, also with PKCE", async () => {
    for (const client of [newClient(), newPkceClient()]) {
      const email = await newUser();
      await client.auth.signInWithOtp({ email });
      const { link } = await mails.receiveOne(email);
      const token_hash = link.searchParams.get("token")!;
      const { data, error } = await newClient().auth.verifyOtp({ token_hash, type: "email" });
      expect(error).toBeNull();
      expect(data.session!.user.email).toBe(email);
      expect((await open(link)).href).toContain("error_code=otp_expired");
    }
  });

  test("keeps the query of the URL that the client is redirected to", async () => {
    const email = await newUser();
    const client = newPkceClient();
    await client.auth.signInWithOtp({ email, options: { emailRedirectTo: "https://other.example.org/a/b?step=2" } });
    const target = await open((await mails.receiveOne(email)).link);
    expect(target.origin + target.pathname).toBe("https://other.example.org/a/b");
    expect(target.searchParams.get("step")).toBe("2");
    expect((await client.auth.exchangeCodeForSession(target.searchParams.get("code")!)).error).toBeNull();
  });

  test("redirects to an application's own scheme, and to SITE_URL instead of a URL that is not allowed", async () => {
    const targets = { "com.example.app://signed-in": "com.example.app:", "https://evil.example.org/": `https:` };
    for (const [emailRedirectTo, protocol] of Object.entries(targets)) {
      const email = await newUser();
      await newClient().auth.signInWithOtp({ email, options: { emailRedirectTo } });
      const target = await open((await mails.receiveOne(email)).link);
      expect([target.protocol, target.host]).toEqual([
        protocol,
        protocol === "https:" ? "app.example.org" : "signed-in",
      ]);
    }
  });

  test("creates no account without shouldCreateUser", async () => {
    const email = newAddress();
    const quiet = await newClient().auth.signInWithOtp({ email, options: { shouldCreateUser: false } });
    expect(quiet.error).toBeNull();
    const telling = await newPkceClient(lenient).auth.signInWithOtp({ email, options: { shouldCreateUser: false } });
    expect(telling.error).toMatchObject({ code: "otp_disabled", message: "Signups not allowed for otp", status: 422 });
    expect(await mails.count(email)).toBe(0);
  });

  test.each([
    [{ email: "not-an-address" }, 400, "Unable to validate email address: invalid format"],
    [{ email: "xx:;x@x.x" }, 400, "Unable to validate email address: invalid format"],
    [{ email: "a@example.org", phone: "123" }, 400, "Only an email address or phone number should be provided"],
    [{ email: "a@example.org", channel: "sms" }, 400, "Channel should only be specified with Phone OTP"],
    [
      { email: "a@example.org", code_challenge: "short", code_challenge_method: "s256" },
      400,
      "code challenge has to be between 43 and 128 characters",
    ],
    [
      { email: "a@example.org", code_challenge: "x".repeat(50) },
      400,
      "PKCE flow requires code_challenge_method and code_challenge",
    ],
  ])("refuses %j", async (body, status, message) => {
    expect(await post("/otp", body)).toMatchObject({ status, body: { error_code: "validation_failed", msg: message } });
  });
});

const post = async (path: string, body: object, at = service) => {
  const response = await fetch(`${at.url}/auth/v1${path}`, {
    method: "POST",
    headers: { apikey: ANON_KEY, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as { readonly msg?: string },
  };
};

describe("a link", () => {
  test("is not used up by a request for its head", async () => {
    const email = await newUser();
    await newClient().auth.signInWithOtp({ email });
    const { link } = await mails.receiveOne(email);
    expect((await fetch(link, { method: "HEAD", redirect: "manual" })).status).toBe(200);
    expect(fragmentOf(await open(link))).toHaveProperty("access_token");
  });

  test("that is invalid redirects with the error, in the query too for PKCE", async () => {
    const error = {
      error: "access_denied",
      error_code: "otp_expired",
      error_description: "Email link is invalid or has expired",
    };
    const base = `${service.url}/auth/v1/verify?type=magiclink&redirect_to=${APPLICATION}/x`;
    const target = await open(new URL(`${base}&token=nonsense`));
    expect([target.href.split("#")[0], fragmentOf(target)]).toEqual([`${APPLICATION}/x`, error]);
    const pkceTarget = await open(new URL(`${base}&token=pkce_nonsense`));
    expect(Object.fromEntries(pkceTarget.searchParams)).toEqual(error);
    expect(fragmentOf(pkceTarget)).toEqual(error);
  });

  test("without a token, or of an unknown type, is refused", async () => {
    const response = await fetch(`${service.url}/auth/v1/verify?type=magiclink`);
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error_code: "validation_failed", msg: "Verify requires a token or a token hash" },
    ]);
    const target = await open(new URL(`${service.url}/auth/v1/verify?type=nonsense&token=x`));
    expect(fragmentOf(target)).toMatchObject({ error: "invalid_request", error_code: "validation_failed" });
  });

  test("of a disabled account says so", async () => {
    const email = await newUser();
    await newClient().auth.signInWithOtp({ email });
    const { link } = await mails.receiveOne(email);
    await owner.query("select auth.disable_account(user_id, null) from auth.users where email = $1", [email]);
    expect(fragmentOf(await open(link))).toMatchObject({ error_code: "user_banned" });
  });
});

describe("a forgotten password", () => {
  test("is replaced after the link has signed the user in", async () => {
    const email = await newUser();
    const client = newClient();
    const { data, error } = await client.auth.resetPasswordForEmail(email, { redirectTo: `${APPLICATION}/new` });
    expect({ data, error }).toEqual({ data: {}, error: null });
    const { code: token } = await mails.receiveOne(email);
    const verified = await client.auth.verifyOtp({ email, token, type: "recovery" });
    expect(verified.error).toBeNull();
    expect((await client.auth.updateUser({ password: "Another-Boat-8" })).error).toBeNull();
    const [former, current] = await Promise.all(
      [PASSWORD, "Another-Boat-8"].map((password) => newClient().auth.signInWithPassword({ email, password })),
    );
    expect([former!.error?.code, current!.error]).toEqual(["invalid_credentials", null]);
  });

  test("is replaced with PKCE, too", async () => {
    const email = await newUser();
    const client = newPkceClient();
    await client.auth.resetPasswordForEmail(email);
    const target = await open((await mails.receiveOne(email)).link);
    const { data, error } = await client.auth.exchangeCodeForSession(target.searchParams.get("code")!);
    expect(error).toBeNull();
    expect(data.session!.user.email).toBe(email);
    expect((await client.auth.updateUser({ password: "Another-Boat-8" })).error).toBeNull();
  });
});

describe("a change of address", () => {
  test("is confirmed at both addresses", async () => {
    const email = await newUser();
    const client = newClient();
    await client.auth.signInWithPassword({ email, password: PASSWORD });
    const newEmail = newAddress();
    const { data, error } = await client.auth.updateUser({ email: newEmail });
    expect(error).toBeNull();
    expect(data.user).toMatchObject({ email, new_email: newEmail });
    const [current, next] = [await mails.receiveOne(email), await mails.receiveOne(newEmail)];
    expect(current.text).toContain(newEmail);
    expect(fragmentOf(await open(current.link))).toEqual({
      message: "Confirmation link accepted. Please proceed to confirm link sent to the other email",
    });
    const verified = await client.auth.verifyOtp({ email: newEmail, token: next.code, type: "email_change" });
    expect(verified.error).toBeNull();
    expect(verified.data.user!.email).toBe(newEmail);
  });
});

describe("a service with settings of its own", () => {
  const templates = useFolder("templates-");
  beforeAll(async () => {
    await writeFile(
      join(templates, "magic_link.html"),
      'Subject: Hello {{ .Data.name }}\n\n<p>{{ .Data.name }}: <a href="{{ .SiteURL }}/confirm?token_hash={{ .TokenHash }}&amp;type=email">sign in</a> or {{ .Token }}</p>',
    );
  });
  const custom = useFixture(() =>
    serve(database, {
      MAIL_DIR: mails.path,
      MAIL_TEMPLATES_DIR: templates,
      AUTH_AUTOCONFIRM: "false",
      AUTH_SECURE_EMAIL_CHANGE: "false",
    }),
  );

  test("writes e-mails with its templates, in HTML and as text, with values that users cannot turn into HTML", async () => {
    const email = newAddress();
    const name = "<img src=x>";
    await newClient(lenient).auth.signUp({ email, password: PASSWORD, options: { data: { name } } });
    await newClient(custom).auth.signInWithOtp({ email });
    const { subject, text } = await mails.receiveOne(email);
    expect(subject).toBe(`Hello ${name}`);
    expect(text).toContain("<p>&lt;img src=x&gt;: <a href=");
    expect(text).toContain(`${name}: sign in ${custom.url}/confirm?token_hash=`);
    const token_hash = /token_hash=([\w-]+)/.exec(text)![1]!;
    const { error } = await newClient(custom).auth.verifyOtp({ token_hash, type: "email" });
    expect(error).toBeNull();
  });

  test("does not start with a template that it cannot use", async () => {
    await writeFile(join(templates, "recovery.html"), "{{ .Tokens }}");
    const start = serve(database, { MAIL_TEMPLATES_DIR: templates });
    await expect(start).rejects.toThrow(`${join(templates, "recovery.html")}: {{ .Tokens }} is not a variable`);
  });

  test("changes an address that is confirmed at the new one, without AUTH_SECURE_EMAIL_CHANGE", async () => {
    const [email, newEmail] = [await newUser(), newAddress()];
    const client = newPkceClient(custom);
    await client.auth.signInWithPassword({ email, password: PASSWORD });
    expect((await client.auth.updateUser({ email: newEmail })).error).toBeNull();
    const target = await open((await mails.receiveOne(newEmail)).link);
    const { data, error } = await client.auth.exchangeCodeForSession(target.searchParams.get("code")!);
    expect(error).toBeNull();
    expect(data.session!.user.email).toBe(newEmail);
    expect(await mails.count(email)).toBe(0);
  });
});

describe("without a table of users", () => {
  const platform = useDatabase({ template: "platform" });
  const bare = useService({
    database: platform,
    settings: () => ({
      BASE_SCHEMA: "platform",
      MAIL_DIR: mails.path,
      SITE_URL: APPLICATION,
      AUTH_AUTOCONFIRM: "false",
    }),
  });

  test("an address is signed in by code, changed at both sides, and given a password by link", async () => {
    const [email, newEmail] = [newAddress(), newAddress()];
    const client = newPkceClient(bare);
    await client.auth.signInWithOtp({ email, options: { data: { name: "Ada" } } });
    const { code: token } = await mails.receiveOne(email);
    const verified = await client.auth.verifyOtp({ email, token, type: "email" });
    expect(verified.data.user).toMatchObject({
      email,
      user_metadata: { name: "Ada" },
      confirmed_at: expect.any(String),
    });

    expect((await client.auth.updateUser({ email: newEmail })).error).toBeNull();
    const [, current] = await mails.receive(email, 2);
    const half = await open(current!.link);
    expect(half.searchParams.get("message")).toMatch(/^Confirmation link accepted/);
    const changed = await open((await mails.receiveOne(newEmail)).link);
    const exchanged = await client.auth.exchangeCodeForSession(changed.searchParams.get("code")!);
    expect(exchanged.data.session!.user.email).toBe(newEmail);

    await client.auth.resetPasswordForEmail(newEmail);
    const [, recovery] = await mails.receive(newEmail, 2);
    const target = await open(recovery!.link);
    expect((await client.auth.exchangeCodeForSession(target.searchParams.get("code")!)).error).toBeNull();
    expect((await client.auth.updateUser({ password: PASSWORD })).error).toBeNull();
    const signedIn = await newClient(bare).auth.signInWithPassword({ email: newEmail, password: PASSWORD });
    expect(signedIn.error).toBeNull();
  });
});

describe("whoever asks for an e-mail", () => {
  test("waits a minute for the next one of its kind, whether or not the address has an account", async () => {
    for (const email of [await newUser(), newAddress()]) {
      for (const path of ["/otp", "/recover", "/resend"]) {
        const body = { email, type: "signup", create_user: false };
        expect(await post(path, body)).toMatchObject({ status: 200, body: {} });
        const { status, headers, body: refusal } = await post(path, body);
        expect([status, refusal]).toMatchObject([429, { error_code: "over_email_send_rate_limit" }]);
        expect(refusal.msg).toMatch(/^For security purposes, you can only request this after \d+ seconds\.$/);
        expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      }
    }
  });

  test("receives at most ten within an hour", async () => {
    const email = newAddress();
    const statuses = [];
    for (let count = 0; count < 11; count++) statuses.push((await post("/recover", { email }, lenient)).status);
    expect(statuses).toEqual([...Array(10).fill(200), 429]);
  });

  test("gets the same response, whether or not the address has an account", async () => {
    const [known, unknown] = [await newUser(), newAddress()];
    for (const path of ["/otp", "/magiclink", "/recover", "/resend"]) {
      const [first, second] = await Promise.all(
        [known, unknown].map((email) => post(path, { email, type: "signup", create_user: path === "/magiclink" })),
      );
      expect([first!.status, first!.body]).toEqual([second!.status, second!.body]);
    }
  });

  test("gets it before the account is looked up or created: the response does not wait for its lock", async () => {
    const [known, unknown] = [await newUser(), newAddress()];
    const client = await owner.connect();
    try {
      await client.query("begin; lock table auth.users, auth.mail_tokens, auth.flow_states in access exclusive mode");
      for (const path of ["/otp", "/recover", "/resend"]) {
        for (const email of [known, unknown]) {
          const body = { email, type: "email_change", code_challenge: "x".repeat(43), code_challenge_method: "plain" };
          expect(await post(path, body)).toMatchObject({ status: 200, body: {} });
        }
      }
      expect(await mails.count(known)).toBe(0);
    } finally {
      await client.query("rollback");
      client.release();
    }
    await mails.receive(known, 2);
    await until(async () =>
      (await mails.receive(unknown)).some(({ subject }) => subject === "Confirm your e-mail address"),
    );
  });
});

describe("an exchange of a code", () => {
  test.each([
    [{}, 400, "validation_failed", "invalid request: both auth code and code verifier should be non-empty"],
    [
      { auth_code: "mock", code_verifier: "mock" },
      404,
      "flow_state_not_found",
      "invalid flow state, no valid flow state found",
    ],
  ])("of %j is refused", async (body, status, error_code, msg) => {
    expect(await post("/token?grant_type=pkce", body)).toMatchObject({ status, body: { error_code, msg } });
  });

  test("needs the verifier of the client that began the sign-in", async () => {
    const email = await newUser();
    const client = newPkceClient();
    await client.auth.signInWithOtp({ email });
    const auth_code = (await open((await mails.receiveOne(email)).link)).searchParams.get("code")!;
    expect(await post("/token?grant_type=pkce", { auth_code, code_verifier: "wrong" })).toMatchObject({
      status: 400,
      body: { error_code: "bad_code_verifier" },
    });
    const results = await Promise.all([1, 2].map(() => client.auth.exchangeCodeForSession(auth_code)));
    expect(results.filter(({ error }) => error === null)).toHaveLength(1);
  });
});

describe("a phone number", () => {
  test("is refused without a gateway for text messages", async () => {
    const { error } = await newClient().auth.signInWithOtp({ phone: "+15555550100" });
    expect(error).toMatchObject({ code: "phone_provider_disabled" });
    const invalid = await newClient().auth.verifyOtp({ phone: "15555550100-x", token: "123456", type: "sms" });
    expect(invalid.error?.message).toBe("Invalid phone number format (E.164 required)");
    const verified = await newClient().auth.verifyOtp({ phone: "+15555550100", token: "123456", type: "phone_change" });
    expect(verified.error).toMatchObject({ message: "Token has expired or is invalid" });
  });
});

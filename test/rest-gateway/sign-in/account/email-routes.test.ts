import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { type Gateways, newPerson, openGateways, PASSWORD } from "../gateways.ts";

const RESET = "Set a new password";
const CONFIRM = "Confirm your e-mail address";
const NEW = "Quartz-Bird-8";

const gateways = useFixture(openGateways);

const at = (path: string) => `${gateways.one.url}${path}`;
const atOther = (path: string) => `${gateways.two.url}${path}`;
const post: Gateways["post"] = (...sent) => gateways.post(...sent);
const tokenIn = async (to: string, about: string) => (await gateways.linkIn({ to, about })).searchParams.get("token")!;
const login = (username: string, password: string) => post(at("/auth/login"), { username, password });
const forget = (email: unknown, headers = {}) => post(at("/auth/forgot-password"), { email }, { headers });

describe("a forgotten password", () => {
  test("is reset by a link in an e-mail, at any gateway and once", async () => {
    const { email, pair } = await newPerson(gateways);
    expect(await forget(email)).toMatchObject({ status: 202, body: { message: expect.any(String) } });
    const token = await tokenIn(email, RESET);

    const weak = await post(atOther("/auth/reset-password"), { token, password: "short" });
    expect(weak).toMatchObject({ status: 400, body: { error: { code: "VALIDATION_ERROR" } } });
    expect(weak.body.error.details[0].field).toBe("password");
    expect((await post(atOther("/auth/reset-password"), { token, password: NEW })).status).toBe(200);
    const again = await post(at("/auth/reset-password"), { token, password: NEW });
    expect(again).toMatchObject({ status: 400, body: { error: { code: "INVALID_TOKEN" } } });

    expect((await login(email, PASSWORD)).status).toBe(401);
    expect((await login(email, NEW)).status).toBe(200);
    expect((await post(at("/auth/refresh"), { refreshToken: pair.refreshToken })).status).toBe(401);
  });

  test("gets the same response whether or not the account exists", async () => {
    const { email } = await newPerson(gateways);
    const [somebody, anonymous] = await Promise.all([forget(email), forget(`${randomUUID()}@example.org`)]);
    expect([somebody.status, somebody.text]).toEqual([anonymous.status, anonymous.text]);
    expect(await forget(undefined)).toMatchObject({ status: 400, body: { error: { code: "MISSING_FIELD" } } });
  });

  test("gets the response before the account is looked up", async () => {
    const { email, userId } = await newPerson(gateways);
    const holder = await gateways.owner.connect();
    try {
      await holder.query("begin");
      await holder.query("select auth.lock_account($1)", [userId]);
      expect((await forget(email)).status).toBe(202);
    } finally {
      await holder.query("rollback");
      holder.release();
    }
    expect(await tokenIn(email, RESET)).toMatch(/^[\w-]{43}$/);
  });

  test("has a link to the public URL, whatever the request's Host is", async () => {
    const { email } = await newPerson(gateways);
    await forget(email, { "X-Forwarded-Host": "evil.example.org", Origin: "https://evil.example.org" });
    expect((await gateways.linkIn({ to: email, about: RESET })).origin).toBe(gateways.one.url);
  });
});

describe("a registration with several faults", () => {
  const EMAIL = { field: "email", message: "Give an e-mail address such as name@example.org." };
  const AGE = { field: "age", message: expect.any(String) };
  const USERNAME = { field: "username", message: expect.stringContaining("neither spaces nor colons") };
  const TOO_SHORT = { field: "password", message: "Use at least 8 characters." };

  test.each([
    ["with a good password", PASSWORD, []],
    ["with a weak one", "aB3", [TOO_SHORT]],
  ])("reports all of them, %s", async (_what, password, more) => {
    const account = { name: "\u200b", email: "nobody", age: 151, username: "a b", password };
    const refused = await post(at("/auth/register"), account);
    expect(refused).toMatchObject({ status: 400, body: { error: { code: "VALIDATION_ERROR" } } });
    expect(refused.body.error.details).toEqual([
      { field: "name", message: "Give a name." },
      EMAIL,
      AGE,
      USERNAME,
      ...more,
    ]);
    expect(refused.body.error.message).toContain("name: Give a name. email: Give an e-mail address");
  });

  test("reports the faults of the other fields beside those that are missing", async () => {
    const refused = await post(at("/auth/register"), { name: "", email: "nobody", password: "aB3" });
    expect(refused).toMatchObject({ status: 400, body: { error: { code: "MISSING_FIELD" } } });
    expect(refused.body.error.details).toEqual([
      { field: "name", message: "This field is required." },
      EMAIL,
      TOO_SHORT,
    ]);
    expect(refused.body.error.message).toMatch(/^Missing required fields: name\. email: .* password: /);
  });

  test("creates no account, and reports a single fault with its own message", async () => {
    const email = `${randomUUID()}@example.org`;
    const refused = await post(at("/auth/register"), { name: "Eve", email, password: "aB3" });
    expect(refused.body.error.details).toEqual([TOO_SHORT]);
    expect(refused.body.error.message).toBe(
      "This password is too easy to guess, or too long. Use at least 8 characters.",
    );
    expect((await post(at("/auth/register"), { name: "Eve", email, password: PASSWORD })).status).toBe(201);
  });
});

describe("the e-mail address of a new user", () => {
  test.each([
    ["names another mailbox", (mailbox: string) => `<${mailbox}>`],
    ["has a comment", (mailbox: string) => mailbox.replace("@", "(x)@")],
    ["is two", (mailbox: string) => `a,${mailbox}`],
    ["has a mark of direction", (mailbox: string) => `\u202e${mailbox}`],
    ["has two dots in a row", (mailbox: string) => mailbox.replace(".org", "..org")],
  ])("is refused when it %s", async (_what, disguise) => {
    const account = { name: "Eve", email: disguise(`${randomUUID()}@example.org`), password: PASSWORD };
    const refused = await post(at("/auth/register"), account);
    expect(refused).toMatchObject({ status: 400, body: { error: { code: "VALIDATION_ERROR" } } });
    expect(refused.body.error.details).toEqual([
      { field: "email", message: "Give an e-mail address such as name@example.org." },
    ]);
  });

  test("is verified by a link in an e-mail, once", async () => {
    const { email, userId } = await newPerson(gateways);
    const token = await tokenIn(email, CONFIRM);
    const verified = async () =>
      (await gateways.owner.query("select verified_email from auth.users where user_id = $1", [userId])).rows[0]
        .verified_email;
    expect(await verified()).toBeNull();
    expect((await post(atOther("/auth/verify-email"), { token })).status).toBe(200);
    expect(await verified()).toBe(email);
    const again = await post(at("/auth/verify-email"), { token });
    expect(again).toMatchObject({ status: 400, body: { error: { code: "INVALID_TOKEN" } } });
  });

  test("can be verified by another e-mail for the signed-in user", async () => {
    const { email, pair } = await newPerson(gateways);
    const first = await tokenIn(email, CONFIRM);
    await gateways.owner.query("update auth.mail_tokens set created_at = created_at - interval '1 minute'");
    expect((await post(at("/auth/resend-verification"))).status).toBe(401);
    const response = await post(at("/auth/resend-verification"), undefined, { token: pair.accessToken });
    expect(response.status).toBe(202);
    let second = first;
    while (second === first) second = await tokenIn(email, CONFIRM);
    expect((await post(at("/auth/verify-email"), { token: first })).status).toBe(400);
    expect((await post(at("/auth/verify-email"), { token: second })).status).toBe(200);
  });
});

test("a deployment without a mail server says so, and registers users anyway", async () => {
  const settings = { NODE_ENV: "production", MAIL_DIR: undefined };
  const silent = await openGateways({ settings });
  try {
    const { pair } = await newPerson(silent);
    for (const [path, body] of [
      ["/auth/forgot-password", { email: "ada@example.org" }],
      ["/auth/resend-verification", undefined],
    ] as const) {
      const response = await silent.post(`${silent.one.url}${path}`, body, { token: pair.accessToken });
      expect(response).toMatchObject({ status: 501, body: { error: { code: "NOT_IMPLEMENTED" } } });
    }
  } finally {
    await silent.close();
  }
});

test("links use PUBLIC_URL if it is set", async () => {
  const elsewhere = await openGateways({ settings: { PUBLIC_URL: "https://api.example.org/content/" } });
  try {
    const { email } = await newPerson(elsewhere);
    const link = await elsewhere.linkIn({ to: email, about: CONFIRM });
    expect(link.origin + link.pathname).toBe("https://api.example.org/content/auth/confirm-address");
  } finally {
    await elsewhere.close();
  }
});

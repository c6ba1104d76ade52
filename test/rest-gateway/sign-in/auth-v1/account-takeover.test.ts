import jwt from "jsonwebtoken";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../database.ts";
import { useFixture } from "../../../fixture.ts";
import { SECRET } from "../../../secret.ts";
import { useService } from "../../../serve.ts";
import { ANON_KEY, makeClient, newAddress, PASSWORD } from "./auth-client.ts";
import { MailFolder } from "./mail-folder.ts";

const SERVICE_KEY = jwt.sign({ role: "service_role" }, SECRET);
const FORMER = "Attacker-Boat-6";

const database = useDatabase();
const mails = useFixture(() => MailFolder.open());
const owner = useFixture(() => new pg.Pool({ connectionString: database.ownerUrl, max: 2 }));
const settings = () => ({ MAIL_DIR: mails.path, AUTH_AUTOCONFIRM: "false" });
const service = useService({ database, settings });
/** E-mails are not limited to one a minute. */
const quick = useService({ database, settings: () => ({ ...settings(), MAIL_INTERVAL_SECONDS: "0" }) });

const post = async (path: string, body: object, headers: Record<string, string> = {}, at = service) => {
  const response = await fetch(`${at.url}${path}`, {
    method: path === "/auth/v1/user" ? "PUT" : "POST",
    headers: { apikey: ANON_KEY, "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, string> };
};

const fragmentOf = async (link: URL) => {
  const response = await fetch(link, { redirect: "manual" });
  return new URLSearchParams(new URL(response.headers.get("location")!).hash.slice(1));
};

/** Registers somebody else's address, and signs in without confirming it. */
async function registerForeignAddress() {
  const email = newAddress();
  const registered = await post("/auth/register", { name: "Ada", email, password: FORMER });
  expect(registered.status).toBe(201);
  const { accessToken, refreshToken } = registered.body;
  return { email, refreshToken: refreshToken!, authorization: { Authorization: `Bearer ${accessToken}` } };
}

/** The e-mail with a code; the one that /auth/register sends has none. */
async function mailOf(email: string, subject: string) {
  for (let count = 1; ; count++) {
    const found = (await mails.receive(email, count)).findLast((mail) => mail.subject === subject && mail.code);
    if (found) return found;
  }
}

describe("whoever has registered somebody else's address", () => {
  test.each([
    ["a code to sign in", "/otp", "Confirm your e-mail address", "email"],
    ["a code to sign in, as the type of its e-mail", "/otp", "Confirm your e-mail address", "signup"],
    ["a code to set a password", "/recover", "Set a new password", "recovery"],
  ] as const)("loses password and sign-ins when its owner uses %s", async (_title, path, subject, type) => {
    const { email, refreshToken } = await registerForeignAddress();
    expect(await post(`/auth/v1${path}`, { email })).toMatchObject({ status: 200 });
    const { code: token } = await mailOf(email, subject);
    const client = makeClient(service.url);
    expect((await client.auth.verifyOtp({ email, token, type })).error).toBeNull();
    expect((await client.auth.getUser()).error).toBeNull();

    const former = await makeClient(service.url).auth.signInWithPassword({ email, password: FORMER });
    expect(former.error?.code).toBe("invalid_credentials");
    expect(await post("/auth/refresh", { refreshToken })).toMatchObject({ status: 401 });
  });

  test("loses passkeys and API keys, and a change of address that is in progress", async () => {
    const { email, authorization } = await registerForeignAddress();
    const { rows } = await owner.query("select user_id from auth.users where email = $1", [email]);
    const { user_id: userId } = rows[0];
    await owner.query(
      "insert into auth.passkeys (user_id, credential_id, public_key) values ($1, $2, decode('00', 'hex'))",
      [userId, `credential-${userId}`],
    );
    await owner.query(
      "insert into auth.api_keys (key_hash, prefix, role, owner_id) values (sha256($1::text::bytea), 'key_', 'authenticated', $1::text::bigint)",
      [userId],
    );
    const ownAddress = newAddress();
    expect(await post("/auth/v1/user", { email: ownAddress }, authorization)).toMatchObject({ status: 200 });
    const { link } = await mails.receiveOne(ownAddress);

    await post("/auth/v1/otp", { email });
    const { code: token } = await mailOf(email, "Confirm your e-mail address");
    expect((await makeClient(service.url).auth.verifyOtp({ email, token, type: "email" })).error).toBeNull();

    expect((await fragmentOf(link)).get("error_code")).toBe("otp_expired");
    const left = await owner.query(
      `select (select count(*)::int from auth.passkeys where user_id = $1) as passkeys,
        (select count(*)::int from auth.api_keys where owner_id = $1 and revoked_at is null) as keys,
        (select email from auth.users where user_id = $1) as email`,
      [userId],
    );
    expect(left.rows).toEqual([{ passkeys: 0, keys: 0, email }]);
  });

  test("loses passkeys when its owner sets a password by the sign-in pages", async () => {
    const { email } = await registerForeignAddress();
    await owner.query(
      `insert into auth.passkeys (user_id, credential_id, public_key)
        select user_id, 'reset-' || user_id, decode('00', 'hex') from auth.users where email = $1`,
      [email],
    );
    const secret = "s".repeat(43);
    await owner.query(
      `insert into auth.mail_tokens (token_hash, purpose, user_id, email, expires_at)
        select sha256($2::bytea), 'reset', user_id, email, now() + interval '1 hour' from auth.users where email = $1`,
      [email, secret],
    );
    await owner.query(
      "select auth.reset_password(sha256($1::bytea), (select password_hash from auth.users where email = $2), null)",
      [secret, email],
    );
    const { rows } = await owner.query(
      "select count(*)::int from auth.passkeys join auth.users using (user_id) where email = $1",
      [email],
    );
    expect(rows).toEqual([{ count: 0 }]);
  });
});

describe("a change of address", () => {
  test("is confirmed at the verified address, also while the user's row names another one", async () => {
    const { email, authorization } = await registerForeignAddress();
    await owner.query("update auth.users set verified_email = email where email = $1", [email]);
    const unverified = newAddress();
    await owner.query("update public.users set email = $2 where email = $1", [email, unverified]);

    const next = newAddress();
    expect(await post("/auth/v1/user", { email: next }, authorization)).toMatchObject({ status: 200 });
    expect((await fragmentOf((await mails.receiveOne(next)).link)).get("message")).toMatch(
      /^Confirmation link accepted/,
    );
    const current = await mailOf(email, "Confirm the change of your e-mail address");
    expect((await fragmentOf(current.link)).has("access_token")).toBe(true);
  });

  test("sends an e-mail to an address, or for a user, once a minute", async () => {
    const [first, second] = [await registerForeignAddress(), await registerForeignAddress()];
    const [address, other] = [newAddress(), newAddress()];
    expect(await post("/auth/v1/user", { email: address }, first.authorization)).toMatchObject({ status: 200 });
    for (const [email, { authorization }] of [
      [address, second],
      [other, first],
    ] as const) {
      expect(await post("/auth/v1/user", { email }, authorization)).toMatchObject({
        status: 429,
        body: { error_code: "over_email_send_rate_limit" },
      });
    }
    expect(await mails.receive(address, 1)).toHaveLength(1);
  });
});

describe("a sign-up", () => {
  test("gets a response of the same shape, whether or not the address has an account", async () => {
    const email = newAddress();
    const signUp = () =>
      post(
        "/auth/v1/signup",
        { email, password: PASSWORD, data: { zeta: 1.0, nothing: null, b: 2, a: {} } },
        {},
        quick,
      );
    const shapes = [await signUp(), await signUp()].map(({ status, body }) => [
      status,
      JSON.stringify(body)
        .replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}@/g, "address@")
        .replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, "id")
        .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "time of the service")
        .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-][\d:]+/g, "time of the database"),
    ]);
    expect(shapes[1]).toEqual(shapes[0]);
  });

  test("that is sent again after another one has expired brings back no earlier password", async () => {
    const { email } = await registerForeignAddress();
    await post("/auth/v1/signup", { email, password: PASSWORD }, {}, quick);
    await mailOf(email, "Confirm your e-mail address");
    await owner.query(
      "update auth.mail_tokens set created_at = now() - interval '2 hours', expires_at = now() - interval '1 hour' where lower(email) = lower($1)",
      [email],
    );
    // The mail of /auth/register may come later.
    const count = (await mails.receive(email, 2)).length;
    await post("/auth/v1/resend", { type: "signup", email }, {}, quick);
    const token = (await mails.receive(email, count + 1))[count]!.code;
    const client = makeClient(quick.url);
    expect((await client.auth.verifyOtp({ email, token, type: "signup" })).error).toBeNull();
    for (const password of [FORMER, PASSWORD]) {
      const { error } = await makeClient(quick.url).auth.signInWithPassword({ email, password });
      expect(error?.code).toBe("invalid_credentials");
    }
  });
});

describe("the metadata of whoever has registered somebody else's address", () => {
  const DATA = { name: "Mallory", plan: "stranger" };
  const signUp = async () => {
    const email = newAddress();
    expect(await post("/auth/v1/signup", { email, password: FORMER, data: DATA }, {}, quick)).toMatchObject({
      status: 200,
    });
    await mails.receiveOne(email);
    return email;
  };
  const profileOf = async (email: string) =>
    (
      await owner.query(
        `select raw_user_meta_data as metadata, (auth.profile_of(user_id)).name, is_self_registered from auth.users where email = $1`,
        [email],
      )
    ).rows[0];
  const prove = async (email: string, type: "email" | "recovery" | "signup", count = 2) => {
    const token = (await mails.receive(email, count))[count - 1]!.code;
    expect((await makeClient(quick.url).auth.verifyOtp({ email, token, type })).error).toBeNull();
  };

  test.each([
    ["a code to sign in", "/otp", { create_user: false }, "email", {}],
    [
      "a code to sign in with its own metadata",
      "/otp",
      { data: { name: "Ada", plan: "own" } },
      "email",
      { name: "Ada", plan: "own" },
    ],
    ["a code to set a password", "/recover", {}, "recovery", {}],
  ] as const)("ends when its owner uses %s", async (_title, path, more, type, metadata) => {
    const email = await signUp();
    expect(await profileOf(email)).toEqual({ metadata: DATA, name: "Mallory", is_self_registered: true });
    expect(await post(`/auth/v1${path}`, { email, ...more }, {}, quick)).toMatchObject({ status: 200 });
    await prove(email, type);
    const name = "name" in metadata ? metadata.name : email.split("@")[0];
    expect(await profileOf(email)).toMatchObject({ metadata, name });
  });

  test("ends when an administrator invites its owner, who has that of the invitation", async () => {
    const email = await signUp();
    const { auth } = makeClient(quick.url, {}, SERVICE_KEY);
    expect((await auth.admin.inviteUserByEmail(email, { data: { plan: "invited" } })).error).toBeNull();
    const token = (await mails.receive(email, 2))[1]!.code;
    expect((await makeClient(quick.url).auth.verifyOtp({ email, token, type: "invite" })).error).toBeNull();
    expect((await profileOf(email)).metadata).toEqual({ plan: "invited" });
  });

  test("stays when its own e-mail is the proof", async () => {
    const email = await signUp();
    await prove(email, "signup", 1);
    expect(await profileOf(email)).toMatchObject({ metadata: DATA, name: "Mallory" });
  });

  test("stays with an account that an administrator has created", async () => {
    const email = newAddress();
    const { auth } = makeClient(quick.url, {}, SERVICE_KEY);
    expect((await auth.admin.createUser({ email, user_metadata: { plan: "given" } })).error).toBeNull();
    await post("/auth/v1/recover", { email }, {}, quick);
    await prove(email, "recovery", 1);
    expect((await profileOf(email)).metadata).toEqual({ plan: "given" });
  });
});

describe("an administrator who confirms an address", () => {
  const confirm = async (email: string, more: object = {}) => {
    const { auth } = makeClient(service.url, {}, SERVICE_KEY);
    const { rows } = await owner.query("select id from auth.users where email = $1", [email]);
    const { data, error } = await auth.admin.updateUserById(rows[0].id, { email_confirm: true, ...more });
    expect(error).toBeNull();
    return data.user!;
  };
  const canSignIn = async (email: string, password: string) =>
    (await makeClient(service.url).auth.signInWithPassword({ email, password })).error === null;

  test("ends what whoever entered it has, and gives the password of the same request", async () => {
    const { email, refreshToken } = await registerForeignAddress();
    const user = await confirm(email, { password: PASSWORD, user_metadata: { plan: "given" } });
    expect(user).toMatchObject({ email, email_confirmed_at: expect.any(String) });
    expect(user.user_metadata).toEqual({ plan: "given" });
    expect(await post("/auth/refresh", { refreshToken })).toMatchObject({ status: 401 });
    expect(await canSignIn(email, FORMER)).toBe(false);
    expect(await canSignIn(email, PASSWORD)).toBe(true);
  });

  test("ends nothing of a confirmed account, nor of one that an administrator has created", async () => {
    const email = newAddress();
    const { auth } = makeClient(service.url, {}, SERVICE_KEY);
    expect((await auth.admin.createUser({ email, password: PASSWORD })).error).toBeNull();
    for (let time = 0; time < 2; time++) {
      await confirm(email);
      expect(await canSignIn(email, PASSWORD)).toBe(true);
    }
  });

  test("ends a number that whoever entered the address has added, and its proof", async () => {
    const { email } = await registerForeignAddress();
    await owner.query("update auth.users set phone = '15550' || user_id, phone_confirmed_at = now() where email = $1", [
      email,
    ]);
    expect(await confirm(email)).toMatchObject({ phone: "" });
  });
});

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type AuthError, createClient, type User } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { describe, expect, test } from "vitest";
import { makePasswords } from "../../../../accounts/passwords.ts";
import { useClient, useDatabase } from "../../../database.ts";
import { useFolder } from "../../../fixture.ts";
import { SECRET } from "../../../secret.ts";
import { useService } from "../../../serve.ts";

const ABSENT_ID = "83fd9e20-7a80-46e4-bf29-a86e3d6bbf66";
const PASSWORD = "correct horse Battery 9";
const WITHOUT_SESSION = { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false };

const database = useDatabase();
const mailDir = useFolder("mail-");
const service = useService({ database, settings: { MAIL_DIR: mailDir, SIGN_IN_REDIRECTS: "http://localhost:9999/*" } });
const owner = useClient(database.ownerUrl);

const authOf = (claims: object) => createClient(service.url, jwt.sign(claims, SECRET), { auth: WITHOUT_SESSION }).auth;
const anonymousClient = () => createClient(service.url, jwt.sign({ role: "anon" }, SECRET), { auth: WITHOUT_SESSION });
const adminApi = () => authOf({ role: "service_role" }).admin;
const newEmail = () => `user-${crypto.randomUUID()}@example.org`;

/** The value of a call that must succeed. */
function succeeded<Result extends { data: unknown; error: AuthError | null }>(result: Result) {
  expect(result.error).toBeNull();
  return result.data as Extract<Result, { error: null }>["data"];
}

async function createUser(attributes: object = {}): Promise<User> {
  const { user } = succeeded(await adminApi().createUser({ email: newEmail(), password: PASSWORD, ...attributes }));
  return user!;
}

async function readUser(id: string): Promise<User> {
  return succeeded(await adminApi().getUserById(id)).user!;
}

async function signIn(email: string | undefined, password = PASSWORD) {
  const { rows } = await owner.query("select user_id from auth.users where email = $1", [email]);
  const response = await fetch(`${service.url}/auth/login`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ username: email, password }),
  });
  return { status: response.status, userId: rows[0]?.user_id };
}

async function mailsTo(address: string): Promise<string[]> {
  const files = await readdir(mailDir);
  const mails = await Promise.all(files.map((file) => readFile(join(mailDir, file), "utf8")));
  return mails.filter((mail) => mail.includes(address));
}

async function eventsOf(id: string): Promise<string[]> {
  const { rows } = await owner.query(
    `select event from auth.audit_log where request_id is not null
      and user_id = (select user_id from auth.users where id = $1) order by audit_log.id`,
    [id],
  );
  return rows.map(({ event }) => event);
}

describe("who may administer", () => {
  test.each([
    ["anon", "not_admin", 403],
    ["authenticated", "not_admin", 403],
  ])("a token of role %s may not", async (role, code, status) => {
    const { data, error } = await authOf({ role, sub: "1" }).admin.listUsers();
    expect([data.users, error?.code, error?.status]).toEqual([[], code, status]);
  });

  test("a token of role admin may, unless somebody else acts with it", async () => {
    const listAs = (claims: object) => authOf({ role: "admin", sub: "1", ...claims }).admin.listUsers();
    expect((await listAs({})).error).toBeNull();
    expect((await listAs({ act: { sub: "2" } })).error).toMatchObject({ code: "not_admin", status: 403 });
  });

  test("a request without a token may not, nor one whose token is signed with another key", async () => {
    const anonKey = jwt.sign({ role: "anon" }, SECRET);
    const list = (headers: Record<string, string>) => fetch(`${service.url}/auth/v1/admin/users`, { headers });
    expect((await list({})).status).toBe(401);
    const forged = jwt.sign({ role: "service_role" }, `${SECRET}x`);
    expect((await list({ apikey: anonKey, Authorization: `Bearer ${forged}` })).status).toBe(403);
    const serviceToken = jwt.sign({ role: "service_role" }, SECRET);
    expect((await list({ apikey: anonKey, Authorization: `Bearer ${serviceToken}` })).status).toBe(200);
    const supabaseAdmin = jwt.sign({ role: "supabase_admin", sub: "1234567890" }, SECRET);
    expect((await list({ apikey: anonKey, Authorization: `Bearer ${supabaseAdmin}` })).status).toBe(200);
  });

  test("a key of role service_role that is not a token may", async () => {
    const key = `cs_${"k".repeat(40)}`;
    await owner.query(
      "insert into auth.api_keys (key_hash, prefix, role, name) values (sha256($1::bytea), 'cs_k', 'service_role', 'server')",
      [key],
    );
    const { error } = await createClient(service.url, key, { auth: WITHOUT_SESSION }).auth.admin.listUsers();
    expect(error).toBeNull();
  });
});

describe("createUser", () => {
  test("creates a user with an unconfirmed address, metadata and the providers", async () => {
    const email = newEmail();
    const user = await createUser({
      email: email.toUpperCase(),
      user_metadata: { name: "Ada", color: "blue" },
      app_metadata: { plan: "pro" },
    });
    expect(user).toMatchObject({
      email,
      aud: "authenticated",
      role: "authenticated",
      user_metadata: { name: "Ada", color: "blue" },
      app_metadata: { plan: "pro", provider: "email", providers: ["email"] },
      identities: [{ provider: "email" }],
    });
    expect(user.email_confirmed_at).toBeUndefined();
    const { rows } = await owner.query("select name from public.users where email = $1", [email]);
    expect(rows).toEqual([{ name: "Ada" }]);
    expect(await eventsOf(user.id)).toEqual(["account.created", "account.changed"]);
  });

  test("confirms the address, assigns the role and keeps the id, if these are given", async () => {
    const id = crypto.randomUUID();
    const user = await createUser({
      id,
      email_confirm: true,
      role: "admin",
      phone: "+49 151 2345678",
      phone_confirm: true,
    });
    expect(user).toMatchObject({ id, role: "admin", phone: "491512345678" });
    expect([user.email_confirmed_at, user.phone_confirmed_at]).toEqual([expect.any(String), expect.any(String)]);
    expect((await signIn(user.email)).status).toBe(200);
  });

  test("accepts the hash of a password", async () => {
    const passwordHash = await makePasswords().hash(PASSWORD);
    const user = await createUser({ password: undefined, password_hash: passwordHash, email_confirm: true });
    expect((await signIn(user.email)).status).toBe(200);
  });

  test("creates a user without a password, who cannot sign in with one", async () => {
    const user = await createUser({ password: undefined });
    expect((await signIn(user.email, "")).status).not.toBe(200);
  });

  test.each([
    [{ email: "xx:;x@x.x" }, "validation_failed", "Unable to validate email address: invalid format"],
    [{ email: "a@b" }, "validation_failed", "Unable to validate email address: invalid format"],
    [{ email: "" }, "validation_failed", "Cannot create a user without either an email or phone"],
    [{ email: "ada@example.org", phone: "0800" }, "validation_failed", "Invalid phone number format (E.164 required)"],
    [{ email: "ada@example.org", id: "7" }, "validation_failed", "ID must conform to the uuid v4 format"],
    [{ email: "ada@example.org", role: "postgres" }, "validation_failed", "There is no role of that name for users"],
    [{ email: "ada@example.org", ban_duration: "1 day" }, "validation_failed", "invalid format for ban duration"],
    [
      { email: "ada@example.org", password: "", password_hash: "plain" },
      "validation_failed",
      "A password hash must be",
    ],
    [{ email: "ada@example.org", password_hash: "$argon2id$x" }, "validation_failed", "Only a password or"],
    [{ email: "ada@example.org", password: "short" }, "weak_password", "Password should be at least"],
  ])("refuses %j", async (attributes, code, message) => {
    const { data, error } = await adminApi().createUser({ password: PASSWORD, ...attributes });
    expect([data.user, error?.code]).toEqual([null, code]);
    expect(error?.message).toContain(message);
  });

  test("refuses an address and a phone number that another user has, in any case", async () => {
    const { email } = await createUser({ phone: "4915199999" });
    const again = await adminApi().createUser({ email: email!.toUpperCase(), password: PASSWORD });
    expect([again.error?.status, again.error?.code]).toEqual([422, "email_exists"]);
    const samePhone = await adminApi().createUser({ email: newEmail(), phone: "4915199999" });
    expect([samePhone.error?.status, samePhone.error?.code]).toEqual([422, "phone_exists"]);
  });
});

test("of concurrent requests for the same address, one creates a user, and the others are refused or use that one", async () => {
  const email = newEmail();
  const links = Array.from({ length: 10 }, () => adminApi().generateLink({ type: "magiclink", email }));
  const users = Array.from({ length: 10 }, () => adminApi().createUser({ email, password: PASSWORD }));
  const ids = new Set<string | undefined>();
  for (const { data, error } of [...(await Promise.all(links)), ...(await Promise.all(users))]) {
    if (error) expect(error).toMatchObject({ status: 422, code: "email_exists" });
    else ids.add(data.user?.id);
  }
  expect(ids.size).toBe(1);
});

test("changes, a ban and a deletion of one user at the same time all end", async () => {
  const user = await createUser({ email_confirm: true });
  const changes = Array.from({ length: 20 }, (_, n) => {
    const attributes = [
      { email: newEmail() },
      { password: PASSWORD },
      { ban_duration: "1h" },
      { user_metadata: { n } },
    ];
    return adminApi().updateUserById(user.id, attributes[n % attributes.length]!);
  });
  const deletion = adminApi().deleteUser(user.id);
  for (const { error } of await Promise.all(changes)) expect([undefined, "user_not_found"]).toContain(error?.code);
  expect((await deletion).error).toBeNull();
  expect((await adminApi().getUserById(user.id)).error?.code).toBe("user_not_found");
});

describe("listUsers and getUserById", () => {
  test("pages have the newest users first, the total, and the next and last page", async () => {
    const emails: string[] = [];
    for (let n = 0; n < 5; n++) emails.push((await createUser()).email!);
    const first = succeeded(await adminApi().listUsers({ page: 1, perPage: 2 }));
    const second = succeeded(await adminApi().listUsers({ page: 2, perPage: 2 }));
    expect([...first.users, ...second.users].map(({ email }) => email)).toEqual(emails.toReversed().slice(0, 4));
    const { rows } = await owner.query("select count(*)::int as total from auth.users");
    const { total } = rows[0];
    const lastPage = Math.ceil(total / 2);
    expect(first).toMatchObject({ aud: "authenticated", total, nextPage: 2, lastPage });
    const last = succeeded(await adminApi().listUsers({ page: lastPage, perPage: 2 }));
    expect(last).toMatchObject({ total, nextPage: null, lastPage });
    const beyond = succeeded(await adminApi().listUsers({ page: lastPage + 1, perPage: 2 }));
    expect(beyond).toMatchObject({ users: [], total });
  });

  test("a filter finds parts of addresses, literally", async () => {
    const { email } = await createUser({ email: `50%_off-${crypto.randomUUID()}@example.org` });
    const list = async (filter: string) => {
      const headers = { apikey: jwt.sign({ role: "service_role" }, SECRET) };
      const response = await fetch(`${service.url}/auth/v1/admin/users?filter=${encodeURIComponent(filter)}`, {
        headers,
      });
      return ((await response.json()) as { users: User[] }).users.map((user) => user.email);
    };
    expect(await list("50%_OFF")).toEqual([email]);
    expect(await list("50_%off")).toEqual([]);
  });

  test("a page or a size that is no positive number is refused", async () => {
    const { data, error } = await adminApi().listUsers({ page: -1, perPage: 10 });
    expect([data.users, error?.code]).toEqual([[], "validation_failed"]);
    expect((await adminApi().listUsers({ perPage: 0 })).error?.status).toBe(400);
  });

  test("a user is found by id", async () => {
    const user = await createUser();
    expect(await readUser(user.id)).toEqual(user);
    const { data, error } = await adminApi().getUserById(ABSENT_ID);
    expect([data.user, error?.status, error?.code]).toEqual([null, 404, "user_not_found"]);
  });

  test("an id that is no uuid is refused as GoTrue does", async () => {
    const headers = { apikey: jwt.sign({ role: "service_role" }, SECRET) };
    const response = await fetch(`${service.url}/auth/v1/admin/users/7`, { headers });
    expect([response.status, await response.json()]).toEqual([
      404,
      { code: 404, error_code: "validation_failed", msg: "user_id must be an UUID" },
    ]);
  });
});

describe("updateUserById", () => {
  const update = async (id: string, attributes: object) =>
    succeeded(await adminApi().updateUserById(id, attributes)).user!;

  test("changes the address at once, of the user too, and keeps it confirmed", async () => {
    const user = await createUser({ email_confirm: true });
    const email = `new_${user.email}`;
    const updated = await update(user.id, { email });
    expect([updated.email, typeof updated.email_confirmed_at]).toEqual([email, "string"]);
    const { rows } = await owner.query("select email from public.users where email = $1", [email]);
    expect(rows).toEqual([{ email }]);
    expect((await signIn(email)).status).toBe(200);
  });

  test("confirms an address, which does not confirm one that replaces an unconfirmed one", async () => {
    const user = await createUser();
    expect((await update(user.id, { email: newEmail() })).email_confirmed_at).toBeUndefined();
    expect((await update(user.id, { email_confirm: true })).email_confirmed_at).toEqual(expect.any(String));
  });

  test("adds and removes metadata", async () => {
    const user = await createUser({ user_metadata: { a: 1, b: { c: null } }, app_metadata: { plan: "pro" } });
    const updated = await update(user.id, { user_metadata: { a: null, d: "e" }, app_metadata: { roles: ["editor"] } });
    expect(updated.user_metadata).toEqual({ b: { c: null }, d: "e" });
    expect(updated.app_metadata).toMatchObject({ plan: "pro", roles: ["editor"], provider: "email" });
  });

  test("sets a password, which ends the sign-ins of the user", async () => {
    const user = await createUser({ email_confirm: true });
    await signIn(user.email);
    const signIns = () =>
      owner.query(
        "select from auth.refresh_tokens join auth.users using (user_id) where users.id = $1 and revoked_at is null",
        [user.id],
      );
    expect((await signIns()).rowCount).toBe(1);
    await update(user.id, { password: "another Horse Battery 7" });
    expect((await signIns()).rowCount).toBe(0);
    expect((await signIn(user.email)).status).toBe(401);
    expect((await signIn(user.email, "another Horse Battery 7")).status).toBe(200);
    const { rows } = await owner.query(
      "select details from auth.audit_log where event = 'account.changed' order by id desc limit 1",
    );
    expect(rows[0].details.fields).toEqual(["password"]);
  });

  test("bans a user for some time, and ends a ban", async () => {
    const user = await createUser({ email_confirm: true });
    const signedIn = anonymousClient();
    await signedIn.auth.signInWithPassword({ email: user.email!, password: PASSWORD });
    const banned = (await update(user.id, { ban_duration: "1h30m" })) as User & { banned_until: string };
    const minutes = (Date.parse(banned.banned_until) - Date.now()) / 60_000;
    expect(minutes).toBeGreaterThan(88);
    expect(minutes).toBeLessThanOrEqual(90);
    expect((await signIn(user.email)).status).toBe(403);
    expect((await signedIn.auth.getUser()).error).toMatchObject({ status: 403, code: "user_banned" });
    const refused = await anonymousClient().auth.signInWithPassword({ email: user.email!, password: PASSWORD });
    expect(refused.error?.code).toBe("user_banned");
    await update(user.id, { ban_duration: "none" });
    expect((await signIn(user.email)).status).toBe(200);
    expect(await eventsOf(user.id)).toEqual(expect.arrayContaining(["account.banned", "account.unbanned"]));
  });

  test.each([["876000h"], ["0.5s"], ["2h45m10.5s"]])("accepts the duration %s of a ban", async (duration) => {
    const user = await createUser();
    expect(await update(user.id, { ban_duration: duration })).toHaveProperty("banned_until");
  });

  test.each([["1d"], ["h"], ["5"], ["-"], ["9999999999h"]])("refuses the duration %s", async (duration) => {
    const user = await createUser();
    const { error } = await adminApi().updateUserById(user.id, { ban_duration: duration });
    expect([error?.status, error?.code]).toEqual([400, "validation_failed"]);
  });

  test("changes nothing if one of the changes is refused", async () => {
    const [user, other] = [await createUser(), await createUser()];
    const attributes = { email: other.email!, user_metadata: { changed: true } };
    const { error } = await adminApi().updateUserById(user.id, attributes);
    expect([error?.status, error?.code]).toEqual([422, "email_exists"]);
    expect(await readUser(user.id)).toEqual(user);
  });

  test("returns an error for a user that does not exist", async () => {
    const { data, error } = await adminApi().updateUserById(ABSENT_ID, { email: newEmail() });
    expect([data.user, error?.code]).toEqual([null, "user_not_found"]);
  });
});

describe("deleteUser", () => {
  test("deletes the user", async () => {
    const user = await createUser({ email_confirm: true });
    const { user: deleted } = succeeded(await adminApi().deleteUser(user.id));
    expect((deleted as User).id).toBe(user.id);
    expect((await adminApi().getUserById(user.id)).error?.code).toBe("user_not_found");
    expect((await owner.query("select from public.users where email = $1", [user.email])).rowCount).toBe(0);
    expect((await signIn(user.email)).status).toBe(401);
    const again = await adminApi().deleteUser(user.id);
    expect([again.data.user, again.error?.code]).toEqual([null, "user_not_found"]);
    const { rows } = await owner.query(
      "select details from auth.audit_log where event = 'account.deletion_requested' order by id desc limit 1",
    );
    expect(rows).toMatchObject([{ details: { keeps_row: false } }]);
  });

  test("with soft deletion keeps the row without what names the person, and frees the address", async () => {
    const user = await createUser({
      email_confirm: true,
      phone: "4915177777",
      user_metadata: { name: "Ada" },
      app_metadata: { plan: "pro" },
    });
    succeeded(await adminApi().deleteUser(user.id, true));
    const deleted = await readUser(user.id);
    expect(deleted).toMatchObject({ id: user.id, phone: "", user_metadata: {}, deleted_at: expect.any(String) });
    expect(deleted.app_metadata).not.toHaveProperty("plan");
    expect(JSON.stringify(deleted)).not.toContain(user.email!);
    const { rows } = await owner.query("select name from public.users where email = $1", [deleted.email]);
    expect(rows).toEqual([{ name: "Deleted user" }]);
    expect((await signIn(user.email)).status).toBe(401);
    succeeded(await adminApi().deleteUser(user.id, true));
    const successor = await createUser({ email: user.email, phone: "4915177777" });
    expect(successor.id).not.toBe(user.id);
  });
});

describe("mfa and passkey", () => {
  const addFactor = async (user: User) => {
    const { rows } = await owner.query(
      `insert into auth.mfa_factors (user_id, factor_type, friendly_name, secret)
        select user_id, 'totp', 'phone', 'JBSWY3DPEHPK3PXP' from auth.users where id = $1 returning id`,
      [user.id],
    );
    return rows[0].id as string;
  };
  const addPasskey = async (user: User) => {
    const { rows } = await owner.query(
      `insert into auth.passkeys (user_id, friendly_name, credential_id, public_key)
        select user_id, 'key', gen_random_uuid()::text, 'x' from auth.users where id = $1 returning id`,
      [user.id],
    );
    return rows[0].id as string;
  };

  test("factors are listed, also those that are not verified, and deleted", async () => {
    const user = await createUser();
    const id = await addFactor(user);
    const { mfa } = adminApi();
    const { factors } = succeeded(await mfa.listFactors({ userId: user.id }));
    expect(factors).toEqual([
      {
        ...{ id, friendly_name: "phone", factor_type: "totp", status: "unverified" },
        ...{ created_at: expect.any(String), updated_at: expect.any(String) },
      },
    ]);
    const other = await createUser();
    const elsewhere = await mfa.deleteFactor({ userId: other.id, id });
    expect([elsewhere.error?.status, elsewhere.error?.code]).toEqual([404, "mfa_factor_not_found"]);
    // auth-js returns the whole response as data.
    const deleted: object = succeeded(await mfa.deleteFactor({ userId: user.id, id }));
    expect(deleted).toMatchObject({ data: { id } });
    expect(succeeded(await mfa.listFactors({ userId: user.id }))).toEqual({ factors: [] });
    expect(await eventsOf(user.id)).toContain("factor.disabled");
    const absent = await mfa.listFactors({ userId: ABSENT_ID });
    expect([absent.data, absent.error?.code]).toEqual([null, "user_not_found"]);
  });

  test("passkeys are listed and deleted", async () => {
    const user = await createUser();
    const id = await addPasskey(user);
    const { passkey } = adminApi();
    expect(succeeded(await passkey.listPasskeys({ userId: user.id }))).toEqual([
      { id, friendly_name: "key", created_at: expect.any(String) },
    ]);
    succeeded(await passkey.deletePasskey({ userId: user.id, passkeyId: id }));
    expect(succeeded(await passkey.listPasskeys({ userId: user.id }))).toEqual([]);
    const again = await passkey.deletePasskey({ userId: user.id, passkeyId: id });
    expect(again.error?.status).toBe(404);
  });

  test("soft deletion removes factors and passkeys", async () => {
    const user = await createUser();
    await addFactor(user);
    await addPasskey(user);
    succeeded(await adminApi().deleteUser(user.id, true));
    expect(succeeded(await adminApi().mfa.listFactors({ userId: user.id }))).toEqual({ factors: [] });
    expect(succeeded(await adminApi().passkey.listPasskeys({ userId: user.id }))).toEqual([]);
  });
});

describe("signOut", () => {
  test("ends all sign-ins of the user of a token, and refuses a bad token", async () => {
    const user = await createUser({ email_confirm: true });
    const client = anonymousClient();
    const { session } = succeeded(await client.auth.signInWithPassword({ email: user.email!, password: PASSWORD }));
    succeeded(await adminApi().signOut(session!.access_token));
    const refreshed = await client.auth.refreshSession({ refresh_token: session!.refresh_token });
    expect(refreshed.error).not.toBeNull();
    expect((await adminApi().signOut("this-is-a-bad-token")).error?.message).toMatch(/^invalid JWT/);
  });
});

describe("generateLink", () => {
  const redirectTo = "http://localhost:9999/welcome";

  test("makes a link for a new user, with a password and metadata, that confirms the address", async () => {
    const email = newEmail();
    const { user, properties } = succeeded(
      await adminApi().generateLink({
        type: "signup",
        email,
        password: PASSWORD,
        options: { data: { status: "alpha" }, redirectTo },
      }),
    );
    expect(user).toMatchObject({ email, user_metadata: { status: "alpha" } });
    expect(properties).toEqual({
      action_link: expect.stringMatching(
        /\/auth\/v1\/verify\?token=[\w-]{20,}&type=signup&redirect_to=http:\/\/localhost:9999\/welcome$/,
      ),
      email_otp: expect.stringMatching(/^\d{6}$/),
      hashed_token: expect.stringMatching(/^[\w-]{20,}$/),
      redirect_to: redirectTo,
      verification_type: "signup",
    });
    expect(properties.action_link).toContain(`token=${properties.hashed_token}&`);
  });

  test("makes links and codes that a client signs in with", async () => {
    const user = await createUser();
    const link = succeeded(await adminApi().generateLink({ type: "magiclink", email: user.email! }));
    const { hashed_token: tokenHash } = link.properties;
    const byLink = succeeded(await anonymousClient().auth.verifyOtp({ token_hash: tokenHash, type: "email" }));
    expect(byLink.session!.user).toMatchObject({ id: user.id, email_confirmed_at: expect.any(String) });
    const recovery = succeeded(await adminApi().generateLink({ type: "recovery", email: user.email! }));
    const code = { email: user.email!, token: recovery.properties.email_otp, type: "recovery" } as const;
    const byCode = succeeded(await anonymousClient().auth.verifyOtp(code));
    expect(byCode.session!.user.id).toBe(user.id);
  });

  test("makes a link for an account that is not confirmed, and none for one that is", async () => {
    const user = await createUser();
    const link = { type: "signup", email: user.email!, password: PASSWORD } as const;
    const repeated = succeeded(await adminApi().generateLink({ ...link, options: { data: { again: true } } }));
    expect(repeated.user).toMatchObject({ id: user.id, user_metadata: { again: true } });
    succeeded(await adminApi().updateUserById(user.id, { email_confirm: true }));
    const { data, error } = await adminApi().generateLink(link);
    expect([data.user, data.properties, error?.status, error?.code]).toEqual([null, null, 422, "email_exists"]);
  });

  test("makes a link to sign in, which is one to sign up for an address without an account", async () => {
    const user = await createUser({ email_confirm: true });
    const link = succeeded(await adminApi().generateLink({ type: "magiclink", email: user.email! }));
    expect([link.user.id, link.properties.verification_type]).toEqual([user.id, "magiclink"]);
    const created = succeeded(await adminApi().generateLink({ type: "magiclink", email: newEmail() }));
    expect(created.properties.verification_type).toBe("signup");
  });

  test("makes a link to set a password, for an existing user only", async () => {
    const user = await createUser();
    const { properties } = succeeded(await adminApi().generateLink({ type: "recovery", email: user.email! }));
    expect(properties.action_link).toContain("type=recovery");
    const { error } = await adminApi().generateLink({ type: "recovery", email: newEmail() });
    expect([error?.status, error?.code]).toEqual([404, "user_not_found"]);
  });

  test("makes links for both sides of a change of address, which needs both", async () => {
    const user = await createUser({ email_confirm: true });
    const change = { email: user.email!, newEmail: newEmail() };
    const pending = async () => {
      const { rows } = await owner.query(
        "select purpose, new_email from auth.mail_tokens join auth.users using (user_id) where users.id = $1 order by purpose",
        [user.id],
      );
      return rows;
    };
    const current = succeeded(await adminApi().generateLink({ type: "email_change_current", ...change }));
    expect(current.user).toMatchObject({ email: change.email, new_email: change.newEmail });
    expect(current.properties).toMatchObject({
      action_link: expect.stringMatching(/type=email_change&/),
      verification_type: "email_change_current",
    });
    const both = [
      { purpose: "email_change_current", new_email: change.newEmail },
      { purpose: "email_change_new", new_email: change.newEmail },
    ];
    expect(await pending()).toEqual(both);
    const replaced = succeeded(await adminApi().generateLink({ type: "email_change_new", ...change }));
    expect(replaced.properties.verification_type).toBe("email_change_new");
    expect(await pending()).toEqual(both);
    const confirm = ({ properties }: typeof replaced) =>
      anonymousClient().auth.verifyOtp({ token_hash: properties.hashed_token, type: "email_change" });
    succeeded(await confirm(replaced));
    expect((await readUser(user.id)).email).toBe(user.email);
    succeeded(await confirm(current));
    expect(await readUser(user.id)).toMatchObject({ email: change.newEmail, email_confirmed_at: expect.any(String) });

    const taken = { type: "email_change_new", email: change.newEmail, newEmail: (await createUser()).email! } as const;
    expect((await adminApi().generateLink(taken)).error?.code).toBe("email_exists");
  });

  test.each([
    [{ type: "signup", email: "xx:;x@x.x", password: PASSWORD }, "Unable to validate email address: invalid format"],
    [{ type: "signup", email: "ada@example.org" }, "Signup requires a valid password"],
    [{ type: "magiclink" }, "An email address is required"],
    [{ type: "sms", email: "ada@example.org" }, "Invalid email action link type requested: sms"],
  ])("refuses %j", async (params, message) => {
    const { data, error } = await adminApi().generateLink(params as never);
    expect([data.properties, error?.code, error?.message]).toEqual([null, "validation_failed", message]);
  });
});

describe("inviteUserByEmail", () => {
  test("creates a user who was invited, and sends the link, again until the address is confirmed", async () => {
    const email = newEmail();
    const { user } = succeeded(await adminApi().inviteUserByEmail(email, { data: { team: "red" } }));
    expect(user).toMatchObject({ email, user_metadata: { team: "red" }, invited_at: expect.any(String) });
    expect(user!.email_confirmed_at).toBeUndefined();
    await expect.poll(() => mailsTo(email)).toHaveLength(1);
    expect((await mailsTo(email))[0]).toMatch(/type=invite/);
    expect(await eventsOf(user!.id)).toContain("account.invited");

    succeeded(await adminApi().inviteUserByEmail(email));
    await expect.poll(() => mailsTo(email)).toHaveLength(2);
    succeeded(await adminApi().updateUserById(user!.id, { email_confirm: true }));
    const { error } = await adminApi().inviteUserByEmail(email);
    expect([error?.status, error?.code]).toEqual([422, "email_exists"]);
  });

  test("refuses an invalid address, and a caller who is no administrator", async () => {
    const { data, error } = await adminApi().inviteUserByEmail("xx:;x@x.x");
    expect([data.user, error?.message]).toEqual([null, "Unable to validate email address: invalid format"]);
    const refused = await authOf({ role: "anon" }).admin.inviteUserByEmail(newEmail());
    expect(refused.error?.code).toBe("not_admin");
  });
});

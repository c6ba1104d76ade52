import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { useFolder } from "../fixture.ts";
import { SECRET } from "../secret.ts";
import { serve, useService } from "../serve.ts";
import { until } from "../until.ts";

const PASSWORD = "correct horse Battery 9";
const STRANGERS_PASSWORD = "Tangerine-Boat-7";

const database = useDatabase();
const mailDir = useFolder("mail-");
const service = useService({
  database,
  settings: { MAIL_DIR: mailDir, STUDIO: "administrators", MAIL_FROM: "Tasks & Co <no-reply@example.org>" },
});
const owner = useClient(database.ownerUrl);

// biome-ignore lint/suspicious/noExplicitAny: what a route answers is what its test says.
type Json = { readonly [name: string]: any };
type Account = { readonly id: string; readonly key: string; readonly email: string };

let inviter: Account;
beforeAll(async () => {
  inviter = await createAdministrator("Grace");
});

const newEmail = () => `user-${crypto.randomUUID()}@example.org`;
const bearer = (claims: object) => {
  const token = jwt.sign(claims, SECRET);
  return { Authorization: `Bearer ${token}`, apikey: token };
};
const as = ({ key }: Account) => bearer({ role: "admin", sub: key });

async function send(method: string, path: string, headers: Record<string, string>, body?: object) {
  const response = await fetch(service.url + path, {
    method,
    headers: { ...headers, ...(body && { "Content-Type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: (text === "" ? null : JSON.parse(text)) as Json };
}

async function createAdministrator(name: string): Promise<Account> {
  const email = newEmail();
  const attributes = { email, email_confirm: true, role: "admin", user_metadata: { name } };
  const { body } = await send("POST", "/auth/v1/admin/users", bearer({ role: "service_role" }), attributes);
  const { rows } = await owner.query("select user_id from auth.users where id = $1", [body.id]);
  const account = { id: body.id, key: rows[0].user_id, email };
  // The change of the role ended the tokens of this second.
  await until(async () => (await send("GET", "/admin/v1/providers", as(account))).status === 200);
  return account;
}

const invite = (email: string, role: string, by = inviter) =>
  send("POST", "/admin/v1/invitations", as(by), { email, role });

/** The newest e-mail to somebody. */
async function mailTo(email: string): Promise<Json> {
  let mails: Json[] = [];
  await until(async () => {
    const { body } = await send("GET", "/admin/v1/mails", bearer({ role: "admin" }));
    mails = body.mails.filter(({ to }: Json) => to === email);
    return mails.length > 0;
  });
  return mails[0]!;
}

const linkIn = ({ text }: Json) => new URL(/^https?:\S+$/m.exec(text)![0]);
const tokenFor = async (email: string) => linkIn(await mailTo(email)).searchParams.get("token")!;

/** Sends the form of the page, as a browser does. */
async function accept(token: string, password = PASSWORD) {
  const response = await fetch(`${service.url}/auth/invitation`, {
    method: "POST",
    redirect: "manual",
    headers: { Origin: service.url },
    body: new URLSearchParams({ token, password }),
  });
  const cookie = response.headers.getSetCookie()[0]?.split(";", 1)[0] ?? null;
  return { status: response.status, location: response.headers.get("location"), cookie, text: await response.text() };
}

async function roleOf(email: string): Promise<string | null> {
  const { rows } = await owner.query(
    "select coalesce((select role from auth.user_roles where user_id = account.user_id), 'authenticated') as role from auth.users as account where lower(email) = lower($1)",
    [email],
  );
  return rows[0]?.role ?? null;
}

const logIn = (username: string, password: string) =>
  send("POST", "/auth/login", {}, { username, password }).then(({ status }) => status);

describe("an invitation", () => {
  test("names the inviter and the project, and leads to a page where a password is chosen, then to Studio", async () => {
    const email = newEmail();
    const { status, body } = await invite(email, "admin");
    expect([status, body]).toEqual([201, { id: expect.stringMatching(/^[\da-f-]{36}$/) }]);
    const mail = await mailTo(email);
    expect(mail.subject).toBe(`Grace (${inviter.email}) invites you to Tasks & Co`);
    const page = await fetch(linkIn(mail));
    const text = await page.text();
    expect(text).toContain(email);
    expect(text).toContain("<strong>admin</strong>");
    expect(await roleOf(email)).toBe("authenticated");

    const token = linkIn(mail).searchParams.get("token")!;
    const weak = await accept(token, "short");
    expect([weak.status, weak.cookie]).toEqual([400, null]);
    const accepted = await accept(token);
    expect([accepted.status, accepted.location]).toEqual([303, "/studio"]);
    expect(await roleOf(email)).toBe("admin");
    expect(await logIn(email, PASSWORD)).toBe(200);
    const session = await fetch(`${service.url}/auth/account`, { headers: { Cookie: accepted.cookie! } });
    expect(await session.text()).toContain(email);
    const { rows } = await owner.query(
      "select event, details ->> 'by' as actor from auth.audit_log where user_id = (select user_id from auth.users where email = $1) and event in ('role.assigned', 'invitation.accepted') order by id",
      [email],
    );
    expect(rows).toEqual([
      { event: "role.assigned", actor: inviter.key },
      { event: "invitation.accepted", actor: null },
    ]);
  });

  test("is used once, and leads users who may not open Studio to their account", async () => {
    const email = newEmail();
    await invite(email, "authenticated");
    const token = await tokenFor(email);
    expect((await accept(token)).location).toBe("/auth/account");
    const again = await accept(token, STRANGERS_PASSWORD);
    expect([again.status, again.cookie]).toEqual([400, null]);
    expect(await logIn(email, STRANGERS_PASSWORD)).toBe(401);
    expect(await logIn(email, PASSWORD)).toBe(200);
    expect(await (await fetch(`${service.url}/auth/invitation?token=${token}`)).text()).toContain("not valid");
  });

  test("is replaced by the next one, with its role", async () => {
    const email = newEmail();
    await invite(email, "admin");
    const first = await tokenFor(email);
    await invite(email, "authenticated");
    let second = first;
    await until(async () => {
      second = await tokenFor(email);
      return second !== first;
    });
    expect((await accept(first)).status).toBe(400);
    expect((await accept(second)).status).toBe(303);
    expect(await roleOf(email)).toBe("authenticated");
  });
});

describe("an invitation raises nobody's privileges:", () => {
  test("it opens no session of an account that has a second factor meanwhile, except of whoever had not proved the address", async () => {
    const enableFactor = async (email: string, isProved: boolean) => {
      const { rows } = await owner.query(
        "update auth.users set verified_email = case when $2 then email end where email = $1 returning user_id",
        [email, isProved],
      );
      await owner.query("select auth.enroll_factor($1, $2, null)", [rows[0].user_id, email]);
      await owner.query("select auth.enable_factor($1, $2, 1, '{}', null)", [rows[0].user_id, email]);
    };
    const [proved, unproved] = [newEmail(), newEmail()];
    for (const email of [proved, unproved]) {
      await invite(email, "admin");
      const token = await tokenFor(email);
      await enableFactor(email, email === proved);
      const { status, cookie } = await accept(token);
      expect([status, cookie === null]).toEqual(email === proved ? [400, true] : [303, false]);
      expect(await roleOf(email)).toBe(email === proved ? "authenticated" : "admin");
    }
  });

  test("only administrators send one, and none of a role that users do not have", async () => {
    const body = { email: newEmail(), role: "admin" };
    for (const claims of [{ role: "authenticated", sub: inviter.key }, { role: "service_role" }, { role: "anon" }]) {
      expect((await send("POST", "/admin/v1/invitations", bearer(claims), body)).status).toBe(403);
    }
    expect((await send("POST", "/admin/v1/invitations", {}, body)).status).toBe(401);
    for (const role of ["service_role", "anon", "postgres", "authenticator", "nobody"]) {
      const refused = await invite(newEmail(), role);
      expect([refused.status, refused.body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
    }
    expect(await roleOf(body.email)).toBeNull();
  });

  test("the link is no other link, and has no code", async () => {
    const email = newEmail();
    await invite(email, "admin");
    const token = await tokenFor(email);
    expect((await mailTo(email)).text).not.toMatch(/\b\d{6}\b/);
    for (const type of ["invite", "magiclink", "recovery", "signup", "email"]) {
      const { status } = await send("POST", "/auth/v1/verify", bearer({ role: "anon" }), { type, token_hash: token });
      expect(status).toBe(403);
    }
    for (const [path, body] of [
      ["/auth/reset-password", { token, password: STRANGERS_PASSWORD }],
      ["/auth/verify-email", { token }],
    ] as const) {
      expect((await send("POST", path, {}, body)).status).toBe(400);
    }
    expect((await accept(token)).status).toBe(303);
  });

  test("a link for another purpose is no invitation", async () => {
    const email = newEmail();
    await send("POST", "/auth/register", {}, { name: "Eve", email, password: STRANGERS_PASSWORD });
    const token = await tokenFor(email);
    expect((await accept(token)).status).toBe(400);
  });

  test("whoever registered the address before loses the account when the invitation is accepted", async () => {
    const email = newEmail();
    await send("POST", "/auth/register", {}, { name: "Eve", email, password: STRANGERS_PASSWORD });
    const { body: tokens } = await send("POST", "/auth/login", {}, { username: email, password: STRANGERS_PASSWORD });
    await mailTo(email);
    expect((await invite(email, "admin")).status).toBe(201);
    expect(await roleOf(email)).toBe("authenticated");
    let token = "";
    await until(async () => {
      const mail = await mailTo(email);
      token = linkIn(mail).searchParams.get("token")!;
      return mail.subject.includes("invites you");
    });
    expect((await accept(token)).status).toBe(303);
    expect(await logIn(email, STRANGERS_PASSWORD)).toBe(401);
    const refreshed = await send("POST", "/auth/refresh", {}, { refreshToken: tokens.refreshToken });
    expect(refreshed.status).toBe(401);
  });

  test("it ends with its inviter's role, and with the inviter", async () => {
    const [demoted, deleted] = [await createAdministrator("Demoted"), await createAdministrator("Deleted")];
    const [first, second] = [newEmail(), newEmail()];
    await invite(first, "admin", demoted);
    await invite(second, "admin", deleted);
    const tokens = [await tokenFor(first), await tokenFor(second)];
    await send("PUT", `/auth/v1/admin/users/${demoted.id}`, bearer({ role: "service_role" }), {
      role: "authenticated",
    });
    await send("DELETE", `/auth/v1/admin/users/${deleted.id}`, bearer({ role: "service_role" }), {});
    for (const token of tokens) expect((await accept(token)).status).toBe(400);
    expect([await roleOf(first), await roleOf(second)]).toEqual(["authenticated", "authenticated"]);
  });

  test("a user whose address is confirmed is not invited, and keeps the password", async () => {
    const refused = await invite(inviter.email.toUpperCase(), "admin");
    expect([refused.status, refused.body.error.code]).toEqual([409, "RESOURCE_CONFLICT"]);
  });

  test("it is not accepted after a day, or with another address", async () => {
    const [late, moved] = [newEmail(), newEmail()];
    for (const email of [late, moved]) await invite(email, "admin");
    const tokens = [await tokenFor(late), await tokenFor(moved)];
    await owner.query(
      "update auth.mail_tokens set created_at = created_at - interval '25 hours', expires_at = expires_at - interval '25 hours' where email = $1",
      [late],
    );
    await owner.query("update public.users set email = 'eve-' || email where email = $1", [moved]);
    for (const token of tokens) expect((await accept(token)).status).toBe(400);
  });

  test("another site cannot send its form", async () => {
    const email = newEmail();
    await invite(email, "authenticated");
    const body = new URLSearchParams({ token: await tokenFor(email), password: PASSWORD });
    const headers = { Origin: "https://evil.example.org" };
    expect((await fetch(`${service.url}/auth/invitation`, { method: "POST", headers, body })).status).toBe(403);
  });
});

describe("a sample of an invitation", () => {
  const sample = (email: string, url = service.url) =>
    fetch(`${url}/admin/v1/invitations/sample`, {
      method: "POST",
      headers: { ...as(inviter), "Content-Type": "application/json" },
      body: JSON.stringify({ email }),
    });

  test("is sent in HTML and text, creates no account, and its link opens nothing", async () => {
    const email = newEmail();
    expect((await sample(email)).status).toBe(204);
    const link = linkIn(await mailTo(email));
    expect(await (await fetch(link)).text()).toContain("not valid");
    expect(await roleOf(email)).toBeNull();
    expect((await sample("no address")).status).toBe(400);
  });

  test("says why the mail server refuses it, and that there is none", async () => {
    const settings = { STUDIO: "administrators", NODE_ENV: "production" };
    const refusing = await serve(database, {
      ...settings,
      SMTP_URL: "smtp://127.0.0.1:1",
      MAIL_FROM: "a@example.org",
    });
    const without = await serve(database, settings);
    try {
      const refused = await sample(newEmail(), refusing.url);
      const { error } = (await refused.json()) as Json;
      expect([refused.status, error.message]).toEqual([409, expect.stringContaining("ECONNREFUSED")]);
      expect((await sample(newEmail(), without.url)).status).toBe(503);
    } finally {
      await Promise.all([refusing.stop(), without.stop()]);
    }
  });
});

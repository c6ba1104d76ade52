import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { serve, useService } from "../../serve.ts";
import { until } from "../../until.ts";

const PASSWORD = "correct horse Battery 9";
const ABSENT_ID = "83fd9e20-7a80-46e4-bf29-a86e3d6bbf66";

let administrator: Account;
let user: Account;

const database = useDatabase();
const mailDir = useFolder("mail-");
const service = useService({ database, settings: { MAIL_DIR: mailDir, STUDIO: "administrators" } });
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  [administrator, user] = [await createAccount({ role: "admin" }), await createAccount()];
  // The change of the role ended the tokens of this second.
  await until(async () => (await send("GET", "/admin/v1/providers")).status === 200);
});

type Account = { readonly id: string; readonly key: string; readonly email: string };
// biome-ignore lint/suspicious/noExplicitAny: what a route answers is what its test says.
type Json = { readonly [name: string]: any };

const bearer = (claims: object) => {
  const token = jwt.sign(claims, SECRET);
  return { Authorization: `Bearer ${token}`, apikey: token };
};
const asAdministrator = () => bearer({ role: "admin", sub: administrator.key });

async function send(method: string, path: string, headers: Record<string, string> = asAdministrator(), body?: object) {
  const response = await fetch(service.url + path, {
    method,
    headers: { ...headers, ...(body && { "Content-Type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: (text === "" ? null : JSON.parse(text)) as Json };
}

async function createAccount(attributes: object = {}): Promise<Account> {
  const email = `user-${crypto.randomUUID()}@example.org`;
  const headers = bearer({ role: "service_role" });
  const { body } = await send("POST", "/auth/v1/admin/users", headers, {
    email,
    password: PASSWORD,
    email_confirm: true,
    ...attributes,
  });
  const { rows } = await owner.query("select user_id from auth.users where id = $1", [body.id]);
  return { id: body.id, key: rows[0].user_id, email };
}

/** Signs in with a pair of tokens. */
async function signIn({ email }: Account) {
  const { body } = await send("POST", "/auth/v1/token?grant_type=password", bearer({ role: "anon" }), {
    email,
    password: PASSWORD,
  });
  return { accessToken: body.access_token as string, refreshToken: body.refresh_token as string };
}

/** Signs in with a cookie. */
async function signInBrowser({ email }: Account): Promise<string> {
  const response = await fetch(`${service.url}/api/auth/login`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ username: email, password: PASSWORD }),
  });
  return response.headers.getSetCookie()[0]!.split(";", 1)[0]!;
}

const ROUTES = [
  ["GET", "/admin/v1/sessions"],
  ["DELETE", `/admin/v1/sessions?user=${ABSENT_ID}`],
  ["DELETE", `/admin/v1/sessions/${ABSENT_ID}`],
  ["GET", "/admin/v1/user-keys"],
  ["POST", "/admin/v1/invitations"],
  ["POST", "/admin/v1/invitations/sample"],
  ["GET", "/admin/v1/audit-log"],
  ["GET", "/admin/v1/mails"],
  ["GET", "/admin/v1/providers"],
  ["GET", "/admin/v1/sign-in-settings"],
] as const;

describe("people are shown to administrators only:", () => {
  test.each(ROUTES)("%s %s refuses everybody else", async (method, path) => {
    const anonymous = await send(method, path, {});
    const others = [{ role: "authenticated", sub: user.key }, { role: "service_role" }];
    const refused = await Promise.all(others.map((claims) => send(method, path, bearer(claims))));
    expect([anonymous, ...refused].map(({ status, body }) => [status, body.error.code])).toEqual([
      [401, "AUTH_REQUIRED"],
      [403, "PERMISSION_DENIED"],
      [403, "PERMISSION_DENIED"],
    ]);
    const { status, headers } = await send(method, path);
    expect(method === "POST" ? [400] : [200, 404]).toContain(status);
    expect(headers.get("cache-control")).toContain("no-store");
  });
});

describe("the sessions of a user", () => {
  test("are those of browsers and of tokens, without secrets", async () => {
    const account = await createAccount();
    const cookie = await signInBrowser(account);
    const { refreshToken } = await signIn(account);
    const { body } = await send("GET", `/admin/v1/sessions?user=${account.id}`);
    expect(body.sessions.map((each: Json) => [each.kind, each.user.id, each.aal]).sort()).toEqual([
      ["browser", account.id, null],
      ["tokens", account.id, 1],
    ]);
    expect(JSON.stringify(body)).not.toContain(refreshToken);
    expect(JSON.stringify(body)).not.toContain(cookie.split("=")[1]);
    const { body: all } = await send("GET", "/admin/v1/sessions");
    expect(all.sessions).toEqual(expect.arrayContaining(body.sessions));
  });

  test("are not those of others, and an unknown user is 404", async () => {
    const [account, other] = [await createAccount(), await createAccount()];
    await signIn(other);
    expect((await send("GET", `/admin/v1/sessions?user=${account.id}`)).body).toEqual({ sessions: [] });
    expect((await send("GET", `/admin/v1/sessions?user=${ABSENT_ID}`)).status).toBe(404);
    expect((await send("GET", "/admin/v1/sessions?user=1")).status).toBe(404);
  });

  test("end one by one, with a record of who ended them", async () => {
    const account = await createAccount();
    const cookie = await signInBrowser(account);
    const { refreshToken } = await signIn(account);
    const { body } = await send("GET", `/admin/v1/sessions?user=${account.id}`);
    const idOf = (kind: string) => body.sessions.find((each: Json) => each.kind === kind).id;

    expect((await send("DELETE", `/admin/v1/sessions/${idOf("tokens")}`)).status).toBe(204);
    const refreshed = await send("POST", "/auth/v1/token?grant_type=refresh_token", bearer({ role: "anon" }), {
      refresh_token: refreshToken,
    });
    expect(refreshed.status).toBe(400);
    expect((await fetch(`${service.url}/api/auth/me`, { headers: { Cookie: cookie } })).status).toBe(200);
    expect((await send("DELETE", `/admin/v1/sessions/${idOf("browser")}`)).status).toBe(204);
    expect((await fetch(`${service.url}/api/auth/me`, { headers: { Cookie: cookie } })).status).toBe(401);
    expect((await send("DELETE", `/admin/v1/sessions/${idOf("browser")}`)).status).toBe(404);

    const log = await send("GET", `/admin/v1/audit-log?user=${account.id}`);
    const ended = log.body.entries.filter(({ by }: Json) => by?.id === administrator.id);
    expect(ended.map(({ event }: Json) => event)).toEqual(["session.closed", "refresh_token.revoked"]);
    const studio = await send("GET", "/admin/v1/audit-log?event=studio.session_ended");
    expect(studio.body.entries[0]).toMatchObject({
      user: { id: administrator.id },
      details: { session: idOf("browser") },
    });
  });

  test("end all at once", async () => {
    const account = await createAccount();
    await signInBrowser(account);
    await signIn(account);
    expect((await send("DELETE", `/admin/v1/sessions?user=${account.id}`)).status).toBe(204);
    expect((await send("GET", `/admin/v1/sessions?user=${account.id}`)).body).toEqual({ sessions: [] });
    expect((await send("DELETE", "/admin/v1/sessions")).status).toBe(404);
  });
});

describe("the keys of users", () => {
  test("are those by which rows know them, and users are found by either", async () => {
    const { body } = await send("GET", `/admin/v1/user-keys?user=${user.id}&user=${ABSENT_ID}&user=none`);
    const [row] = (await owner.query("select user_id::text from auth.users where id = $1", [user.id])).rows;
    expect(body).toEqual({ keys: { [user.id]: row.user_id } });
    for (const filter of [row.user_id, user.id.toUpperCase(), ` ${row.user_id} `]) {
      const found = await send("GET", `/auth/v1/admin/users?filter=${encodeURIComponent(filter)}`);
      expect(found.body.users.map(({ id }: { id: string }) => id)).toContain(user.id);
    }
  });
});

describe("the audit log", () => {
  test("is read page by page, the newest first", async () => {
    await createAccount();
    const first = (await send("GET", "/admin/v1/audit-log?limit=2")).body;
    const second = (await send("GET", `/admin/v1/audit-log?limit=1&before=${first.next}`)).body;
    const whole = (await send("GET", "/admin/v1/audit-log?limit=3")).body;
    expect(first.entries).toHaveLength(2);
    expect([...first.entries, ...second.entries]).toEqual(whole.entries);
    const { body: all } = await send("GET", "/admin/v1/audit-log?limit=500");
    expect(all.next).toBeNull();
  });

  test("is filtered by event, by the beginning of events, and by time", async () => {
    const account = await createAccount();
    await signIn(account);
    await signInBrowser(account);
    const eventsOf = async (filter: string) => {
      const { body } = await send("GET", `/admin/v1/audit-log?user=${account.id}&${filter}`);
      return body.entries.map(({ event }: Json) => event);
    };
    const all = await eventsOf("");
    expect(all).toContain("session.created");
    expect(await eventsOf("event=session.created")).toEqual(["session.created"]);
    expect(await eventsOf("event=session.")).toEqual(["session.created"]);
    expect(await eventsOf("event=session")).toEqual([]);
    expect(await eventsOf("from=2020-01-01")).toEqual(all);
    expect(await eventsOf("to=2020-01-01")).toEqual([]);
  });

  test.each(["before=x", "before=-1", "limit=0", "from=yesterday", "to=x", "event=%00", "event=a%20b"])(
    "refuses the parameter %s",
    async (parameter) => {
      const { status, body } = await send("GET", `/admin/v1/audit-log?${parameter}`);
      expect([status, body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
    },
  );
});

describe("e-mails of development", () => {
  test("are listed with their links, the newest first", async () => {
    const account = await createAccount();
    const sent = await send("POST", "/auth/v1/recover", bearer({ role: "anon" }), { email: account.email });
    expect(sent.status).toBe(200);
    const mailsToAccount = async () => {
      const { body } = await send("GET", "/admin/v1/mails");
      return body.mails.filter(({ to }: Json) => to === account.email);
    };
    await until(async () => (await mailsToAccount()).length > 0);
    const [newest] = await mailsToAccount();
    expect(newest).toMatchObject({ to: account.email, subject: "Set a new password" });
    expect(newest.text).toMatch(/https?:\/\/\S+token=/);
  });

  test("are not kept in production", async () => {
    const production = await serve(database, { MAIL_DIR: mailDir, NODE_ENV: "production", STUDIO: "administrators" });
    try {
      await fetch(`${production.url}/auth/v1/recover`, {
        method: "POST",
        headers: { ...bearer({ role: "anon" }), "Content-Type": "application/json" },
        body: JSON.stringify({ email: administrator.email }),
      });
      const response = await fetch(`${production.url}/admin/v1/mails`, { headers: asAdministrator() });
      expect(await response.json()).toEqual({ kept: false, mails: [] });
    } finally {
      await production.stop();
    }
  });
});

describe("identity providers", () => {
  test("are listed without secrets, disabled ones too", async () => {
    await owner.query(
      `insert into auth.providers (name, kind, issuer, client_id, client_secret, enabled)
        values ('acme', 'oidc', 'https://acme.example', 'a-client', 'sealed:secret-value', false)`,
    );
    const { body } = await send("GET", "/admin/v1/providers");
    expect(body.providers).toMatchObject([
      { name: "acme", kind: "oidc", client_id: "a-client", enabled: false, identities: 0 },
    ]);
    expect(JSON.stringify(body)).not.toContain("secret-value");
  });
});

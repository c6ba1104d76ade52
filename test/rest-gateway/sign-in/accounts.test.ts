import jwt from "jsonwebtoken";
import { generate } from "otplib";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { cloneDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { Wire } from "../../graphql/server/socket/wire.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { newFactor, newPerson, openGateways, PASSWORD, type Person } from "./gateways.ts";

const ADMIN = { ADMIN_EMAIL: "root@example.org", ADMIN_PASSWORD: "Obsidian-Ladder-4" };
const gateways = useFixture(() => openGateways({ settings: ADMIN }));

const at = (path: string) => `${gateways.one.url}${path}`;

/** Each asks as the user of that token. */
const INTERFACES = {
  tables: async (token: string) => {
    const apikey = jwt.sign({ role: "anon" }, SECRET);
    return (await gateways.get(at("/rest/v1/users?select=id&limit=1"), { token, headers: { apikey } })).status === 200;
  },
  GraphQL: async (token: string) => {
    const { body } = await gateways.post(at("/graphql"), { query: "{ me { id } }" }, { token });
    return body.errors === undefined;
  },
  "sign-in": async (token: string) => {
    return (await gateways.post(at("/api/mfa/enable"), undefined, { token })).status === 200;
  },
};

describe("a token of a disabled or deleted user", () => {
  test.each(Object.entries(INTERFACES))("is invalid when the account is checked again: %s", async (_name, isGood) => {
    const users = [await newPerson(gateways), await newPerson(gateways)];
    for (const { pair } of users) expect(await isGood(pair.accessToken)).toBe(true);
    await gateways.owner.query("select auth.disable_account($1, null)", [users[0]!.userId]);
    await gateways.owner.query("delete from public.users where id = $1", [users[1]!.userId]);
    for (const { pair } of users) await until(async () => !(await isGood(pair.accessToken)));
  });

  test.each(["graphql-transport-ws", "graphql-ws"])(
    "is invalid when the account is checked again: a socket of %s",
    async (protocol) => {
      const [ada, eve] = [await newPerson(gateways), await newPerson(gateways)];
      const open = async ({ pair }: Person) => {
        const wire = await Wire.open(at("/graphql").replace(/^http/, "ws"), protocol);
        wire.say({ type: "connection_init", payload: { Authorization: `Bearer ${pair.accessToken}` } });
        await wire.hear();
        return wire;
      };
      const [wire, other] = [await open(ada), await open(eve)];
      await gateways.owner.query("select auth.disable_account($1, null)", [ada.userId]);
      expect(await wire.closed()).toEqual({ code: 4403, reason: "Token expired" });
      expect(other.socket.readyState).toBe(WebSocket.OPEN);
      other.close();
    },
  );

  test("is refused with the reason", async () => {
    const { pair, userId } = await newPerson(gateways);
    await gateways.owner.query("select auth.disable_account($1, null)", [userId]);
    const result = await gateways.post(at("/auth/logout"), undefined, { token: pair.accessToken });
    expect(result).toMatchObject({ status: 401, body: { error: { code: "INVALID_TOKEN" } } });
    expect(result.headers.get("www-authenticate")).toContain("The account is disabled");
  });

  test("another issuer that shares the keys may use any subject", async () => {
    const token = jwt.sign({ sub: "stranger", role: "authenticated" }, SECRET);
    expect(await INTERFACES.tables(token)).toBe(true);
  });
});

describe("the first administrator", () => {
  test("is created at the first start, once for all gateways", async () => {
    const { rows } = await gateways.owner.query(
      "select username from auth.users join auth.user_roles using (user_id) where role = 'admin'",
    );
    expect(rows).toEqual([{ username: ADMIN.ADMIN_EMAIL }]);
    const login = { username: ADMIN.ADMIN_EMAIL, password: ADMIN.ADMIN_PASSWORD };
    const { body } = await gateways.post(at("/auth/login"), login);
    expect(jwt.decode(body.accessToken)).toMatchObject({ role: "admin" });
  });

  test("with a weak password prevents the start, with the reason", async () => {
    const database = await cloneDatabase();
    await expect(serve(database, { ...ADMIN, ADMIN_PASSWORD: "short" })).rejects.toThrow(
      /^ADMIN_PASSWORD: .*8 characters/,
    );
    await database.drop();
  });
});

test("a new signing secret is used for new tokens", async () => {
  const changing = await openGateways();
  const secret = "another secret that is long enough to sign with";
  try {
    const { email } = await newPerson(changing);
    const { rows } = await changing.owner.query<{ name: string }>("select current_database() as name");
    await changing.owner.query(`
      alter role authenticator in database ${rows[0]!.name} set pgrst.jwt_secret = ${pg.escapeLiteral(secret)};
      notify pgrst, 'reload config'`);
    const login = async () => {
      const { body } = await changing.post(`${changing.one.url}/auth/login`, { username: email, password: PASSWORD });
      return body.accessToken as string;
    };
    await until(async () => isSignedBy(secret, await login()));
    const result = await changing.post(`${changing.one.url}/auth/logout`, undefined, { token: await login() });
    expect(result.status).toBe(200);
  } finally {
    await changing.close();
  }
});

function isSignedBy(secret: string, token: string): boolean {
  try {
    return Boolean(jwt.verify(token, secret));
  } catch {
    return false;
  }
}

test("a database without accounts has no sign-in routes, which is logged once", async () => {
  const without = await openGateways({ template: "empty" });
  try {
    for (const path of ["/auth/login", "/api/auth/login", "/api/mfa/enable", "/auth/register"]) {
      expect((await without.post(`${without.one.url}${path}`, {})).status).toBe(404);
    }
    expect((await without.get(`${without.one.url}/health`)).status).toBe(200);
    const result = without.logged().match(/nobody can sign in/g);
    // Each of the two gateways has one.
    expect(result).toHaveLength(2);
  } finally {
    await without.close();
  }
});

test("logs and errors contain no secrets", async () => {
  const { email, pair } = await newPerson(gateways);
  const { post, get } = gateways;
  const token = pair.accessToken;
  const key = "key_that-nobody-ever-made-0123456789abcdef";
  const { secret, code, backupCodes } = await newFactor(gateways, token);
  const next = await generate({ secret, epoch: Math.floor(Date.now() / 1000) + 30 });
  const login = (password: string, more = {}) => ({ username: email, password, ...more });
  const session = await post(at("/api/auth/login"), login(PASSWORD, { code: next }));
  const cookie = session.headers.get("set-cookie")!.split(/[=;]/)[1]!;
  const csrf = (await get(at("/csrf-token"), { headers: { Cookie: `SESSION=${cookie}` } })).body.csrfToken;
  await post(at("/auth/forgot-password"), { email });
  const links = await Promise.all(
    ["Set a new password", "Confirm your e-mail address"].map((about) => gateways.linkIn({ to: email, about })),
  );
  const mailTokens = links.map(({ searchParams }) => searchParams.get("token")!);
  const opened = await Promise.all(links.map((link) => get(link.href)));
  for (const { status } of opened) expect(status).toBe(200);
  const pending = await fetch(at("/auth/sign-in"), {
    method: "POST",
    redirect: "manual",
    body: new URLSearchParams(login(PASSWORD)),
  });
  const half = pending.headers.get("set-cookie")!.split(/[=;]/)[1]!;
  const root = await post(at("/auth/login"), { username: ADMIN.ADMIN_EMAIL, password: ADMIN.ADMIN_PASSWORD });
  const made = await post(at("/auth/keys"), { role: "anon" }, { token: root.body.accessToken });
  expect((await get(at(`/rest/v1/users?limit=1&apikey=${made.body.key}`))).status).toBeLessThan(500);
  expect((await get(at(`/api/auth/me?api_key=${made.body.key}`))).status).toBe(401);

  const refusals = [
    await post(at("/auth/login"), login("Wrong-Boat-7")),
    await post(at("/auth/login"), login(PASSWORD)),
    await post(at("/auth/login"), login(PASSWORD, { code: backupCodes[0]!.replace(/./, "!") })),
    await post(at("/auth/login"), `{"password":"${PASSWORD}",}`, { headers: { "Content-Type": "application/json" } }),
    await post(at("/auth/register"), { name: "Eve", email, password: PASSWORD }),
    await post(at("/auth/register"), { name: "", email, password: "secretive" }),
    await post(at("/auth/refresh"), { refreshToken: `${pair.refreshToken}x` }),
    await post(at("/auth/logout"), undefined, { token: `${token}x` }),
    await post(at(`/auth/logout?api_key=${key}`)),
    await post(at("/auth/logout"), undefined, { headers: { "X-API-Key": key } }),
    await post(at("/api/auth/logout"), undefined, { headers: { Cookie: `SESSION=${cookie}` } }),
    await post(at(`/api/mfa/verify?code=${code}`), undefined, { token }),
    await post(at(`/api/mfa/disable?code=${code}`), undefined, { token }),
    await get(at("/api/auth/me"), { headers: { Cookie: `SESSION=${cookie}x` } }),
    await post(at("/auth/verify-email"), { token: `${mailTokens[1]}x` }),
    await post(at("/auth/reset-password"), { token: mailTokens[0], password: "secretive" }),
    await post(at("/auth/keys"), { role: "postgres" }, { token: root.body.accessToken }),
  ];
  for (const { status } of refusals) expect(status).toBeGreaterThanOrEqual(400);

  const { rows } = await gateways.owner.query<{ hash: string }>(
    "select password_hash as hash from auth.users union all select code_hash from auth.mfa_backup_codes",
  );
  const hashes = rows.map(({ hash }) => hash.split("$").at(-1)!);
  const secrets = [
    PASSWORD,
    "Wrong-Boat-7",
    "secretive",
    ADMIN.ADMIN_PASSWORD,
    token,
    pair.refreshToken,
    key,
    cookie,
    csrf,
  ];
  const result = [gateways.logged(), ...refusals.map(({ text }) => text)].join("\n");
  const further = [...mailTokens, half, made.body.key, root.body.accessToken, root.body.refreshToken];
  for (const each of [...secrets, ...further, ...hashes, ...backupCodes, secret, SECRET])
    expect(result).not.toContain(each);
  for (const each of [code, next]) expect(result).not.toMatch(new RegExp(`\\b${each}\\b`));
  expect(gateways.logged()).toContain('"path":"/auth/login"');
});

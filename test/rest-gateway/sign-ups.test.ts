import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { ACCOUNT_SETTINGS } from "../../config/interface-settings.ts";
import type { Service } from "../../service/wiring/service.ts";
import { useFixture } from "../fixture.ts";
import { newAddress as newClient } from "../new-address.ts";
import { REPOSITORY, serviceFiles } from "../repository.ts";
import { serve } from "../serve.ts";
import { ANON_KEY, newAddress, PASSWORD } from "./sign-in/auth-v1/auth-client.ts";
import { openFederatedGateways, SITE } from "./sign-in/federated-gateways.ts";
import { openSignUpProviders, SERVICE_KEY, SIGN_UP_WAYS, type SignUpRequest, type SignUpWay } from "./sign-up-ways.ts";

/** With these, each way creates a user. */
const OPEN: NodeJS.ProcessEnv = {
  AUTH_AUTOCONFIRM: "true",
  AUTH_ANONYMOUS_SIGN_INS: "true",
  USERS_ACCESS: "owner",
  SMS_WEBHOOK_URL: "http://127.0.0.1:9/",
  SMS_WEBHOOK_SECRET: `v1,whsec_${Buffer.alloc(32, 7).toString("base64")}`,
};
const STRICT_FAULT = "Ab3456789";
const service = { apikey: SERVICE_KEY, Authorization: `Bearer ${SERVICE_KEY}` };

/** The token of a user who was there before. */
let token: string;

const gateways = useFixture(() => openFederatedGateways(OPEN));
const providers = useFixture(openSignUpProviders);
beforeAll(async () => {
  await providers.addTo(gateways);
  const account = { email: newAddress(), password: PASSWORD, email_confirm: true };
  const created = await gateways.post(`${gateways.one.url}/auth/v1/admin/users`, account, { headers: service });
  expect(created.status).toBe(200);
  const login = { username: account.email, password: PASSWORD };
  token = (await gateways.post(`${gateways.one.url}/auth/login`, login)).body.accessToken;
  await gateways.owner.query(`
    create function public.add_claims(event jsonb) returns jsonb language sql
      return jsonb_set(event, '{claims,hook}', 'true');
    grant usage on schema public to supabase_auth_admin;
    grant execute on function public.add_claims to supabase_auth_admin`);
});

type Outcome = {
  readonly status: number;
  readonly isCreated: boolean;
  /** True if the address of the account counts as proved; null without one. */
  readonly isProved: boolean | null;
  /** The claims of the access token in the response. */
  readonly claims: Readonly<Record<string, unknown>> | null;
};

const COUNT = "select ((select count(*) from public.users) + (select count(*) from auth.users))::integer as n";
const IS_PROVED = `
  select verified_email is not null or phone_confirmed_at is not null as "isProved" from auth.users where user_id > $1
  order by user_id desc limit 1`;

/** Signs up at a gateway, and returns the response with the account that it leaves. */
async function tryWay(url: string, way: SignUpWay, sent: Partial<SignUpRequest> = {}): Promise<Outcome> {
  const { owner } = gateways;
  const count = async () => (await owner.query<{ n: number }>(COUNT)).rows[0]!.n;
  const { last } = (await owner.query("select coalesce(max(user_id), 0) as last from auth.users")).rows[0]!;
  const before = await count();
  const base = { providers, url, email: newAddress(), password: PASSWORD, from: newClient(), token };
  const { status, accessToken } = await way.send({ ...base, ...sent });
  const { rows } = await owner.query<{ isProved: boolean }>(IS_PROVED, [last]);
  const claims = accessToken === null ? null : readClaims(accessToken);
  return { status, isCreated: (await count()) > before, isProved: rows[0]?.isProved ?? null, claims };
}
const readClaims = (accessToken: string) => JSON.parse(Buffer.from(accessToken.split(".")[1]!, "base64url").toString());

/** Runs `use` with another gateway on the same database. */
async function withSettings<T>(settings: NodeJS.ProcessEnv, use: (url: string) => Promise<T>): Promise<T> {
  const base = {
    RATE_LIMIT: "6000",
    TRUST_PROXY: "loopback",
    BASE_SCHEMA: "content",
    PUBLIC_URL: SITE,
    MAIL_DIR: gateways.mailDir,
  };
  const other: Service = await serve(gateways.database, { ...base, ...OPEN, ...settings });
  try {
    return await use(other.url);
  } finally {
    await other.stop();
    // The last start decides whether sign-ups are open.
    await gateways.owner.query("select auth.set_account_settings(true)");
  }
}

const WAYS = Object.entries(SIGN_UP_WAYS);
const isRefused = ({ status, isCreated }: Outcome) => status >= 400 && status < 500 && !isCreated;
const isDone = ({ status, isCreated }: Outcome) => status < 400 && isCreated;

/** Tries each way with a setting, and returns those for which `expected` does not hold. */
async function exceptions(
  settings: NodeJS.ProcessEnv,
  expected: (way: SignUpWay, outcome: Outcome) => boolean,
  sent: Partial<SignUpRequest> = {},
): Promise<unknown[]> {
  return withSettings(settings, async (url) => {
    const found: unknown[] = [];
    for (const [name, way] of WAYS) {
      const outcome = await tryWay(url, way, sent);
      if (!expected(way, outcome)) found.push([name, outcome]);
    }
    return found;
  });
}

/**
 * The outcomes of each setting that decides about new accounts, by the properties of a way. A way that a setting does
 * not concern creates a user as without it.
 */
const RULES: Readonly<
  Record<
    string,
    {
      readonly settings: NodeJS.ProcessEnv;
      readonly sent?: Partial<SignUpRequest>;
      readonly expected: (way: SignUpWay, outcome: Outcome) => boolean;
    }
  >
> = {
  "the settings under which all is open": { settings: {}, expected: (_, outcome) => isDone(outcome) },
  "AUTH_SIGN_UPS=false": {
    settings: { AUTH_SIGN_UPS: "false" },
    expected: ({ by }, outcome) => (by === "server" ? isDone(outcome) : isRefused(outcome)),
  },
  "PASSWORD_POLICY=strict": {
    settings: { PASSWORD_POLICY: "strict" },
    sent: { password: STRICT_FAULT },
    expected: ({ takesPassword }, outcome) => (takesPassword ? isRefused(outcome) : isDone(outcome)),
  },
  "AUTH_ANONYMOUS_SIGN_INS=false": {
    settings: { AUTH_ANONYMOUS_SIGN_INS: "false" },
    expected: ({ isAnonymous }, outcome) => (isAnonymous ? isRefused(outcome) : isDone(outcome)),
  },
  "AUTH_AUTOCONFIRM=false": {
    settings: { AUTH_AUTOCONFIRM: "false" },
    // Only a provider vouches for an address without a mail.
    expected: ({ takesPassword, isRow }, outcome) =>
      isDone(outcome) && !(takesPassword && outcome.isProved) && !(isRow && outcome.isProved !== null),
  },
  "CLAIMS_HOOK, JWT_ISSUER, JWT_AUDIENCE and AUTH_SUBJECT": {
    settings: {
      ...{ CLAIMS_HOOK: "public.add_claims", JWT_ISSUER: "https://issuer.example", JWT_AUDIENCE: "authenticated" },
      AUTH_SUBJECT: "uuid",
    },
    sent: { token: "" },
    expected: ({ by }, { claims, ...outcome }) =>
      by === "user" ||
      (outcome.isCreated && (claims === null || (claims.hook === true && claims.iss === "https://issuer.example"))),
  },
};

describe("each way to create a user", () => {
  test.each(Object.entries(RULES))("obeys %s", async (_, { settings, expected, sent }) => {
    expect(await exceptions(settings, expected, sent)).toEqual([]);
  });

  test("counts against SIGN_UP_LIMIT of the client's address, signed in or not, unless a server uses it", async () => {
    const found = await withSettings({ SIGN_UP_LIMIT: "1" }, async (url) => {
      const all: unknown[] = [];
      for (const [name, way] of WAYS) {
        const from = newClient();
        const outcomes = [await tryWay(url, way, { from }), await tryWay(url, way, { from })];
        const isExpected = isDone(outcomes[0]!) && (way.by === "server" ? isDone : isLimited)(outcomes[1]!);
        if (!isExpected) all.push([name, ...outcomes]);
      }
      return all;
    });
    expect(found).toEqual([]);
  });
});
const isLimited = ({ status, isCreated }: Outcome) => status === 429 && !isCreated;

test("further sign-ins of an identity do not count against SIGN_UP_LIMIT", async () => {
  await withSettings({ SIGN_UP_LIMIT: "1" }, async (url) => {
    const [from, email] = [newClient(), newAddress()];
    for (const name of [
      "a sign-in with an ID token",
      "a sign-in through SAML",
      "a sign-in through /auth/v1/authorize",
    ]) {
      const statuses: number[] = [];
      for (let turn = 0; turn < 3; turn++) {
        const sent = { from: turn === 0 ? newClient() : from, email: `${name.length}${email}` };
        statuses.push((await tryWay(url, SIGN_UP_WAYS[name]!, sent)).status);
      }
      expect([name, ...statuses.map((status) => status < 400)]).toEqual([name, true, true, true]);
    }
  });
});

const anonymous = { apikey: ANON_KEY };
/** Requests that are answered alike, whether or not they create an account, which they do after the response. */
const SILENT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "/auth/v1/otp": anonymous,
  "/auth/v1/magiclink": anonymous,
  "/auth/forgot-password": {},
  "/auth/v1/recover": anonymous,
};

describe("with AUTH_SIGN_UPS=false", () => {
  test("no way to create a user tells whether the address is taken", async () => {
    await withSettings({ AUTH_SIGN_UPS: "false" }, async (url) => {
      const taken = newAddress();
      await gateways.post(`${url}/auth/v1/admin/users`, { email: taken, email_confirm: true }, { headers: service });
      const found: unknown[] = [];
      for (const [name, way] of WAYS.filter(([, { by, isAnonymous }]) => by !== "server" && !isAnonymous)) {
        // A provider vouches for the address, and signs its owner in.
        if (/ID token|SAML|authorize|OpenID|provider/i.test(name)) continue;
        const free = newAddress();
        const answers = [];
        for (const email of [taken, free]) {
          const base = { providers, url, email, password: PASSWORD, from: newClient(), token };
          const { status, text } = await way.send(base);
          answers.push([status, text.replaceAll(email, "").replace(/"(requestId|timestamp)":"[^"]+"/g, "")]);
        }
        if (JSON.stringify(answers[0]) !== JSON.stringify(answers[1])) found.push([name, ...answers]);
      }
      expect(found).toEqual([]);
    });
  });

  test.each(Object.entries(SILENT))("POST %s creates no user", async (path, headers) => {
    await withSettings({ AUTH_SIGN_UPS: "false" }, async (url) => {
      const count = async () => (await gateways.owner.query<{ n: number }>(COUNT)).rows[0]!.n;
      const before = await count();
      expect([200, 202]).toContain((await gateways.post(`${url}${path}`, { email: newAddress() }, { headers })).status);
      // The queue of mails sends one after the other.
      const known = newAddress();
      await gateways.post(`${url}/auth/v1/admin/users`, { email: known, email_confirm: true }, { headers: service });
      expect((await gateways.post(`${url}/auth/v1/otp`, { email: known }, { headers: anonymous })).status).toBe(200);
      await gateways.mailTo({ to: known, about: "Your sign-in link" });
      expect(await count()).toBe(before + 2);
    });
  });
});

describe("the list of ways to create users", () => {
  test("has all functions of the database that insert users", async () => {
    const { rows } = await gateways.owner.query(`
      select n.nspname || '.' || p.proname as name
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where p.prosrc ~ 'insert into (public|auth)\\.users\\M' or p.prosrc ~ 'auth\\.(register|insert_user|create_account|add_account)\\('
      order by name`);
    expect(rows.map(({ name }) => name)).toEqual([
      "auth.add_account", // operators
      "auth.code_recipient", // of a row that exists
      "auth.create_account", // administrators
      "auth.ensure_administrator", // the operator's settings
      "auth.federated_user", // asks auth.accepts_sign_ups
      "auth.import_account", // operators
      "auth.insert_user", // of auth.register
      "auth.register", // of the functions here
      "auth.reset_password", // of a row that exists
      "auth.sign_up", // asks auth.accepts_sign_ups
      "public.create_user", // policy insert_open
    ]);
  });

  test("has all roles that may insert users, by a policy that asks whether sign-ups are open", async () => {
    const { rows } = await gateways.owner.query(`
      select policyname, roles::text[], with_check ~ 'users_are_open' as asks from pg_policies
      where schemaname = 'public' and tablename = 'users' and cmd in ('INSERT', 'ALL') order by policyname`);
    expect(rows).toEqual([
      { policyname: "admin_all", roles: ["admin"], asks: false },
      { policyname: "insert_open", roles: ["anon", "authenticated"], asks: true },
    ]);
  });

  test("has all statements of the service that create accounts", async () => {
    const found: string[] = [];
    for (const name of serviceFiles()) {
      const text = await readFile(join(REPOSITORY, name), "utf8");
      for (const [, called] of text.matchAll(/auth\.(register|sign_up|create_account|add_account|import_account)\(/g))
        found.push(`${name} ${called}`);
    }
    expect(found.sort()).toEqual([
      "accounts/administration.ts add_account",
      "accounts/administration.ts create_account",
      "accounts/code-emails.ts sign_up",
      "accounts/import-accounts.ts import_account",
      "accounts/registration.ts sign_up",
    ]);
  });

  test("knows each setting of accounts", () => {
    expect(Object.keys(ACCOUNT_SETTINGS).filter((name) => !(name in SETTINGS_BY_RULE))).toEqual([]);
  });
});

/** The ways to which each setting applies. A new one needs a row, and tests for every interface that it concerns. */
const SETTINGS_BY_RULE: Readonly<Record<string, string>> = {
  signUps: "all of SIGN_UPS, SIGNED_IN and SILENT",
  passwordPolicy: "all with a password; changes of one: test/rest-gateway/sign-in/password-changes.test.ts",
  autoConfirm: "sign-ups by /auth/v1 and /auth: test/rest-gateway/sign-in/auth-v1/accounts.test.ts",
  anonymousSignIns: "POST /auth/v1/signup without credentials: test/rest-gateway/sign-in/auth-v1/accounts.test.ts",
  usersAccess: "test/journeys/security-matrix.test.ts",
  manualLinking: "the linking of /auth/v1: test/rest-gateway/sign-in/auth-v1/providers.test.ts",
  aal1Access: "tokens of /auth/v1: test/rest-gateway/sign-in/auth-v1/factors.test.ts",
  passwordReauthentication: "PUT /auth/v1/user: test/rest-gateway/sign-in/auth-v1/mail.test.ts",
  signInRedirects: "links and federated sign-ins: test/rest-gateway/sign-in/auth-v1/mail.test.ts",
  claimsHook: "each access token: test/accounts/claims-hook.test.ts",
  adminEmail: "the first administrator",
  adminPassword: "the first administrator",
  webauthnRpId: "passkeys: test/rest-gateway/sign-in/auth-v1/passkeys.test.ts",
  webauthnOrigins: "passkeys: test/rest-gateway/sign-in/auth-v1/passkeys.test.ts",
  jwtSecret: "tokens",
  jwtSecretIsBase64: "tokens",
  jwtPrivateKey: "tokens",
  jwtPreviousSecrets: "tokens",
  jwtPreviousPublicKeys: "tokens",
  jwtKeySetUrl: "tokens",
  jwtIssuer: "tokens",
  jwtAudience: "tokens",
  jwtRoleClaim: "tokens",
  jwtCacheEntries: "tokens",
  authSubject: "tokens",
};

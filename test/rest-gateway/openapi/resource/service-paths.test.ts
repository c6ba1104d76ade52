import { pino } from "pino";
import { beforeAll, describe, expect, test } from "vitest";
import { makeAccounts } from "../../../../accounts/accounts.ts";
import { encryptHint, issueCode } from "../../../../accounts/federation/federated-sign-in.ts";
import { makeFederation } from "../../../../accounts/federation/federation.ts";
import { makeAuthenticator } from "../../../../accounts/identity/authenticator.ts";
import { makeTokenKeys } from "../../../../accounts/identity/token-keys.ts";
import { digestOf, generateSecret } from "../../../../accounts/random-secrets.ts";
import { readConfig } from "../../../../config/config.ts";
import { makeCsrfProtection } from "../../../../http/csrf-protection.ts";
import { makeExpensiveRequestLimit, makeSignUpLimit } from "../../../../http/limits.ts";
import { makeRenderPage } from "../../../../rest-gateway/pages/page.ts";
import { authPathPrefixes, authRoutes } from "../../../../rest-gateway/sign-in/auth-routes.ts";
import { keySetRoutes } from "../../../../rest-gateway/sign-in/key-routes.ts";
import { makeOAuthStore } from "../../../../rest-gateway/sign-in/oauth/oauth-store.ts";
import { commonRoutes, signInRoutes, signOutRoutes } from "../../../../rest-gateway/sign-in/provider-routes.ts";
import { lender } from "../../../accounts/open-accounts.ts";
import { useFixture } from "../../../fixture.ts";
import { SECRET } from "../../../secret.ts";
import { openFederatedGateways, SITE } from "../../sign-in/federated-gateways.ts";
import { newPerson, newSession, type Sent } from "../../sign-in/gateways.ts";
import { type ReadDocument, readDocument } from "./operations.ts";

const ADMIN = { ADMIN_EMAIL: "root@example.org", ADMIN_PASSWORD: "Obsidian-Ladder-4" };
const AT = /^\/(auth|api\/auth|api\/mfa|csrf-token|\.well-known)(\/|$)/;

/** Routes that show a page, redirect a browser, or speak the protocol of a provider: programs that read JSON do not call them. */
const FOR_BROWSERS = [
  "GET /auth/account",
  "POST /auth/account",
  "GET /auth/account/address",
  "POST /auth/account/address",
  "GET /auth/account/authenticator",
  "POST /auth/account/authenticator",
  "GET /auth/account/backup-codes",
  "POST /auth/account/backup-codes",
  "GET /auth/account/keys",
  "POST /auth/account/keys",
  "POST /auth/account/keys/revoke",
  "GET /auth/account/passkeys",
  "POST /auth/account/passkeys",
  "GET /auth/account/passkeys/edit",
  "POST /auth/account/passkeys/edit",
  "GET /auth/account/password",
  "POST /auth/account/password",
  "POST /auth/account/providers/link",
  "POST /auth/account/providers/unlink",
  "POST /auth/account/sign-ins",
  "POST /auth/account/verification",
  "GET /auth/change-address",
  "POST /auth/change-address",
  "GET /auth/confirm-address",
  "POST /auth/confirm-address",
  "GET /auth/forgotten-password",
  "POST /auth/forgotten-password",
  "GET /auth/invitation",
  "POST /auth/invitation",
  "GET /auth/new-password",
  "POST /auth/new-password",
  "GET /auth/sign-in",
  "POST /auth/sign-in",
  "GET /auth/sign-in/code",
  "POST /auth/sign-in/code",
  "GET /auth/sign-in/passkey",
  "POST /auth/sign-in/passkey",
  "GET /auth/sign-out",
  "POST /auth/sign-out",
  "GET /auth/sign-up",
  "POST /auth/sign-up",
  "GET /auth/providers/code",
  "GET /auth/providers/{name}/callback",
  "POST /auth/providers/{name}/callback",
  "GET /auth/providers/{name}/metadata",
  "GET /auth/providers/{name}/sign-in",
  "GET /auth/providers/{name}/signed-out",
  "POST /auth/providers/{name}/signed-out",
];

let document: ReadDocument;
const gateways = useFixture(() => openFederatedGateways(ADMIN));
beforeAll(async () => {
  document = readDocument((await gateways.get(at("/openapi.json"))).body);
  await gateways.addProvider({
    name: "example",
    kind: "oauth2",
    issuer: "https://provider.example.org",
    clientId: "content-service",
    settings: {
      authorization_endpoint: "https://provider.example.org/authorize",
      token_endpoint: "https://provider.example.org/token",
      userinfo_endpoint: "https://provider.example.org/user",
    },
  });
});

const at = (path: string) => `${gateways.one.url}${path}`;

/** Returns all addresses of the sign-in, as the service mounts them. */
function mountedAddresses(): string[] {
  const { config } = readConfig({ JWT_SECRET: SECRET, DATABASE_URL: gateways.database.url });
  const keys = makeTokenKeys(config);
  const siteUrl = () => SITE;
  const asOwner = lender(gateways.owner);
  const accounts = makeAccounts({ asOwner, keys, config, siteUrl });
  const options = {
    accounts,
    federation: makeFederation({
      ...{ ...accounts, asOwner, keys, config, siteUrl, limitSignUps: makeSignUpLimit(null) },
      log: pino({ level: "silent" }),
    }),
    authenticator: makeAuthenticator({ ...config, keys }),
    catalog: (): never => {
      throw new Error("The routes are only listed.");
    },
    config,
    siteUrl,
    limitExpensive: makeExpensiveRequestLimit(makeSignUpLimit(null)),
    oauthStore: makeOAuthStore(asOwner),
    studioPath: null,
  };
  const services = { ...options, csrf: makeCsrfProtection(config), render: makeRenderPage({ formTargets: [] }) };
  const inFolders: Readonly<Record<string, readonly string[]>> = {
    "/auth/keys": ["", "/{id}"],
    "/auth/providers": [
      ...Object.keys(commonRoutes(services)).map((name) => (name === "" ? "" : `/${name}`)),
      ...Object.keys({ ...signInRoutes(services), ...signOutRoutes(services) }).map((name) => `/{name}/${name}`),
    ],
  };
  const folders = Object.keys(authPathPrefixes(options));
  expect(folders.sort()).toEqual(Object.keys(inFolders).sort());
  return [
    ...Object.keys({ ...authRoutes(options), ...keySetRoutes(keys) }),
    ...folders.flatMap((folder) => inFolders[folder]!.map((rest) => `${folder}${rest}`)),
  ];
}

async function methodsAt(address: string): Promise<string[]> {
  const { status, headers } = await gateways.get(at(address.replace("{id}", "1").replace("{name}", "example")), {
    method: "OPTIONS",
  });
  expect([address, status]).toEqual([address, 204]);
  return headers
    .get("allow")!
    .split(", ")
    .filter((method) => method !== "HEAD" && method !== "OPTIONS");
}

/** Sends a request like a program that has read the document, and expects the answer that the document describes. */
async function call(
  id: string,
  sent: Sent & { readonly body?: object; readonly in?: Readonly<Record<string, unknown>> } = {},
) {
  const operation = document.operations.find((each) => each.id === id)!;
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name) => String(sent.in?.[name]));
  const response = await gateways.post(at(path), sent.body, { ...sent, method: operation.method });
  const contentType = response.headers.get("content-type");
  expect(document.judge(operation, { status: response.status, contentType, text: response.text })).toBeNull();
  return response;
}

describe("the document of the sign-in routes", () => {
  test("has each operation of the service, except those of browsers", async () => {
    const mounted: string[] = [];
    for (const address of mountedAddresses()) {
      mounted.push(...(await methodsAt(address)).map((method) => `${method} ${address}`));
    }
    const documented = document.operations
      .filter(({ path }) => AT.test(path))
      .map(({ method, path }) => `${method} ${path}`);
    expect(mounted.every((operation) => AT.test(operation.split(" ")[1]!))).toBe(true);
    expect([...documented, ...FOR_BROWSERS].sort()).toEqual(mounted.sort());
  });

  test("describes the responses about API keys to an administrator", async () => {
    const { body: pair } = await call("auth.login", {
      body: { username: ADMIN.ADMIN_EMAIL, password: ADMIN.ADMIN_PASSWORD },
    });
    const token = pair.accessToken;
    const key = { role: "authenticated", name: "backup", expires: "2100-01-01T00:00:00Z" };
    const made = await call("apiKeys.create", { token, body: key });
    expect(made.status).toBe(201);
    expect((await call("apiKeys.create", { token, body: { role: "authenticated", owner: 987_654 } })).status).toBe(404);
    expect((await call("apiKeys.revoke", { token, in: { id: made.body.id } })).status).toBe(204);
    expect((await call("apiKeys.revoke", { token, in: { id: made.body.id } })).status).toBe(404);
    expect((await call("apiKeys.list", { token })).body.keys).toHaveLength(1);
    expect((await call("apiKeys.list")).status).toBe(401);
    const { pair: other } = await newPerson(gateways);
    expect((await call("apiKeys.list", { token: other.accessToken })).status).toBe(403);
  });

  test("describes the responses about sign-in providers to applications", async () => {
    expect((await call("identityProviders.list")).body.providers).toHaveLength(1);
    const { email, userId, pair } = await newPerson(gateways);
    const example = { in: { name: "example" } };

    const linking = await call("identityProviders.link", { ...example, token: pair.accessToken });
    expect(linking.body.address).toContain("https://provider.example.org/authorize");
    const unknown = { token: pair.accessToken, in: { name: "unknown" } };
    expect((await call("identityProviders.link", unknown)).status).toBe(404);

    const code = await lender(gateways.owner)((client) => issueCode(client, String(userId), null));
    expect((await call("identityProviders.exchange", { body: { code } })).status).toBe(200);
    expect((await call("identityProviders.exchange", { body: { code } })).status).toBe(400);

    const headers = await newSession(gateways, email);
    expect((await call("identityProviders.signOut", { ...example, headers: { Cookie: headers.Cookie } })).status).toBe(
      403,
    );
    expect((await call("identityProviders.signOut", { ...example, headers })).status).toBe(200);
    expect((await call("identityProviders.signOut", { ...example, headers })).status).toBe(401);

    const browser = generateSecret();
    const hint = encryptHint({ subject: "42", sessionIndex: null, proof: null }, browser);
    const login = { provider: "example", user_id: userId, mode: "session", sign_out_hint: hint };
    await gateways.owner.query("select auth.save_federation_login($1, $2, 60)", [
      JSON.stringify(login),
      digestOf(browser),
    ]);
    const owed = { headers: { Cookie: `FEDERATION=${browser}` }, body: { code: "123456" } };
    expect((await call("identityProviders.code", owed)).body.username).toBe(email);
    expect((await call("identityProviders.code", owed)).status).toBe(400);
  });
});

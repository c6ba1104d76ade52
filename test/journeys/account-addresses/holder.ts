import { randomUUID } from "node:crypto";
import jwt from "jsonwebtoken";
import { inOwnerTransaction } from "../../../postgres/database/owner-pool.ts";
import { from, lender } from "../../accounts/open-accounts.ts";
import { newAddress } from "../../new-address.ts";
import { ANON_KEY } from "../../rest-gateway/sign-in/auth-v1/auth-client.ts";
import { SoftwareAuthenticator } from "../../software-authenticator.ts";
import { PUBLIC_URL, type Site } from "./site.ts";
import type { AddressKind, State } from "./ways.ts";

export const PASSWORDS = { holder: "Holder-Boat-6", stranger: "Stranger-Boat-7", new: "Tangerine-Boat-8" } as const;

/** Credentials of one person, as far as the person has them. */
export type Credentials = {
  password?: string;
  /** These are the tokens of /auth and of /auth/v1: the next one replaces each. */
  refreshToken?: string;
  sessionToken?: string;
  accessToken?: string;
  cookie?: string;
  apiKey?: string;
  passkey?: SoftwareAuthenticator;
  /** The subject at a provider. */
  identity?: string;
  /** A link that changes the address to one of the person. */
  pendingChange?: string;
};

/** The refresh token that a sign-in with the password has given, for the claims of the next access token. */
export type Checked = Credentials & { claimed?: Pick<Credentials, "refreshToken" | "sessionToken"> };

export async function ask(site: Site, path: string, init: RequestInit & { headers?: Record<string, string> } = {}) {
  const headers = { apikey: ANON_KEY, "X-Forwarded-For": newAddress(), ...init.headers };
  if (path.startsWith("/users")) delete (headers as { apikey?: string }).apikey;
  const response = await fetch(site.service.url + path, { redirect: "manual", ...init, headers });
  const body = await response.text();
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what its test says.
  const json: any = response.headers.get("content-type")?.includes("json") && body !== "" ? JSON.parse(body) : null;
  return { status: response.status, headers: response.headers, text: body, json };
}

export function post(site: Site, path: string, body: object, headers: Record<string, string> = {}) {
  const init = {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...headers },
  };
  return ask(site, path, init);
}

/** The account that the address belongs to; null if there is none. */
export async function accountOf({ owner }: Site, kind: AddressKind, address: string) {
  const { rows } = await owner.query<{ id: string; uuid: string | null }>(
    kind === "phone"
      ? "select user_id as id, id as uuid from auth.users where phone = $1"
      : `select users.id, account.id as uuid from public.users left join auth.users as account on account.user_id = users.id
        where lower(users.email) = lower($1)`,
    [address],
  );
  return rows[0] ?? null;
}

/** Brings the address into the state; returns the credentials of whoever holds its account, which are of all kinds. */
export async function prepare(site: Site, kind: AddressKind, address: string, state: State): Promise<Credentials> {
  if (state === "none") return {};
  if (state === "row") {
    if (kind === "phone") await create(site, kind, address, {});
    else await site.owner.query("insert into public.users (name, email) values ('Row', $1)", [address]);
    return {};
  }
  const isConfirmed = state !== "unconfirmed";
  const userId = await create(site, kind, address, { isConfirmed, password: PASSWORDS.holder });
  const credentials = await addCredentials(site, userId, PASSWORDS.holder);
  if (!isConfirmed) await addTraps(site, userId, credentials);
  if (state === "banned") {
    await site.owner.query("update auth.users set banned_until = now() + interval '1 day' where user_id = $1", [
      userId,
    ]);
  }
  return credentials;
}

type NewAccount = { readonly isConfirmed?: boolean; readonly password?: string };

export async function create(
  site: Site,
  kind: AddressKind,
  address: string,
  { isConfirmed = false, password }: NewAccount,
): Promise<string> {
  if (kind === "email" && !isConfirmed && password !== undefined) {
    const account = { name: "Ada", email: address, password };
    return String((await site.accounts.register(account, from(), site.accounts.readClaims)).user.id);
  }
  const confirmation = isConfirmed ? { email_confirm: true as const, phone_confirm: true as const } : {};
  const account = { name: "Ada", ...(kind === "phone" ? { phone: address } : { email: address }), ...confirmation };
  return site.accounts.administrationBy(from()).create(account, { password: password ?? null });
}

/** A sign-in of each kind, an API key, a passkey, and an identity at a provider. */
export async function addCredentials(site: Site, userId: string, password: string): Promise<Credentials> {
  const { tokens, sessionTokens, sessions, apiKeys, passkeys } = site.accounts;
  const asOwner = lender(site.owner);
  const opened = await inOwnerTransaction(asOwner, async (client) => ({
    pair: await tokens.open(client, userId, from()),
    session: await sessionTokens.open(client, userId, from()),
    cookie: await sessions.open(client, userId, from()),
  }));
  const passkey = new SoftwareAuthenticator({ origin: PUBLIC_URL, rpId: new URL(PUBLIC_URL).hostname });
  const { challengeId, options } = await passkeys.beginRegistration(userId);
  await passkeys.finishRegistration(userId, { challengeId, credential: passkey.create(options) }, from());
  const identity = randomUUID();
  await site.owner.query(
    "insert into auth.identities (issuer, subject, user_id, is_vouched) values ($1, $2, $3, true)",
    [site.forger.issuer, identity, userId],
  );
  return {
    password,
    refreshToken: opened.pair.refreshToken,
    sessionToken: opened.session.refreshToken,
    accessToken: opened.session.accessToken,
    cookie: `SESSION=${opened.cookie.id}`,
    apiKey: (await apiKeys.create({ role: "authenticated", ownerId: userId })).key,
    passkey,
    identity,
  };
}

/** Adds a second factor, which would lock the owner out, and an address change that waits for its link and would lead the address away. */
async function addTraps(site: Site, userId: string, credentials: Credentials): Promise<void> {
  const elsewhere = `elsewhere-${randomUUID()}@example.org`;
  const change = { method: "PUT", body: JSON.stringify({ email: elsewhere }) };
  const headers = { Authorization: `Bearer ${credentials.accessToken}`, "Content-Type": "application/json" };
  if ((await ask(site, "/auth/v1/user", { ...change, headers })).status === 200) {
    const { pathname, search } = new URL((await site.receive(elsewhere, 1))[0]!.link);
    credentials.pendingChange = pathname + search;
  }
  // A factor that is verified ends the other sign-ins: they are to be ended by the proof.
  await site.owner.query(
    "insert into auth.mfa_factors (user_id, factor_type, secret, state, enabled_at) values ($1, 'totp', $2, 'enabled', now())",
    [userId, "JBSWY3DPEHPK3PXP"],
  );
}

type Check = (site: Site, address: string, credentials: Checked) => Promise<string | null>;

const userOfToken = (accessToken: unknown): string | null => {
  const claims = typeof accessToken === "string" ? (jwt.decode(accessToken) as jwt.JwtPayload | null) : null;
  return claims === null ? null : String(claims.app_metadata?.user_id ?? claims.sub);
};

async function isCurrent({ owner }: Site, accessToken: string): Promise<boolean> {
  const { iat } = jwt.decode(accessToken) as jwt.JwtPayload;
  const statement = `
    select not exists (
      select from auth.users as account where account.user_id = $1 and tokens_valid_from > to_timestamp($2)
    ) as is_current`;
  return (await owner.query<{ is_current: boolean }>(statement, [userOfToken(accessToken), iat])).rows[0]!.is_current;
}

/** The codes of responses to a right password that does not sign in by itself. */
const NEXT_STEPS: ReadonlySet<string> = new Set(["MFA_REQUIRED", "email_not_confirmed", "phone_not_confirmed"]);

const kindOf = (address: string): AddressKind => (address.includes("@") ? "email" : "phone");

/** By credential, the user whom it signs in; null for nobody. A refresh token is replaced by the next one. */
const CHECKS: Readonly<Record<keyof Credentials, Check>> = {
  async password(site, address, credentials) {
    const { password } = credentials;
    const { status, json } = address.includes("@")
      ? await post(site, "/auth/login", { username: address, password })
      : await post(site, "/auth/v1/token?grant_type=password", { phone: address, password });
    if (status === 200) {
      credentials.claimed = json.access_token
        ? { sessionToken: json.refresh_token }
        : { refreshToken: json.refreshToken };
      return userOfToken(json.accessToken ?? json.access_token);
    }
    const isRight = NEXT_STEPS.has(json?.error?.code ?? json?.error_code);
    return isRight ? ((await accountOf(site, kindOf(address), address))?.id ?? null) : null;
  },
  async refreshToken(site, _address, credentials) {
    const { json } = await post(site, "/auth/refresh", { refreshToken: credentials.refreshToken });
    credentials.refreshToken = json?.refreshToken;
    return userOfToken(json?.accessToken);
  },
  async sessionToken(site, _address, credentials) {
    const body = { refresh_token: credentials.sessionToken };
    const { json } = await post(site, "/auth/v1/token?grant_type=refresh_token", body);
    credentials.sessionToken = json?.refresh_token;
    return userOfToken(json?.access_token);
  },
  async accessToken(site, _address, { accessToken }) {
    const { status } = await ask(site, "/auth/v1/user", { headers: { Authorization: `Bearer ${accessToken}` } });
    // A process may know the account for five more seconds as it was; the database decides.
    return status === 200 && (await isCurrent(site, accessToken!)) ? userOfToken(accessToken) : null;
  },
  async cookie(site, _address, { cookie }) {
    const { json } = await ask(site, "/api/auth/me", { headers: { Cookie: cookie! } });
    return json?.userId === undefined ? null : String(json.userId);
  },
  async apiKey(site, _address, { apiKey }) {
    const { json } = await post(site, "/graphql", { query: "{ me { id } }" }, { "X-API-Key": apiKey! });
    return json?.data?.me?.id ?? null;
  },
  async passkey(site, _address, { passkey }) {
    const begun = await post(site, "/auth/v1/passkeys/authentication/options", {});
    const response = { challenge_id: begun.json.challenge_id, credential: passkey!.get(begun.json.options) };
    return userOfToken((await post(site, "/auth/v1/passkeys/authentication/verify", response)).json?.access_token);
  },
  async identity(site, _address, { identity }) {
    const id_token = await site.forger.idToken({ sub: identity, email: `${identity}@elsewhere.example`, name: "N" });
    const body = { provider: "forge", id_token };
    return userOfToken((await post(site, "/auth/v1/token?grant_type=id_token", body)).json?.access_token);
  },
  async pendingChange(site, _address, { pendingChange }) {
    const location = (await ask(site, pendingChange!)).headers.get("location") ?? PUBLIC_URL;
    return userOfToken(new URLSearchParams(new URL(location).hash.slice(1)).get("access_token"));
  },
};

/** The credentials that sign in to the account of the address. */
export async function workingFor(site: Site, kind: AddressKind, address: string, credentials: Checked) {
  const id = (await accountOf(site, kind, address))?.id ?? null;
  const working: string[] = [];
  for (const name of Object.keys(CHECKS) as (keyof Credentials)[]) {
    if (credentials[name] === undefined) continue;
    const userId = await CHECKS[name](site, address, credentials);
    if (userId !== null && userId === id) working.push(name);
  }
  return working.sort();
}

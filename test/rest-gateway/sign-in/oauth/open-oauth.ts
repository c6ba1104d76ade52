import { generateKeyPairSync } from "node:crypto";
import { createClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import * as client from "openid-client";
import pg from "pg";
import { expect } from "vitest";
import type { Service } from "../../../../service/wiring/service.ts";
import { cloneDatabase, type TestDatabase } from "../../../database.ts";
import { SECRET } from "../../../secret.ts";
import { serve } from "../../../serve.ts";
import { type Browser, openBrowser, type PageView } from "../browser.ts";

export const PASSWORD = "correct horse Battery 9";
export const CALLBACK = "https://films.example/callback";
const WITHOUT_SESSION = { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false };

export type OAuthFixture = {
  readonly service: Service;
  readonly database: TestDatabase;
  readonly owner: pg.Client;
  readonly url: string;
  close(): Promise<void>;
};

/** A service whose tokens others can verify. */
export async function openOAuth(settings: NodeJS.ProcessEnv = {}): Promise<OAuthFixture> {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const database = await cloneDatabase();
  const service = await serve(database, {
    OAUTH_SERVER: "on",
    JWT_PRIVATE_KEY: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
    JWT_PREVIOUS_SECRETS: SECRET,
    TRUST_PROXY: "1",
    ...settings,
  });
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  const close = async () => {
    await owner.end();
    await service.stop();
    await database.drop();
  };
  return { service, database, owner, url: service.url, close };
}

export const supabaseFor = ({ url }: OAuthFixture, role = "anon") =>
  createClient(url, jwt.sign({ role }, SECRET), { auth: WITHOUT_SESSION });

export type Person = { readonly email: string; readonly userId: string };

export async function newPerson(fixture: OAuthFixture, isConfirmed = true): Promise<Person> {
  const email = `user-${crypto.randomUUID()}@example.org`;
  const { data, error } = await supabaseFor(fixture, "service_role").auth.admin.createUser({
    ...{ email, password: PASSWORD, email_confirm: isConfirmed },
    user_metadata: { name: "Ada" },
  });
  expect(error).toBeNull();
  const { rows } = await fixture.owner.query("select user_id::text as id from auth.users where id = $1", [
    data.user!.id,
  ]);
  return { email, userId: rows[0].id };
}

/** A client of supabase-js, signed in as that person. */
export async function signedIn(fixture: OAuthFixture, { email }: Person) {
  const supabase = supabaseFor(fixture);
  const { data, error } = await supabase.auth.signInWithPassword({ email, password: PASSWORD });
  expect(error).toBeNull();
  return { supabase, token: data.session!.access_token };
}

/** The browser of that person, signed in to a session. */
export async function browserOf({ url }: OAuthFixture, { email }: Person): Promise<Browser> {
  const browser = openBrowser({ accept: "text/html" });
  const shown = await browser.ask(`${url}/auth/sign-in`, {
    form: { username: email, password: PASSWORD },
    headers: { Origin: new URL(url).origin },
  });
  expect(shown.status).toBe(303);
  return browser;
}

/** Makes the confidential or public client by the API of administrators, and configures it as openid-client does. */
export async function newApplication(fixture: OAuthFixture, changes: object = {}): Promise<Application> {
  const { data, error } = await supabaseFor(fixture, "service_role").auth.admin.oauth.createClient({
    client_name: "Films",
    redirect_uris: [CALLBACK],
    token_endpoint_auth_method: "none",
    ...changes,
  });
  expect(error).toBeNull();
  return discover(fixture, data!.client_id, data!.client_secret);
}

export type Application = {
  readonly id: string;
  readonly secret: string | undefined;
  readonly config: client.Configuration;
};

async function discover({ url }: OAuthFixture, id: string, secret?: string): Promise<Application> {
  const authentication = secret === undefined ? client.None() : client.ClientSecretBasic(secret);
  const config = await client.discovery(new URL(url), id, secret, authentication, {
    execute: [client.allowInsecureRequests],
  });
  return { id, secret, config };
}

export type AuthorizationAttempt = {
  readonly address: URL;
  readonly verifier: string;
  readonly state: string;
  readonly nonce: string | undefined;
};

export async function requestAuthorization(
  { config }: Application,
  parameters: Record<string, string> = {},
): Promise<AuthorizationAttempt> {
  const { scope = "openid profile email read" } = parameters;
  const [verifier, state] = [client.randomPKCECodeVerifier(), client.randomState()];
  // Without an ID token, nothing has the nonce.
  const nonce = scope.includes("openid") ? client.randomNonce() : undefined;
  const address = client.buildAuthorizationUrl(config, {
    redirect_uri: CALLBACK,
    scope,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...{ state, ...(nonce && { nonce }), ...parameters },
  });
  return { address, verifier, state, nonce };
}

const hiddenField = (text: string, name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? "";

/** Returns the fields that the form of the consent page sends. */
export function consentForm({ text }: PageView, action: "approve" | "deny" = "approve") {
  return { csrf: hiddenField(text, "csrf"), authorization_id: hiddenField(text, "authorization_id"), action };
}

/** Opens the page of consent and submits its form; returns where the browser is sent. */
export async function decide(
  { url }: OAuthFixture,
  browser: Browser,
  { address }: Pick<AuthorizationAttempt, "address">,
  action: "approve" | "deny" = "approve",
): Promise<URL> {
  const page = await browser.go(address);
  expect([page.status, page.text]).toEqual([200, expect.stringContaining("Give access")]);
  const decided = await browser.ask(`${url}/auth/oauth/consent`, {
    form: consentForm(page, action),
    headers: { Origin: new URL(url).origin },
  });
  expect(decided.status).toBe(303);
  return new URL(decided.headers.get("location")!);
}

/** The tokens of an application that the person has approved. */
export async function approved(fixture: OAuthFixture, application: Application, person: Person, parameters = {}) {
  const authorization = await requestAuthorization(application, parameters);
  const landed = await decide(fixture, await browserOf(fixture, person), authorization);
  const tokens = await exchange(application, landed, authorization);
  return { authorization, landed, tokens };
}

export function exchange({ config }: Application, landed: URL, { verifier, state, nonce }: AuthorizationAttempt) {
  return client.authorizationCodeGrant(config, landed, {
    pkceCodeVerifier: verifier,
    expectedState: state,
    ...(nonce && { expectedNonce: nonce }),
  });
}

import jwt from "jsonwebtoken";
import { SECRET } from "../secret.ts";
import { ANON_KEY } from "./sign-in/auth-v1/auth-client.ts";
import { openBrowser } from "./sign-in/browser.ts";
import { at, type FederatedGateways, SITE } from "./sign-in/federated-gateways.ts";
import { type Forger, openForger } from "./sign-in/forger.ts";
import { CLIENT, type OpenIdProvider, openOpenIdProvider } from "./sign-in/openid-provider.ts";
import { PROVIDER_CERTIFICATE, SERVICE_KEY as SAML_KEY, SERVICE_CERTIFICATE } from "./sign-in/saml-keys.ts";
import { ISSUER, openSamlProvider, type SamlProvider, submit } from "./sign-in/saml-provider.ts";

const ID_TOKEN_CLIENT = "application";
export const SERVICE_KEY = jwt.sign({ role: "service_role" }, SECRET);

/** Providers on loopback by which users sign in for the first time. */
export type SignUpProviders = {
  readonly openId: OpenIdProvider;
  readonly saml: SamlProvider;
  readonly forger: Forger;
  addTo(gateways: FederatedGateways): Promise<void>;
  close(): Promise<void>;
};

export async function openSignUpProviders(): Promise<SignUpProviders> {
  const openId = await openOpenIdProvider([SITE]);
  const callback = at("/auth/providers/office/callback");
  const saml = await openSamlProvider({ callback, signedOut: at("/auth/providers/office/signed-out") });
  const forger = await openForger(ID_TOKEN_CLIENT);
  const { id: clientId, secret } = CLIENT;
  return {
    openId,
    saml,
    forger,
    async addTo({ addProvider }) {
      await addProvider({ name: "example", kind: "oidc", issuer: openId.issuer, clientId, secret });
      await addProvider({ name: "forge", kind: "oidc", issuer: forger.issuer, clientId: ID_TOKEN_CLIENT });
      const settings = {
        entry_point: `${saml.origin}/sso`,
        certificates: [PROVIDER_CERTIFICATE],
        certificate: SERVICE_CERTIFICATE,
      };
      await addProvider({
        name: "office",
        kind: "saml",
        issuer: ISSUER,
        secret: SAML_KEY,
        trustsEmail: true,
        settings,
      });
    },
    async close() {
      await Promise.all([openId.close(), saml.close(), forger.close()]);
    },
  };
}

/** A request by which somebody asks for an account. */
export type SignUpRequest = {
  readonly providers: SignUpProviders;
  /** The address of the gateway. */
  readonly url: string;
  readonly email: string;
  readonly password: string;
  /** The address of the client. */
  readonly from: string;
  /** The access token of a user who has nothing to do with the new one. */
  readonly token: string;
};
export type SignUpResponse = {
  readonly status: number;
  readonly text: string;
  /** The access token of the new account. */
  readonly accessToken: string | null;
};

/** A way to create an account, and the properties that settings depend on. */
export type SignUpWay = {
  readonly send: (request: SignUpRequest) => Promise<SignUpResponse>;
  /** Administrators and servers create accounts whatever the settings of sign-ups are. */
  readonly by: "stranger" | "user" | "server";
  readonly takesPassword?: true;
  readonly isAnonymous?: true;
  /** It makes a row of a user without an account. */
  readonly isRow?: true;
};

type Sent = { readonly path: string; readonly body: object; readonly headers?: Readonly<Record<string, string>> };

const sent =
  (build: (request: SignUpRequest) => Sent): SignUpWay["send"] =>
  async (request) => {
    const { path, body, headers } = build(request);
    const response = await fetch(`${request.url}${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Forwarded-For": request.from, ...headers },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, text, accessToken: tokenIn(text) };
  };
const tokenIn = (text: string) => /"access_?[tT]oken":"([^"]+)"/.exec(text)?.[1] ?? null;

/** A GraphQL error has the status that REST responds with. */
const graphql =
  (headers: (request: SignUpRequest) => Readonly<Record<string, string>>): SignUpWay["send"] =>
  async (request) => {
    const query = `mutation { createUser(input: { name: "Ada", email: "${request.email}" }) { id } }`;
    const response = await sent(() => ({ path: "/graphql", body: { query }, headers: headers(request) }))(request);
    if (!response.text.includes('"errors"')) return response;
    return { ...response, status: response.text.includes("RATE_LIMITED") ? 429 : 403 };
  };

const signUpPage: SignUpWay["send"] = async ({ url, email, password, from }) => {
  const response = await fetch(`${url}/auth/sign-up`, {
    method: "POST",
    redirect: "manual",
    headers: { Origin: url, "Content-Type": "application/x-www-form-urlencoded", "X-Forwarded-For": from },
    body: new URLSearchParams({ name: "Ada", email, password }),
  });
  return { status: response.status, text: await response.text(), accessToken: null };
};

const openBrowserAt = ({ url, from }: SignUpRequest) => openBrowser({ hosts: { [SITE]: url }, from });
const localPart = (email: string) => email.split("@")[0]!;

const openIdConnect: SignUpWay["send"] = async (request) => {
  const { openId } = request.providers;
  const start = at("/auth/providers/example/sign-in");
  const { status, text } = await openId.signIn(openBrowserAt(request), start, localPart(request.email));
  return { status, text, accessToken: null };
};

/** The way of a client of Supabase Auth, which reads tokens or an error from the fragment of its own URL. */
const authorize: SignUpWay["send"] = async (request) => {
  const { openId } = request.providers;
  const start = at(`/auth/v1/authorize?provider=example&apikey=${ANON_KEY}`);
  const { url, status, text } = await openId.signIn(openBrowserAt(request), start, localPart(request.email));
  const fragment = new URLSearchParams(url.hash.slice(1));
  const code = fragment.get("error_code");
  const refused = code === "over_request_rate_limit" ? 429 : 403;
  return { status: code === null ? status : refused, text, accessToken: fragment.get("access_token") };
};

const saml: SignUpWay["send"] = async (request) => {
  const browser = openBrowserAt(request);
  request.providers.saml.user = { id: request.email, email: request.email };
  const shown = await submit(browser, await browser.go(at("/auth/providers/office/sign-in")));
  return { status: shown.status, text: shown.text, accessToken: null };
};

const idToken: SignUpWay["send"] = async (request) => {
  const { email, providers } = request;
  const id_token = await providers.forger.idToken({ sub: email, email, email_verified: true, name: "Ada" });
  const body = { provider: "forge", id_token };
  return sent(() => ({ path: "/auth/v1/token?grant_type=id_token", body, headers: anonymous }))(request);
};

const anonymous = { apikey: ANON_KEY };
const service = { apikey: SERVICE_KEY, Authorization: `Bearer ${SERVICE_KEY}` };
const bearer = ({ token }: SignUpRequest) => ({ Authorization: `Bearer ${token}` });
const user = ({ email }: SignUpRequest) => ({ name: "Ada", email });
const registration = ({ email, password }: SignUpRequest) => ({ name: "Ada", email, password });
let phones = 4_912_000_000;

/** All ways to create users. Each route or operation that is not here has no code that creates one. */
export const SIGN_UP_WAYS: Readonly<Record<string, SignUpWay>> = {
  "POST /auth/register": {
    by: "stranger",
    takesPassword: true,
    send: sent((request) => ({ path: "/auth/register", body: registration(request) })),
  },
  "the page /auth/sign-up": { by: "stranger", takesPassword: true, send: signUpPage },
  "POST /auth/v1/signup": {
    by: "stranger",
    takesPassword: true,
    send: sent((request) => ({ path: "/auth/v1/signup", body: registration(request), headers: anonymous })),
  },
  "POST /auth/v1/signup by phone": {
    by: "stranger",
    takesPassword: true,
    send: sent(({ password }) => {
      return { path: "/auth/v1/signup", body: { phone: String(++phones), password }, headers: anonymous };
    }),
  },
  "POST /auth/v1/signup without credentials": {
    by: "stranger",
    isAnonymous: true,
    send: sent(() => ({ path: "/auth/v1/signup", body: {}, headers: anonymous })),
  },
  "POST /users": { by: "stranger", isRow: true, send: sent((request) => ({ path: "/users", body: user(request) })) },
  "POST /users of several": {
    by: "stranger",
    isRow: true,
    send: sent((request) => ({ path: "/users", body: [user(request)] })),
  },
  "POST /api/v1/users": {
    by: "stranger",
    isRow: true,
    send: sent((request) => ({ path: "/api/v1/users", body: user(request) })),
  },
  "POST /api/v2/users": {
    by: "stranger",
    isRow: true,
    send: sent((request) => ({ path: "/api/v2/users", body: user(request) })),
  },
  "createUser of GraphQL": { by: "stranger", isRow: true, send: graphql(() => ({})) },
  "a sign-in through OpenID Connect": { by: "stranger", send: openIdConnect },
  "a sign-in through /auth/v1/authorize": { by: "stranger", send: authorize },
  "a sign-in through SAML": { by: "stranger", send: saml },
  "a sign-in with an ID token": { by: "stranger", send: idToken },
  "POST /users of a user": {
    by: "user",
    isRow: true,
    send: sent((request) => ({ path: "/users", body: user(request), headers: bearer(request) })),
  },
  "POST /api/v1/users of a user": {
    by: "user",
    isRow: true,
    send: sent((request) => ({ path: "/api/v1/users", body: user(request), headers: bearer(request) })),
  },
  "createUser of a user": { by: "user", isRow: true, send: graphql(bearer) },
  "POST /auth/v1/admin/users": {
    by: "server",
    takesPassword: true,
    send: sent((request) => ({ path: "/auth/v1/admin/users", body: registration(request), headers: service })),
  },
  "POST /auth/v1/invite": {
    by: "server",
    send: sent(({ email }) => ({ path: "/auth/v1/invite", body: { email }, headers: service })),
  },
  "POST /auth/v1/admin/generate_link": {
    by: "server",
    send: sent(({ email }) => {
      return { path: "/auth/v1/admin/generate_link", body: { type: "invite", email }, headers: service };
    }),
  },
  "POST /rest/v1/users of a server": {
    by: "server",
    isRow: true,
    send: sent((request) => ({ path: "/rest/v1/users", body: user(request), headers: service })),
  },
  "POST /users of a server": {
    by: "server",
    isRow: true,
    send: sent((request) => ({ path: "/users", body: user(request), headers: service })),
  },
  "createUser of a server": { by: "server", isRow: true, send: graphql(() => service) },
};

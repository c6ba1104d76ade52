import * as openid from "openid-client";
import type { ApiError } from "#runtime";
import { isExactNumber, isJsonObject, parseJsonExactly, toAddressText } from "#runtime/json";
import { isLoopback, makeSafeFetch } from "#runtime/safe-fetch";
import { assertionInvalid, providerRefused, providerUnavailable } from "./federation-errors.ts";
import type {
  CallbackRequest,
  ExternalIdentity,
  Provider,
  ProviderProtocol,
  ServiceUrls,
  SignInParameters,
  SignOutHint,
} from "./provider.ts";

/** The differences between OpenID Connect and plain OAuth 2.0 in the authorization code flow. */
type CodeFlow = {
  readonly configuration: () => Promise<openid.Configuration>;
  readonly scope: string | undefined;
  /** True for OpenID Connect: the provider returns an ID token with our nonce. */
  readonly hasIdToken: boolean;
  readonly readIdentity: (configuration: openid.Configuration, tokens: CodeFlowTokens) => Promise<ExternalIdentity>;
};
type CodeFlowTokens = Awaited<ReturnType<typeof openid.authorizationCodeGrant>>;
type UserProfile = Readonly<Record<string, unknown>>;

const MAX_PICTURE_LENGTH = 1_000;
const NO_PARAMETERS: SignInParameters = { scopes: [], hints: {} };
const OPENID_SCOPE = "openid profile email";

/** Returns the OpenID Connect protocol for a provider. */
export function makeOpenIdProtocol(
  discover: DiscoverConfiguration,
): (provider: Provider, urls: ServiceUrls) => ProviderProtocol {
  return (provider, urls) => {
    const configuration = () => discover(provider);
    const scope = provider.settings.scope ?? OPENID_SCOPE;
    return {
      ...makeCodeFlow({ configuration, scope, hasIdToken: true, readIdentity: readIdToken }, urls),
      async signOutUrl({ proof }: SignOutHint, state) {
        const discovered = await configuration();
        if (!discovered.serverMetadata().end_session_endpoint) return null;
        return openid.buildEndSessionUrl(discovered, {
          post_logout_redirect_uri: urls.signedOut,
          state,
          ...(proof !== null && { id_token_hint: proof }),
        }).href;
      },
    };
  };
}

/** Returns the protocol of plain OAuth 2.0: the user is read from the userinfo endpoint. */
export function makeOAuthProtocol(provider: Provider, urls: ServiceUrls): ProviderProtocol {
  const configured = configureOAuth(provider);
  const flow: CodeFlow = {
    configuration: async () => configured,
    scope: provider.settings.scope,
    hasIdToken: false,
    readIdentity: async (configuration, { access_token }) =>
      toOAuthIdentity(provider, await readUserInfo(configuration, access_token)),
  };
  // OAuth 2.0 has no logout.
  return { ...makeCodeFlow(flow, urls), signOutUrl: async () => null };
}

/** The authorization code flow with PKCE and state. */
function makeCodeFlow(
  { configuration, scope, hasIdToken, readIdentity }: CodeFlow,
  { callback }: ServiceUrls,
): Omit<ProviderProtocol, "signOutUrl"> {
  return {
    async startSignIn(state, { scopes, hints } = NO_PARAMETERS) {
      const target = await configuration();
      const codeVerifier = openid.randomPKCECodeVerifier();
      const nonce = hasIdToken ? openid.randomNonce() : null;
      const url = openid.buildAuthorizationUrl(target, {
        ...hints,
        redirect_uri: callback,
        ...withScopes(scope, scopes),
        state,
        ...(nonce !== null && { nonce }),
        code_challenge: await openid.calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: "S256",
      });
      return { url: url.href, checks: { nonce, codeVerifier, requestId: null } };
    },

    stateOf: stateParameter,

    async readIdentity({ query }, state, { nonce, codeVerifier }) {
      const target = await configuration();
      const tokens = await openid
        .authorizationCodeGrant(target, new URL(`${callback}?${query}`), {
          expectedState: state,
          pkceCodeVerifier: codeVerifier!,
          ...(hasIdToken && { expectedNonce: nonce!, idTokenExpected: true }),
        })
        .catch(throwAsApiError);
      return readIdentity(target, tokens);
    },

    readLogout: async (request) => ({ kind: "response", state: stateParameter(request) }),
  };
}

function withScopes(scope: string | undefined, more: readonly string[]): { readonly scope?: string } {
  const all = new Set([...(scope?.split(" ") ?? []), ...more]);
  return all.size === 0 ? {} : { scope: [...all].join(" ") };
}

function stateParameter({ query }: CallbackRequest): string {
  return new URLSearchParams(query).get("state") ?? "";
}

function toPictureUrl(picture: unknown): string | null {
  const url = typeof picture === "string" && picture.length <= MAX_PICTURE_LENGTH ? URL.parse(picture) : null;
  return url?.protocol === "https:" ? url.href : null;
}

async function readIdToken(configuration: openid.Configuration, tokens: CodeFlowTokens): Promise<ExternalIdentity> {
  const claims = tokens.claims()!;
  const profile = await readProfile(configuration, tokens.access_token, claims).catch(throwAsApiError);
  return toOpenIdIdentity(claims, profile, tokens.id_token!);
}

/** `profile` is the claims or the user info. `proof` is the ID token, if the provider requires it for a logout. */
export function toOpenIdIdentity(
  claims: Readonly<Record<string, unknown>> & { readonly sub: string },
  { email, email_verified: verified, name, picture }: UserProfile,
  proof: string | null,
): ExternalIdentity {
  return {
    subject: claims.sub,
    email: typeof email === "string" ? email : null,
    // Some providers send the value as a string.
    isEmailVerified: verified === true || verified === "true",
    name: typeof name === "string" ? name : null,
    picture: toPictureUrl(picture),
    // RFC 8176
    hasSecondFactor: Array.isArray(claims.amr) && claims.amr.includes("mfa"),
    message: null,
    signOut: { subject: claims.sub, sessionIndex: null, proof },
  };
}

/** Many providers return e-mail and name from the userinfo endpoint only. `email_verified` must come from the same source as the e-mail. */
async function readProfile(
  configuration: openid.Configuration,
  accessToken: string,
  claims: openid.IDToken,
): Promise<UserProfile> {
  const isEnough = claims.email !== undefined && claims.name !== undefined;
  if (isEnough || !configuration.serverMetadata().userinfo_endpoint) return claims;
  const userInfo = await openid.fetchUserInfo(configuration, accessToken, claims.sub);
  return { ...(claims.email === undefined ? userInfo : claims), name: claims.name ?? userInfo.name };
}

function configureOAuth({ issuer, clientId, secret, settings }: Provider): openid.Configuration {
  const { authorization_endpoint, token_endpoint, userinfo_endpoint, private_network } = settings;
  const configuration = new openid.Configuration(
    {
      issuer,
      authorization_endpoint: authorization_endpoint!,
      token_endpoint: token_endpoint!,
      userinfo_endpoint: userinfo_endpoint!,
    },
    clientId!,
    {},
    secret === null ? openid.None() : openid.ClientSecretPost(secret),
  );
  const tokenUrl = token_endpoint!;
  configuration[openid.customFetch] = makeSafeFetch({
    providerUrl: tokenUrl,
    allowsPrivateNetwork: private_network ?? false,
  });
  if (isLoopback(URL.parse(tokenUrl))) openid.allowInsecureRequests(configuration);
  return configuration;
}

async function readUserInfo(
  configuration: openid.Configuration,
  accessToken: string,
): Promise<Readonly<Record<string, unknown>>> {
  const address = new URL(configuration.serverMetadata().userinfo_endpoint!);
  const headers = new Headers({ Accept: "application/json" });
  const response = await openid
    .fetchProtectedResource(configuration, accessToken, address, "GET", null, headers)
    .catch(throwAsApiError);
  if (!response.ok) throw providerUnavailable(new Error(`Its userinfo endpoint returned ${response.status}`));
  const userInfo = parseUserInfo(await response.text());
  if (!isJsonObject(userInfo)) throw providerUnavailable(new Error("Its userinfo is not a JSON object"));
  return userInfo;
}

/** Keeps all digits of numeric subjects: JavaScript would round 64-bit ids. */
function parseUserInfo(text: string): unknown {
  try {
    return parseJsonExactly(text);
  } catch {
    // The parser's message is omitted, because it quotes the input.
    return null;
  }
}

function toOAuthIdentity({ settings }: Provider, userInfo: Readonly<Record<string, unknown>>): ExternalIdentity {
  const names = { subject: "sub", email: "email", email_verified: "email_verified", name: "name", ...settings.claims };
  const textOf = (name: string) => {
    const value = Object.hasOwn(userInfo, name) ? userInfo[name] : null;
    if (typeof value === "number" || isExactNumber(value)) return toAddressText(value);
    return typeof value === "string" && value !== "" ? value : null;
  };
  const subject = textOf(names.subject);
  if (subject === null) throw assertionInvalid(new Error(`Its userinfo has no ${names.subject}`));
  return {
    subject,
    email: textOf(names.email),
    isEmailVerified: userInfo[names.email_verified] === true,
    name: textOf(names.name),
    hasSecondFactor: false,
    message: null,
    signOut: { subject, sessionIndex: null, proof: null },
  };
}

/** Returns the provider's OpenID configuration. */
export type DiscoverConfiguration = (provider: Provider) => Promise<openid.Configuration>;

type CachedConfiguration = {
  /** The provider's row as JSON; a changed row invalidates the entry. */
  readonly row: string;
  readonly until: number;
  readonly configuration: Promise<openid.Configuration>;
};

/** The configuration is cached for this time. Independently, the library refetches the keys when a token has an unknown key id. */
const DISCOVERY_CACHE_MS = 10 * 60_000;

/** The accepted clock difference to the provider, in seconds. */
const CLOCK_TOLERANCE_SECONDS = 30;

/** Caches the providers' configurations. */
export function makeDiscovery(): DiscoverConfiguration {
  const cache = new Map<string, CachedConfiguration>();
  return (provider) => {
    const row = JSON.stringify(provider);
    const cached = cache.get(provider.name);
    if (cached?.row === row && performance.now() < cached.until) return cached.configuration;
    const configuration = discover(provider);
    cache.set(provider.name, { row, until: performance.now() + DISCOVERY_CACHE_MS, configuration });
    configuration.catch(() => cache.delete(provider.name));
    return configuration;
  };
}

async function discover(provider: Provider): Promise<openid.Configuration> {
  const { issuer, clientId, secret, settings } = provider;
  const issuerUrl = new URL(issuer);
  const allowsPrivateNetwork = settings.private_network ?? false;
  const configuration = await openid
    .discovery(
      issuerUrl,
      clientId!,
      { [openid.clockTolerance]: CLOCK_TOLERANCE_SECONDS },
      secret === null ? openid.None() : openid.ClientSecretPost(secret),
      {
        [openid.customFetch]: makeSafeFetch({ providerUrl: issuer, allowsPrivateNetwork }),
        // Without these checks, the library does not verify signatures of tokens that came over TLS.
        execute: [openid.enableNonRepudiationChecks, ...(isLoopback(issuerUrl) ? [openid.allowInsecureRequests] : [])],
      },
    )
    .catch((error) => {
      throw toProviderUnavailable(error);
    });
  const { issuer: actualIssuer } = configuration.serverMetadata();
  // For some Microsoft issuers the library accepts any tenant, so that anybody with a tenant could impersonate any user.
  if (actualIssuer !== issuer)
    throw providerUnavailable(new Error(`Its issuer is ${actualIssuer}, but it was added as ${issuer}`));
  return configuration;
}

/** Errors that mean an unavailable or misconfigured provider, not a forged response. */
const UNAVAILABLE_CODES: readonly unknown[] = [
  "OAUTH_TIMEOUT",
  "OAUTH_HTTP_REQUEST_FORBIDDEN",
  "OAUTH_REQUEST_PROTOCOL_FORBIDDEN",
  "OAUTH_RESPONSE_IS_NOT_CONFORM",
  "OAUTH_RESPONSE_IS_NOT_JSON",
  "OAUTH_PARSE_ERROR",
  "OAUTH_MISSING_SERVER_METADATA",
  "OAUTH_INVALID_SERVER_METADATA",
];

/** The user declined, or the code is unknown to the provider (RFC 6749 §5.2). */
const REFUSAL_CODES: readonly string[] = ["access_denied", "invalid_grant", "login_required", "interaction_required"];

/** Converts errors of openid-client to API errors. */
function throwAsApiError(error: unknown): never {
  if (error instanceof openid.AuthorizationResponseError || error instanceof openid.ResponseBodyError) {
    const providerError = new Error(`The provider returned the error ${error.error}`);
    throw REFUSAL_CODES.includes(error.error) ? providerRefused(providerError) : providerUnavailable(providerError);
  }
  const isForged =
    error instanceof openid.ClientError && error.code !== undefined && !UNAVAILABLE_CODES.includes(error.code);
  throw isForged ? assertionInvalid(innermostCause(error)) : toProviderUnavailable(error);
}

/** The error for a failed request to the provider. */
function toProviderUnavailable(error: unknown): ApiError {
  const isTimeout = error instanceof openid.ClientError && error.code === "OAUTH_TIMEOUT";
  return providerUnavailable(innermostCause(error), { isTimeout });
}

/** The library's message is generic; the innermost cause names the claim. */
function innermostCause(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? innermostCause(error.cause) : error;
}

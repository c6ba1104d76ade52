import { type Accounts, type LiveSession, type Sessions, secondFactorRequired, userIdOf } from "#accounts";
import {
  type Authenticator,
  type Caller,
  type Credentials,
  isActedAs,
  type PasswordCredentials,
} from "#accounts/identity";
import {
  type CsrfProtection,
  clientInfoOf,
  type GatewayRequest,
  HttpError,
  type LimitExpensiveRequest,
  readApiKeyParameter,
  readSessionCookie,
  setSessionCookie,
  toHttpError,
} from "#http";
import { ApiError, CREDENTIALS_REQUIRED } from "#runtime";
import type { ParsedRequest, Pipeline } from "./dialect.ts";

const BASIC_CHALLENGE = { "WWW-Authenticate": 'Basic realm="content-service", charset="UTF-8"' };
export const LOOPBACK_ADDRESS = /^(127\.|::1$|::ffff:127\.)/;

type AuthenticationDependencies = { readonly authenticator: Authenticator; readonly csrf: CsrfProtection };

type AuthenticatedUser = { readonly userId: string; readonly caller: Caller };

/** Authenticates the credential, or throws 401. Each dialect reads its own headers. */
export async function authenticate<Parsed extends ParsedRequest>(
  request: GatewayRequest,
  { dialect }: Pipeline<Parsed>,
): Promise<Caller> {
  request.stages.enter("authenticate");
  const authenticated = dialect.authenticate(request);
  const caller = authenticated instanceof Promise ? await authenticated : authenticated;
  request.admit(caller);
  return caller;
}

/**
 * Identifies the caller by any credential of the resource interface. Browsers send cookies and Basic credentials
 * automatically, so requests with these are checked for CSRF.
 */
export function authenticateCaller(
  request: GatewayRequest,
  { authenticator, csrf, resource }: AuthenticationDependencies & Pick<Credentials, "resource">,
): Caller | Promise<Caller> {
  const credentials = { ...readCredentials(request), resource };
  const { login = null, session = null } = credentials;
  const admitCaller = (caller: Caller): Caller => {
    request.admit(caller);
    if (login) csrf.checkRequest(request, null);
    if (caller.kind === "session") {
      csrf.checkRequest(request, session);
      request.addResponseHeaders(setSessionCookie(session!));
    }
    return caller;
  };
  const caller = login ? authenticateByPassword(authenticator, credentials) : authenticator.authenticate(credentials);
  return caller instanceof Promise ? caller.then(admitCaller) : admitCaller(caller);
}

async function authenticateByPassword(authenticator: Authenticator, credentials: Credentials): Promise<Caller> {
  try {
    return await authenticator.authenticate(credentials);
  } catch (error) {
    throw withBasicChallenge(error);
  }
}

/** Requires a signed-in user; API keys, and tokens of administrators who act as the user, are refused. */
export async function authenticateUser(
  request: GatewayRequest,
  services: AuthenticationDependencies,
): Promise<AuthenticatedUser> {
  const caller = await authenticatePerson(request, services);
  return { userId: userIdOf(caller.claims), caller };
}

/** Requires a signed-in user like `authenticateUser`, but the token need not name a user. */
export async function authenticatePerson(
  request: GatewayRequest,
  services: AuthenticationDependencies,
): Promise<Caller> {
  const caller = await authenticateCaller(request, services);
  if (caller.kind === "anonymous") throw authRequired();
  if (caller.kind === "key") {
    throw new HttpError(403, "PERMISSION_DENIED", "This operation is not allowed with an API key; sign in.");
  }
  if (isActedAs(caller)) throw new HttpError(403, "PERMISSION_DENIED", "Only the user may manage the account.");
  return caller;
}

/** Refuses a token without the second factor of its account, which AUTH_AAL1_ACCESS=full allows elsewhere. */
export async function requireSecondFactor(
  { claims }: Caller,
  { accounts }: Pick<AuthDependencies, "accounts">,
): Promise<void> {
  if (await accounts.own.lacksSecondFactor(claims)) throw secondFactorRequired();
}

export function authRequired(): HttpError {
  return new HttpError(401, "AUTH_REQUIRED", "Sign in first.", { challenge: CREDENTIALS_REQUIRED });
}

/** Reads `Authorization: Bearer …` or `Basic …`, `X-API-Key: …`, `?api_key=…`, `Cookie: SESSION=…`, in this order of precedence. */
function readCredentials(request: GatewayRequest): Credentials {
  const { headers, rawQuery } = request;
  const login = readBasicCredentials(request);
  if (login) return { authorization: null, login };
  const { authorization = null, "x-api-key": inHeader } = headers;
  const apiKey = typeof inHeader === "string" && inHeader !== "" ? inHeader : readApiKeyParameter(rawQuery);
  return { authorization, apiKey, session: readSessionCookie(headers) };
}

/** Reads `Basic base64(name:password)` (RFC 7617); null for another scheme. Requires HTTPS, because it sends the password. */
function readBasicCredentials(request: GatewayRequest): PasswordCredentials | null {
  const { authorization = "" } = request.headers;
  if (!/^\s*basic(\s|$)/i.test(authorization)) return null;
  const [, encoded = ""] = authorization.trim().split(/\s+/);
  const { address, isSecure } = request.connection();
  if (!isSecure && !LOOPBACK_ADDRESS.test(address ?? "")) {
    throw new HttpError(403, "PERMISSION_DENIED", "Basic authentication requires HTTPS.");
  }
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  if (colon < 1 || text.includes("\0")) throw malformedCredentials();
  return { username: text.slice(0, colon), password: text.slice(colon + 1), clientInfo: clientInfoOf(request) };
}

/** Adds the Basic challenge to a 401 error. */
function withBasicChallenge(error: unknown): unknown {
  return error instanceof ApiError && error.kind === "unauthenticated"
    ? toHttpError(error).withHeaders(BASIC_CHALLENGE)
    : error;
}

function malformedCredentials(): HttpError {
  const message = "The Basic credentials are malformed.";
  return new HttpError(401, "INVALID_CREDENTIALS", message, { headers: BASIC_CHALLENGE });
}

export type RequestSession = LiveSession & { readonly id: string };

/** Finds the session of the request's cookie, and renews it; null if there is none. */
export async function findSession(
  request: GatewayRequest,
  sessions: Pick<Sessions, "use">,
): Promise<RequestSession | null> {
  const id = readSessionCookie(request.headers);
  const session = id === null ? null : await sessions.use(id);
  if (!session) return null;
  request.addResponseHeaders(setSessionCookie(id!));
  return { ...session, id: id! };
}

/** The dependencies of the sign-in routes. */
export type AuthDependencies = {
  readonly accounts: Accounts;
  readonly authenticator: Authenticator;
  readonly csrf: CsrfProtection;
};

/** The dependencies with the limit for routes that create accounts or send e-mails. */
export type LimitedAuthDependencies = AuthDependencies & { readonly limitExpensive: LimitExpensiveRequest };

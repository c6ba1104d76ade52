import { type Accounts, signInOf, userIdOf } from "#accounts";
import type { Federation } from "#accounts/federation";
import { type Authenticator, type Caller, CredentialError, isActedAs } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { Config } from "#config";
import type {
  BodyLimit,
  GatewayRoutes,
  LimitExpensiveRequest,
  MatchedRequest,
  MatchedRequestHandler,
  PatternRoutes,
} from "#http";
import { findUnstorable, findUnstorableInJson, isJsonObject, type JsonObject, parseJsonExactly } from "#runtime/json";
import type { OAuthStore } from "../oauth/oauth-store.ts";
import { authError, credentialRejected, validationFailed } from "./errors.ts";

/** A request of this interface, whose API key is verified. */
export type AuthRequest = MatchedRequest;
export type AuthRouteHandler = MatchedRequestHandler;
export type AuthV1Routes = PatternRoutes;

/** The dependencies of the routes. */
export type AuthV1Services = {
  readonly accounts: Accounts;
  readonly authenticator: Authenticator;
  readonly federation: Federation;
  /** Publishes the keys that verify our tokens. */
  readonly keySet: GatewayRoutes;
  readonly config: Config;
  readonly catalog: () => Catalog;
  readonly oauthStore: OAuthStore;
  /** Limits requests that create an account or send an e-mail. */
  readonly limitExpensive: LimitExpensiveRequest;
  /** Returns the public URL of the service. */
  readonly siteUrl: () => string;
};

export type SignedInUser = {
  readonly userId: string;
  /** The sign-in that the access token belongs to; null for a token of the documented routes. */
  readonly sessionId: string | null;
  readonly caller: Caller;
};

/** Authenticates the caller by the bearer token, which is required. */
async function authenticateBearer(
  request: AuthRequest,
  { authenticator }: Pick<AuthV1Services, "authenticator">,
): Promise<Caller> {
  const { authorization } = request.headers;
  if (!/^bearer\s+\S/i.test(authorization ?? "")) {
    throw authError(401, "no_authorization", "This endpoint requires a valid Bearer token");
  }
  const caller = await authenticate(authenticator, authorization!);
  request.admit(caller);
  return caller;
}

async function authenticate(authenticator: Authenticator, authorization: string): Promise<Caller> {
  try {
    return await authenticator.authenticate({ authorization, mayLackFactor: true });
  } catch (error) {
    throw error instanceof CredentialError ? credentialRejected(error.reason, error.message) : error;
  }
}

/** Requires the access token of a user. */
export async function authenticateUser(
  request: AuthRequest,
  services: Pick<AuthV1Services, "authenticator" | "accounts">,
): Promise<SignedInUser> {
  const caller = await authenticateBearer(request, services);
  const { sub, session_id: claim } = caller.claims;
  if (sub === undefined) throw authError(403, "bad_jwt", "invalid claim: missing sub claim");
  if (isActedAs(caller)) throw authError(403, "bad_jwt", "invalid claim: only the user may manage the account");
  const userId = userIdOf(caller.claims);
  const sessionId = typeof claim === "string" ? claim : null;
  const signInId = sessionId ?? signInOf(caller.claims).sessionId;
  if (signInId !== null) await requireLiveSession(services, userId, signInId);
  return { userId, sessionId, caller };
}

/** Refuses a session that has just ended, which may still be accepted for a few seconds elsewhere. */
async function requireLiveSession(
  { accounts }: Pick<AuthV1Services, "accounts">,
  userId: string,
  sessionId: string,
): Promise<void> {
  const state = await accounts.own.tokenSessionState(userId, sessionId);
  if (state === "disabled") throw credentialRejected("accountDisabled");
  if (state === "ended") throw credentialRejected("sessionEnded");
}

/**
 * Refuses a sign-in without the second factor of its account: it may belong to somebody who knows the password only. The
 * database knows more than the token, which may be older than the factor.
 */
export async function requireSecondFactor(
  { caller }: Pick<SignedInUser, "caller">,
  { accounts }: Pick<AuthV1Services, "accounts">,
  [status, message]: readonly [401 | 403, string],
): Promise<void> {
  if (await accounts.own.lacksSecondFactor(caller.claims)) throw authError(status, "insufficient_aal", message);
}

/** The limit of bodies, which is enough for user metadata. The caller may not be authenticated yet. */
const BODY_LIMIT: BodyLimit = { bytes: 256 * 1024, isAnonymous: true };

/** Reads the JSON object of the body, whatever its content type; an empty body counts as an empty object. */
export async function readJsonBody(request: AuthRequest): Promise<JsonObject> {
  const bytes = await request.readBody(BODY_LIMIT);
  if (bytes.length === 0) return {};
  const body = parseJson(bytes);
  if (isJsonObject(body)) return body;
  throw authError(400, "bad_json", "Could not parse request body as JSON: the body must be an object");
}

/** Parses JSON. The parser's message is omitted, because it quotes the body, which may contain a password. */
function parseJson(bytes: Buffer): unknown {
  try {
    return parseJsonExactly(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw authError(400, "bad_json", "Could not parse request body as JSON");
  }
}

/** Reads the text of a field; "" if it is missing. */
export function readText(body: JsonObject, name: string): string {
  const value = body[name] ?? "";
  if (typeof value !== "string") throw validationFailed(`${name} must be a text`);
  refuseUnstorable(name, findUnstorable(value));
  return value;
}

/** Reads the object of a field, such as metadata; null if it is missing. */
export function readObject(body: JsonObject, name: string): JsonObject | null {
  const value = body[name] ?? null;
  if (value === null) return null;
  if (!isJsonObject(value)) throw validationFailed(`${name} must be an object`);
  refuseUnstorable(name, findUnstorableInJson(writeJson(name, value)));
  return value;
}

function refuseUnstorable(name: string, found: ReturnType<typeof findUnstorable>): void {
  if (found !== null) throw validationFailed(`${name} must not contain ${found}`);
}

/** Prints JSON. Parsing accepts any depth, but printing does not. */
function writeJson(name: string, value: JsonObject): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw error instanceof RangeError ? validationFailed(`${name} is nested too deeply`) : error;
  }
}

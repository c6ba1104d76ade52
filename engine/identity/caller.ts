import { type CacheHits, RecentMap } from "../cache/recent-map.ts";
import { claimAt } from "../config/claim-path.ts";
import type { Config } from "../config/config.ts";
import { ApiError } from "../errors.ts";
import { clientNetwork } from "../limits/ip-address.ts";
import type { FindApiKey } from "./api-key-lookup.ts";
import { type Claims, hasExpired, isTooEarlyError, parseClaims, serializeClaims } from "./claims.ts";
import type { ClientInfo } from "./client-info.ts";
import type { DatabaseClock } from "./database-clock.ts";
import type { TokenKeys } from "./token-keys.ts";
import { type VerifiedToken, verifyToken } from "./tokens.ts";
import { unauthorized } from "./unauthorized.ts";

const ADMIN_ROLE = "admin";

/** Who asks, whatever they showed: the database role to become and the claims that policies read. */
export type Caller = {
  /** `key`: a program that showed a key of `auth.api_keys`; `session`: a browser, which shows its session unasked. */
  readonly kind: "anonymous" | "known" | "key" | "session";
  readonly role: string;
  /** For what is decided here; never to be written again on the way to Postgres. */
  readonly claims: Claims;
  /** As the credential spells them: what SQL sees in request.jwt.claims. */
  readonly claimsText: string;
  readonly expiresAt: number | null;
};

/** A caller, and why the credential that was shown is not taken: null where it is, or where there is none. */
export type AuthenticationResult = { readonly caller: Caller; readonly rejection: ApiError | null };

export type PasswordCredentials = {
  readonly username: string;
  readonly password: string;
  readonly clientInfo: ClientInfo;
};

/** What a request shows of its sender, whichever interface it came by. */
export type Credentials = {
  readonly authorization: string | null;
  /** A token of this deployment, or a key of `auth.api_keys`. */
  readonly apiKey?: string | null;
  /** The id of a session, where the interface takes sessions. */
  readonly session?: string | null;
  /** A name and a password with each request, where the interface takes them. */
  readonly login?: PasswordCredentials | null;
};

/** Reads one kind of credential; null when the request shows none of that kind. */
export type CredentialReader = (credentials: Credentials) => Caller | null | Promise<Caller | null>;

export type Authenticator = {
  readonly anonymous: Caller;
  /** The only way from a credential to a caller; a credential that is no good is a 401. */
  authenticate(credentials: Credentials): Caller | Promise<Caller>;
  /** As identify, but a credential that is no good is none: who leaves it to each field to refuse asks this way. */
  authenticateOrAnonymous(credentials: Credentials): Promise<AuthenticationResult>;
  /** For who was identified a while ago, and is still there. */
  readonly validateClaims: ValidateClaims;
};

/** Why claims that were good are so no longer; null when they still are, which is known without waiting as a rule. */
type ValidateClaims = (claims: Claims) => ApiError | null | Promise<ApiError | null>;

type AuthenticatorOptions = Pick<Config, "anonRole" | "jwtAudience" | "jwtRoleClaim" | "jwtCacheEntries"> & {
  readonly keys: TokenKeys;
  /** Without it only tokens are API keys. */
  readonly findApiKey?: FindApiKey;
  readonly validateClaims?: ValidateClaims;
  /** Asked about tokens that this gateway's clock finds too early. */
  readonly databaseClock?: DatabaseClock | undefined;
  /** Further kinds of credential, asked in turn when there is neither a bearer token nor an API key. */
  readonly readers?: readonly CredentialReader[];
  /** Of tokens that were shown before. */
  readonly hits?: CacheHits;
};

type CachedToken = { readonly token: string; readonly caller: Caller };

/** Tokens together may take this many characters of the cache. */
const CACHE_CHARACTERS = 8_000_000;

export function makeAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { anonRole, jwtRoleClaim, keys, findApiKey = () => null, validateClaims = () => null, readers = [] } = options;
  const anonymous = Object.freeze<Caller>({
    kind: "anonymous",
    role: anonRole,
    claims: Object.freeze({ role: anonRole }),
    claimsText: serializeClaims({ role: anonRole }),
    expiresAt: null,
  });
  const requirements = { keys, audience: options.jwtAudience };
  const cacheWeight = (_signature: string, { token: { length } }: CachedToken) =>
    Math.max(1 / options.jwtCacheEntries, length / CACHE_CHARACTERS);
  /** By the signatures of their tokens, which are as good and short; a token that is refused is never remembered. */
  const verifiedTokens = new RecentMap<string, CachedToken>(1, cacheWeight, options.hits);

  const callerOfToken = (token: string, databaseTime: number | null = null): Caller => {
    const signature = token.slice(token.lastIndexOf(".") + 1);
    const cached = verifiedTokens.get(signature);
    if (cached?.token === token && !isExpired(cached.caller)) return cached.caller;
    const caller = callerOfVerifiedToken(verifyToken(token, requirements, databaseTime), jwtRoleClaim, anonymous.role);
    verifiedTokens.set(signature, { token, caller });
    return caller;
  };

  const callerOfBearerToken = (token: string): Caller | Promise<Caller> => {
    try {
      return validateCaller(callerOfToken(token));
    } catch (error) {
      const { databaseClock: databaseTime } = options;
      if (!databaseTime || !isTooEarlyError(error)) throw error;
      const refuse = () => {
        throw error;
      };
      return databaseTime().then((now) => validateCaller(callerOfToken(token, now)), refuse);
    }
  };

  const validateCaller = (caller: Caller): Caller | Promise<Caller> => {
    const rejection = validateClaims(caller.claims);
    return rejection instanceof Promise
      ? rejection.then((awaited) => throwRejection(awaited, caller))
      : throwRejection(rejection, caller);
  };

  const callerOfApiKey = (key: string): Caller | Promise<Caller> => {
    if (isJwt(key)) return callerOfBearerToken(key);
    const caller = findApiKey(key);
    return caller instanceof Promise ? caller.then(requireKnownKey) : requireKnownKey(caller);
  };

  const callerOfOtherCredentials = async (credentials: Credentials): Promise<Caller> => {
    for (const read of readers) {
      const caller = await read(credentials);
      if (caller) return caller;
    }
    return anonymous;
  };

  const authenticate = (credentials: Credentials): Caller | Promise<Caller> => {
    const token = readBearerToken(credentials.authorization);
    if (token !== null) return callerOfBearerToken(token);
    if (credentials.apiKey) return callerOfApiKey(credentials.apiKey);
    return readers.length === 0 ? anonymous : callerOfOtherCredentials(credentials);
  };

  return {
    anonymous,
    authenticate,
    validateClaims,
    authenticateOrAnonymous: async (credentials) => {
      try {
        return { caller: await authenticate(credentials), rejection: null };
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 401) throw error;
        return { caller: anonymous, rejection: error };
      }
    },
  };
}

/**
 * `Bearer eyJ…`; the scheme's letters may be of any case. All that follows it is the token, be it no word or two. An empty
 * header shows nothing; in any other one somebody shows what cannot be read, and is not taken for anonymous.
 */
function readBearerToken(authorization: string | null): string | null {
  const header = authorization?.trim();
  if (!header) return null;
  const match = /^bearer(?:\s+(.*))?$/is.exec(header);
  if (match) return match[1] ?? "";
  throw unauthorized(
    "INVALID_TOKEN",
    'The Authorization header cannot be read: send the word "Bearer", a space and a token.',
    "Unsupported authorization scheme",
  );
}

/** A token has dots (RFC 7519), a key has none. */
function isJwt(key: string): boolean {
  return key.includes(".");
}

function isExpired({ expiresAt }: Caller): boolean {
  return expiresAt !== null && hasExpired(expiresAt);
}

function throwRejection(rejection: ApiError | null, caller: Caller): Caller {
  if (rejection) throw rejection;
  return caller;
}

function requireKnownKey(caller: Caller | null): Caller {
  if (caller) return caller;
  throw unauthorized("INVALID_TOKEN", "The API key is unknown, was revoked, or has expired.", "Invalid API key");
}

function callerOfVerifiedToken(verified: VerifiedToken, roleClaim: Config["jwtRoleClaim"], anonRole: string): Caller {
  const { claims, claimsText, expiresAt } = verified;
  const role = claimAt(claims, roleClaim) ?? anonRole;
  if (typeof role !== "string" || role === "") {
    throw unauthorized(
      "VERIFICATION_FAILED",
      "The token names no role of this service.",
      "JWT role claim is not a name",
    );
  }
  return Object.freeze<Caller>({ kind: "known", role, claims, claimsText, expiresAt });
}

type CallerSource = Pick<Caller, "kind" | "claimsText" | "expiresAt">;

/** The caller of whom the database states the claims, the role among them. */
export function callerFromClaims({ kind, claimsText, expiresAt }: CallerSource): Caller {
  const claims = parseClaims(claimsText);
  if (typeof claims?.role !== "string") throw new Error("The database states claims without a role");
  return Object.freeze<Caller>({ kind, role: claims.role, claims, claimsText, expiresAt });
}

/** The role that passes every check of ownership; what else it may do is said in SQL. */
export function isAdministrator({ role }: Pick<Caller, "role">): boolean {
  return role === ADMIN_ROLE;
}

/**
 * Identifies a caller from request to request, for limits and shares: the user, or the API key. A token without a subject
 * is shown by many, such as every visitor of a site, so there it is the client's address.
 */
export function callerKey(claims: Claims | null, address: () => string | null): string {
  const { sub, api_key: key } = claims ?? {};
  if (typeof sub === "string" && sub !== "") return `user ${sub}`;
  return typeof key === "string" ? `key ${key}` : `address ${clientNetwork(address())}`;
}

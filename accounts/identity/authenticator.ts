import { type Config, claimAt } from "#config";
import { ApiError, type CacheHits, RecentMap, unavailable } from "#runtime";
import type { Caller, FindApiKey } from "./caller.ts";
import { type Claims, hasExpired, isTooEarlyError, serializeClaims } from "./claims.ts";
import type { ClientInfo } from "./client-info.ts";
import { apiKeyInvalid, CredentialError } from "./credential-error.ts";
import type { DatabaseClock } from "./database-clock.ts";
import { requireResource } from "./oauth-access.ts";
import type { RemoteKeySet } from "./remote-key-set.ts";
import type { TokenKey, TokenKeys } from "./token-keys.ts";
import { isUnknownKeyError, verifyToken } from "./tokens.ts";

/** A caller, and the reason why its credential is rejected; null if it is accepted, or none was sent. */
export type AuthenticationResult = { readonly caller: Caller; readonly rejection: ApiError | null };

export type PasswordCredentials = {
  readonly username: string;
  readonly password: string;
  readonly clientInfo: ClientInfo;
};

/** The credentials of a request; each interface accepts some of them. */
export type Credentials = {
  readonly authorization: string | null;
  /** A token of this deployment, or a key of `auth.api_keys`. */
  readonly apiKey?: string | null;
  /** A session id, if the interface accepts sessions. */
  readonly session?: string | null;
  /** A user name and password, if the interface accepts them with each request. */
  readonly login?: PasswordCredentials | null;
  /** True if the token may be one of a sign-in that has not proved the second factor of its account yet. */
  readonly mayLackFactor?: boolean;
  /** The path of the resource that the interface serves; tokens of applications are for one resource. Without it they are refused. */
  readonly resource?: string | undefined;
};

type TokenPolicy = Pick<Credentials, "resource"> & { readonly mayLackFactor: boolean };

/** Reads one kind of credential; null if the request has none of that kind. */
export type CredentialReader = (credentials: Credentials) => Caller | null | Promise<Caller | null>;

/** Returns the reason why valid claims are no longer valid; null if they are. Returns synchronously if the account's state is cached. */
export type ValidateClaims = (claims: Claims) => CredentialError | null | Promise<CredentialError | null>;

export type Authenticator = {
  readonly anonymous: Caller;
  /** The only way from a credential to a caller; throws 401 for an invalid credential. */
  authenticate(credentials: Credentials): Caller | Promise<Caller>;
  /** Treats an invalid credential as none, for interfaces that check access per field. */
  authenticateOrAnonymous(credentials: Credentials): Promise<AuthenticationResult>;
  /** Validates again a caller that was authenticated a while ago. */
  readonly validateClaims: ValidateClaims;
};

type AuthenticatorOptions = Pick<Config, "anonRole" | "jwtAudience" | "jwtRoleClaim" | "jwtCacheEntries"> & {
  readonly keys: TokenKeys;
  /** The keys of another issuer, in addition to `keys`. */
  readonly remoteKeys?: RemoteKeySet | null;
  /** The issuer of tokens that are signed with keys of other parties; null accepts any issuer. */
  readonly requiredIssuer?: string | null;
  /** The default is `auth`. */
  readonly aal1Access?: Config["aal1Access"];
  /** If it is missing, only tokens are API keys. */
  readonly findApiKey?: FindApiKey;
  /** Returns the role key that a project key stands for. */
  readonly readProjectKey?: (text: string) => string | null;
  readonly validateClaims?: ValidateClaims;
  /** Returns the address of a resource by its path. If it is missing, tokens of applications are refused. */
  readonly resourceAddress?: (path: string) => string;
  /** The clock to check tokens that are not valid yet by this gateway's clock. */
  readonly databaseClock?: DatabaseClock | undefined;
  /** Further kinds of credentials, tried in order if there is neither a bearer token nor an API key. */
  readonly readers?: readonly CredentialReader[];
  /** Counts hits of the cache of verified tokens. */
  readonly hits?: CacheHits;
};

type CachedToken = { readonly token: string; readonly caller: Caller };

/** The maximum number of characters of all cached tokens together. */
const CACHE_CHARACTERS = 8_000_000;

export function makeAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { anonRole, databaseClock, remoteKeys } = options;
  const { findApiKey = () => null, readProjectKey = () => null, validateClaims = () => null, readers = [] } = options;
  const anonymous = anonymousCaller(anonRole);
  const tokens = new VerifiedTokens(options);

  const requiresFactor = options.aal1Access !== "full";

  const validate = (caller: Caller): Caller | Promise<Caller> => {
    const rejection = validateClaims(caller.claims);
    return rejection instanceof Promise
      ? rejection.then((awaited) => unlessRejected(caller, awaited))
      : unlessRejected(caller, rejection);
  };

  const admit = (caller: Caller, { resource, mayLackFactor }: TokenPolicy): Caller | Promise<Caller> =>
    validate(requireResource(requireFactor(caller, mayLackFactor), resource, options.resourceAddress));

  const callerOfToken = (token: string, policy: TokenPolicy): Caller | Promise<Caller> => {
    try {
      return admit(tokens.callerOf(token), policy);
    } catch (error) {
      if (!databaseClock || !isTooEarlyError(error)) throw error;
      return databaseClock().then(
        (now) => admit(tokens.callerOf(token, now), policy),
        () => Promise.reject(error),
      );
    }
  };

  const callerOfBearerToken = (token: string, policy: TokenPolicy): Caller | Promise<Caller> => {
    try {
      return callerOfToken(token, policy);
    } catch (error) {
      if (!remoteKeys || !isUnknownKeyError(error)) throw error;
      return remoteKeys.refetch().then((hasChanged) => {
        if (hasChanged) return callerOfToken(token, policy);
        throw remoteKeys.isLoaded ? error : keysUnavailable(error);
      });
    }
  };

  const authenticate = (credentials: Credentials): Caller | Promise<Caller> => {
    const token = readBearerToken(credentials.authorization);
    const { apiKey, resource } = credentials;
    const mayLackFactor = !requiresFactor || credentials.mayLackFactor === true;
    const policy = { mayLackFactor, resource };
    if (token !== null) return callerOfBearerToken(readProjectKey(token) ?? token, policy);
    if (!apiKey) return readers.length === 0 ? anonymous : firstCaller(readers, credentials, anonymous);
    const roleKey = isJwt(apiKey) ? apiKey : readProjectKey(apiKey);
    if (roleKey !== null) return callerOfBearerToken(roleKey, policy);
    const found = findApiKey(apiKey);
    return found instanceof Promise ? found.then(requireKnownKey) : requireKnownKey(found);
  };

  return {
    anonymous,
    authenticate,
    validateClaims,
    authenticateOrAnonymous: async (credentials) => {
      try {
        return { caller: await authenticate(credentials), rejection: null };
      } catch (error) {
        if (!(error instanceof ApiError) || error.kind !== "unauthenticated") throw error;
        return { caller: anonymous, rejection: error };
      }
    },
  };
}

/** Verifies tokens, and caches the callers of verified ones. Rejected tokens are not cached. */
class VerifiedTokens {
  readonly #options: AuthenticatorOptions;
  #requirements: Parameters<typeof verifyToken>[1];
  #remoteKeys: readonly TokenKey[] | undefined;
  /** Callers by the signature of their token, which is as unique as the token and shorter. */
  readonly #cache: RecentMap<string, CachedToken>;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    const { keys, jwtAudience: audience, requiredIssuer: issuer = null } = options;
    this.#requirements = { keys, audience, issuer };
    const weightOf = (_signature: string, { token: { length } }: CachedToken) =>
      Math.max(1 / options.jwtCacheEntries, length / CACHE_CHARACTERS);
    this.#cache = new RecentMap(1, weightOf, options.hits);
  }

  callerOf(token: string, databaseTime: number | null = null): Caller {
    const remoteKeys = this.#options.remoteKeys?.current();
    if (remoteKeys !== this.#remoteKeys) this.#replaceRemoteKeys(remoteKeys!);
    const signature = token.slice(token.lastIndexOf(".") + 1);
    const cached = this.#cache.get(signature);
    if (cached?.token === token && !isExpired(cached.caller)) return cached.caller;
    const caller = this.#verify(token, databaseTime);
    this.#cache.set(signature, { token, caller });
    return caller;
  }

  /** Replaces the keys and forgets the tokens that removed keys have verified. */
  #replaceRemoteKeys(remoteKeys: readonly TokenKey[]): void {
    const { signing, verifying } = this.#options.keys;
    this.#remoteKeys = remoteKeys;
    this.#requirements = { ...this.#requirements, keys: { signing, verifying: [...verifying, ...remoteKeys] } };
    this.#cache.clear();
  }

  #verify(token: string, databaseTime: number | null): Caller {
    const verified = verifyToken(token, this.#requirements, databaseTime);
    const found = claimAt(verified.claims, this.#options.jwtRoleClaim);
    const role = found === undefined ? this.#options.anonRole : found;
    if (typeof role !== "string" || role === "") {
      throw new CredentialError(
        "claimsInvalid",
        "The token names no role of this service.",
        "JWT role claim is not a name",
      );
    }
    return Object.freeze<Caller>({
      kind: "known",
      role,
      ...withRoleClaim(verified, role),
      expiresAt: verified.expiresAt,
      keyId: verified.keyId,
    });
  }
}

/**
 * Returns the claims with the role of the caller, as PostgREST passes them to SQL. A policy that reads the claim `role`,
 * such as by `auth.role()`, must not see another one: with PGRST_JWT_ROLE_CLAIM_KEY, the user may choose the token's own
 * claim `role`.
 */
function withRoleClaim(verified: Pick<Caller, "claims" | "claimsText">, role: string) {
  const { claims, claimsText } = verified;
  if (claims.role === role) return { claims, claimsText };
  const ofCaller: Claims = Object.freeze({ ...claims, role });
  return { claims: ofCaller, claimsText: serializeClaims(ofCaller) };
}

function anonymousCaller(role: string): Caller {
  const claims = Object.freeze({ role });
  return Object.freeze<Caller>({
    kind: "anonymous",
    role,
    claims,
    claimsText: serializeClaims(claims),
    expiresAt: null,
  });
}

async function firstCaller(
  readers: readonly CredentialReader[],
  credentials: Credentials,
  anonymous: Caller,
): Promise<Caller> {
  for (const read of readers) {
    const caller = await read(credentials);
    if (caller) return caller;
  }
  return anonymous;
}

/**
 * Reads the token of `Bearer eyJ…`; the scheme is case-insensitive. The rest of the header is the token, even if it is empty
 * or has spaces. A header of another scheme is rejected, because its sender does not intend to be anonymous; an empty one
 * counts as none.
 */
function readBearerToken(authorization: string | null): string | null {
  const header = authorization?.trim();
  if (!header) return null;
  const match = /^bearer(?:\s+(.*))?$/is.exec(header);
  if (match) return match[1] ?? "";
  throw new CredentialError(
    "schemeUnsupported",
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

function keysUnavailable(cause: unknown): ApiError {
  return unavailable("The keys of the token's issuer cannot be fetched at the moment.", cause);
}

/** The claim `required_aal` marks a sign-in at /auth/v1 that has proved only the password of an account with a second factor. */
function requireFactor(caller: Caller, mayLackFactor: boolean): Caller {
  if (mayLackFactor || caller.claims.required_aal === undefined) return caller;
  throw new CredentialError(
    "factorRequired",
    "Two-factor code required: verify a second factor at /auth/v1, and send the token of that response.",
    "insufficient_aal",
  );
}

function unlessRejected(caller: Caller, rejection: CredentialError | null): Caller {
  if (rejection) throw rejection;
  return caller;
}

function requireKnownKey(caller: Caller | null): Caller {
  if (caller) return caller;
  throw apiKeyInvalid();
}

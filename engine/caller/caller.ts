import type { ClientInfo } from "../auth/client-info.ts";
import { claimAt } from "../claim-path.ts";
import type { Config } from "../config/config.ts";
import { ApiError } from "../errors.ts";
import { type Hits, RecentMap } from "../recent-map.ts";
import type { FindKey } from "./api-keys.ts";
import { type Claims, hasExpired, isTooEarly, spellClaims } from "./claims.ts";
import type { DatabaseTime } from "./database-time.ts";
import type { TokenKeys } from "./keys.ts";
import { type VerifiedToken, verifyToken } from "./tokens.ts";
import { unauthorized } from "./unauthorized.ts";

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
export type AuthenticationResult = { readonly caller: Caller; readonly refusal: ApiError | null };

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

export type Callers = {
  readonly anonymous: Caller;
  /** The only way from a credential to a caller; a credential that is no good is a 401. */
  identify(credentials: Credentials): Caller | Promise<Caller>;
  /** As identify, but a credential that is no good is none: who leaves it to each field to refuse asks this way. */
  identifyOrAnonymous(credentials: Credentials): Promise<AuthenticationResult>;
  /** For who was identified a while ago, and is still there. */
  readonly objectionTo: ObjectionTo;
};

/** Why claims that were good are so no longer; null when they still are, which is known without waiting as a rule. */
export type ObjectionTo = (claims: Claims) => ApiError | null | Promise<ApiError | null>;

type CallersOptions = Pick<Config, "anonRole" | "jwtAudience" | "jwtRoleClaim" | "jwtCacheEntries"> & {
  readonly keys: TokenKeys;
  /** Without it only tokens are API keys. */
  readonly findKey?: FindKey;
  readonly objectionTo?: ObjectionTo;
  /** Asked about tokens that this gateway's clock finds too early. */
  readonly databaseTime?: DatabaseTime | undefined;
  /** Further kinds of credential, asked in turn when there is neither a bearer token nor an API key. */
  readonly readers?: readonly CredentialReader[];
  /** Of tokens that were shown before. */
  readonly hits?: Hits;
};

type Remembered = { readonly token: string; readonly caller: Caller };

/** Tokens together may take this many characters of the cache. */
const CACHE_CHARACTERS = 8_000_000;

export function makeCallers(options: CallersOptions): Callers {
  const { anonRole, jwtRoleClaim, keys, findKey = () => null, objectionTo = () => null, readers = [] } = options;
  const anonymous = Object.freeze<Caller>({
    kind: "anonymous",
    role: anonRole,
    claims: Object.freeze({ role: anonRole }),
    claimsText: spellClaims({ role: anonRole }),
    expiresAt: null,
  });
  const terms = { keys, audience: options.jwtAudience };
  const shareOfCache = (_signature: string, { token: { length } }: Remembered) =>
    Math.max(1 / options.jwtCacheEntries, length / CACHE_CHARACTERS);
  /** By the signatures of their tokens, which are as good and short; a token that is refused is never remembered. */
  const known = new RecentMap<string, Remembered>(1, shareOfCache, options.hits);

  const fromToken = (token: string, databaseTime: number | null = null): Caller => {
    const signature = token.slice(token.lastIndexOf(".") + 1);
    const remembered = known.get(signature);
    if (remembered?.token === token && !isOver(remembered.caller)) return remembered.caller;
    const caller = toCaller(verifyToken(token, terms, databaseTime), jwtRoleClaim, anonymous.role);
    known.set(signature, { token, caller });
    return caller;
  };

  const fromBearer = (token: string): Caller | Promise<Caller> => {
    try {
      return admitted(fromToken(token));
    } catch (error) {
      const { databaseTime } = options;
      if (!databaseTime || !isTooEarly(error)) throw error;
      const refuse = () => {
        throw error;
      };
      return databaseTime().then((now) => admitted(fromToken(token, now)), refuse);
    }
  };

  const admitted = (caller: Caller): Caller | Promise<Caller> => {
    const objection = objectionTo(caller.claims);
    return objection instanceof Promise
      ? objection.then((answer) => unless(answer, caller))
      : unless(objection, caller);
  };

  const fromKey = (key: string): Caller | Promise<Caller> => {
    if (isToken(key)) return fromBearer(key);
    const found = findKey(key);
    return found instanceof Promise ? found.then(orRefuse) : orRefuse(found);
  };

  const fromOthers = async (credentials: Credentials): Promise<Caller> => {
    for (const read of readers) {
      const caller = await read(credentials);
      if (caller) return caller;
    }
    return anonymous;
  };

  const identify = (credentials: Credentials): Caller | Promise<Caller> => {
    const token = bearerToken(credentials.authorization);
    if (token !== null) return fromBearer(token);
    if (credentials.apiKey) return fromKey(credentials.apiKey);
    return readers.length === 0 ? anonymous : fromOthers(credentials);
  };

  return {
    anonymous,
    identify,
    objectionTo,
    identifyOrAnonymous: async (credentials) => {
      try {
        return { caller: await identify(credentials), refusal: null };
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 401) throw error;
        return { caller: anonymous, refusal: error };
      }
    },
  };
}

/**
 * `Bearer eyJ…`; the scheme's letters may be of any case. All that follows it is the token, be it no word or two. An empty
 * header shows nothing; in any other one somebody shows what cannot be read, and is not taken for anonymous.
 */
function bearerToken(authorization: string | null): string | null {
  const shown = authorization?.trim();
  if (!shown) return null;
  const match = /^bearer(?:\s+(.*))?$/is.exec(shown);
  if (match) return match[1] ?? "";
  throw unauthorized(
    "INVALID_TOKEN",
    'The Authorization header cannot be read: send the word "Bearer", a space and a token.',
    "Unsupported authorization scheme",
  );
}

/** A token has dots (RFC 7519), a key has none. */
function isToken(key: string): boolean {
  return key.includes(".");
}

function isOver({ expiresAt }: Caller): boolean {
  return expiresAt !== null && hasExpired(expiresAt);
}

function unless(objection: ApiError | null, caller: Caller): Caller {
  if (objection) throw objection;
  return caller;
}

function orRefuse(found: Caller | null): Caller {
  if (found) return found;
  throw unauthorized("INVALID_TOKEN", "The API key is unknown, was revoked, or has expired.", "Invalid API key");
}

function toCaller(verified: VerifiedToken, roleClaim: Config["jwtRoleClaim"], anonRole: string): Caller {
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

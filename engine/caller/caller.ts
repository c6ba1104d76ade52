import type { Config } from "../config/config.ts";
import type { ApiError } from "../errors.ts";
import type { TokenKeys } from "./keys.ts";
import { type Claims, makeTokenVerifier, unauthorized, type VerifiedToken } from "./tokens.ts";

/** Who asks, whatever they showed: the database role to become and the claims that policies read. */
export type Caller = {
  readonly kind: "anonymous" | "known";
  readonly role: string;
  readonly claims: Claims;
  readonly claimsText: string;
  readonly expiresAt: number | null;
};

/** What a request shows of its sender, whichever interface it came by. */
export type Credentials = { readonly authorization: string | null };

/** Reads one kind of credential; null when the request shows none of that kind. */
export type CredentialReader = (credentials: Credentials) => Caller | null | Promise<Caller | null>;

export type Callers = {
  readonly anonymous: Caller;
  /** The only way from a credential to a caller; a credential that is no good is a 401. */
  identify(credentials: Credentials): Caller | Promise<Caller>;
  /** As identify, but a bad credential is no credential: GraphQL leaves it to each field to refuse. */
  identifyOrAnonymous(credentials: Credentials): Promise<Caller>;
};

type CallersOptions = Pick<Config, "anonRole" | "jwtAudience" | "jwtRoleClaim" | "jwtCacheEntries"> & {
  readonly keys: TokenKeys;
  /** Further kinds of credential, asked in turn when there is no bearer token. */
  readonly readers?: readonly CredentialReader[];
};

export function makeCallers(options: CallersOptions): Callers {
  const { anonRole, jwtRoleClaim, keys, readers = [] } = options;
  const anonymous = Object.freeze<Caller>({
    kind: "anonymous",
    role: anonRole,
    claims: Object.freeze({ role: anonRole }),
    claimsText: JSON.stringify({ role: anonRole }),
    expiresAt: null,
  });
  const verifyToken = makeTokenVerifier({ keys, audience: options.jwtAudience, cacheEntries: options.jwtCacheEntries });
  const callerOfToken = new WeakMap<VerifiedToken, Caller>();

  const fromBearer = (token: string): Caller => {
    const verified = verifyToken(token);
    const known = callerOfToken.get(verified);
    if (known) return known;
    const caller = toCaller(verified, jwtRoleClaim, anonymous.role);
    callerOfToken.set(verified, caller);
    return caller;
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
    return readers.length === 0 ? anonymous : fromOthers(credentials);
  };

  return {
    anonymous,
    identify,
    identifyOrAnonymous: async (credentials) => {
      try {
        return await identify(credentials);
      } catch (error) {
        if ((error as ApiError).status === 401) return anonymous;
        throw error;
      }
    },
  };
}

/** `Bearer eyJ…`; the scheme's letters may be of any case, and an empty token is none. */
function bearerToken(authorization: string | null): string | null {
  return /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1] ?? null;
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

function claimAt(claims: Claims, path: Config["jwtRoleClaim"]): unknown {
  return path.reduce<unknown>(
    (value, step) => (value as Record<string | number, unknown> | null | undefined)?.[step],
    claims,
  );
}

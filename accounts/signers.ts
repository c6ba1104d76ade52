import type { Config } from "#config";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";
import { cacheLookups } from "#runtime/concurrency";
import { isJsonObject } from "#runtime/json";
import type { Logger } from "#runtime/log";
import { type ClaimsHook, makeClaimsHook } from "./claims-hook.ts";
import { type Caller, callerFromClaims, isActedAs } from "./identity/caller.ts";
import { type Claims, parseClaims, serializeClaims } from "./identity/claims.ts";
import { CredentialError } from "./identity/credential-error.ts";
import { LIFETIMES } from "./identity/lifetimes.ts";
import type { RemoteKeySet } from "./identity/remote-key-set.ts";
import { openSealedText, sealText } from "./identity/sealed-text.ts";
import { requireIssuingKeys, type TokenKeys } from "./identity/token-keys.ts";
import { makeSignerStateQuery } from "./signer-states.ts";

/** The signers of addresses: policies are checked as the signer when an address is used. */
export type Signers = {
  /** Returns the encrypted signer that an address contains; the recipient of the address cannot read it. */
  seal(caller: Caller): Promise<string>;
  /**
   * Returns the signer with its current claims; throws if its account, grant or key is no longer valid. Null if `seal` has
   * not returned the text.
   */
  open(sealed: string): Promise<Caller | null>;
};

type Signer = {
  /** The claims of the token, except those that `currentClaims` names. */
  readonly claims: Claims;
  /** Names of claims whose values come from the account when the address is used. */
  readonly currentClaims: readonly string[];
  /** The role of the account; null for a signer without an account here. */
  readonly accountRole: string | null;
  /** The key that verified a signer without an account here; null if there is none. */
  readonly keyId: string | null;
  /** The administrator who acts as the signer. */
  readonly actor: Signer | null;
  /** The latest time at which the address ends, in seconds since 1970. */
  readonly until: number | null;
};

type RemoteKeys = Pick<RemoteKeySet, "current" | "refetch">;

type SignersOptions = {
  readonly asOwner: AsOwner;
  readonly keys: TokenKeys;
  /** The keys of another issuer, in addition to `keys`. */
  readonly remoteKeys: RemoteKeys | null;
  readonly config: Pick<Config, "claimsHook" | "jwtIssuer">;
  readonly log: Pick<Logger, "warn">;
};

const PURPOSE = "signers";
/** The time for which an address can still be used after its signer ended, as with tokens. */
const CACHE_MS = 4_000;
const MAX_CACHED = 10_000;

/** Claims of one token, which do not describe the signer. */
const CLAIMS_OF_TOKEN: ReadonlySet<string> = new Set(["exp", "nbf", "iat", "jti", "act"]);
const CLAIMS_OF_PAIR: readonly string[] = ["name", "permissions"];
const CLAIMS_OF_SESSION: readonly string[] = [
  ...CLAIMS_OF_PAIR,
  ...["email", "phone", "app_metadata", "user_metadata", "is_anonymous"],
];
/** Claims that the function of CLAIMS_HOOK did not add. */
const KEPT_WITH_HOOK: ReadonlySet<string> = new Set([
  ...["sub", "user_id", "iss", "aud", "role", "session_id", "sid", "aal", "amr"],
  ...["client_id", "scope", "oauth_grant_id"],
]);

export function makeSigners({ asOwner, keys, remoteKeys, config, log }: SignersOptions): Signers {
  const claimsHook = config.claimsHook === null ? null : makeClaimsHook(config.claimsHook);
  const queryStates = makeSignerStateQuery({
    asOwner,
    log,
    warning: "signers that ended are not detected: this needs the owner's connection (OWNER_DATABASE_URL)",
  });
  const stateOf = cacheLookups(queryStates, { rememberedMs: CACHE_MS, max: MAX_CACHED });
  /** True if the function of CLAIMS_HOOK has seen the claims, because we have issued the token. */
  const isHooked = ({ session_id: sessionId, iss }: Claims) =>
    claimsHook !== null && (typeof sessionId === "string" || iss === config.jwtIssuer);

  const describe = async ({ claims, keyId }: Pick<Caller, "claims" | "keyId">): Promise<Signer> => {
    const state = await stateOf(serializeClaims(claims));
    const isAccount = state?.is_account === true && claims.api_key === undefined;
    const currentClaims = isAccount ? claimsOfAccount(claims, isHooked(claims)) : [];
    const isKept = (name: string) =>
      !CLAIMS_OF_TOKEN.has(name) &&
      !currentClaims.includes(name) &&
      (!isAccount || !isHooked(claims) || KEPT_WITH_HOOK.has(name));
    return {
      claims: Object.fromEntries(Object.entries(claims).filter(([name]) => isKept(name))),
      currentClaims,
      accountRole: isAccount ? state.role : null,
      keyId: isAccount ? null : (keyId ?? null),
      actor: isJsonObject(claims.act) ? await describe({ claims: claims.act }) : null,
      until: null,
    };
  };

  const currentClaimsOf = async (signer: Signer): Promise<Claims> => {
    const { claims, currentClaims, accountRole, keyId } = signer;
    const state = await stateOf(serializeClaims(claims));
    const isStanding =
      state?.stands !== false &&
      (accountRole === null || (state?.is_account === true && state.role === accountRole)) &&
      (keyId === null || (await isKnownKey(keyId, keys, remoteKeys)));
    if (!isStanding) throw signerEnded();
    if (signer.actor) await currentClaimsOf(signer.actor);
    const ofAccount = currentClaims.map((name) => [name, state?.claims?.[name]] as const);
    const current = { ...claims, ...Object.fromEntries(ofAccount) };
    if (accountRole === null || !claimsHook || !isHooked(claims)) return current;
    const hooked = await applyHook(asOwner, claimsHook, { ...current, role: accountRole }, String(state!.claims!.id));
    // Policies must be checked in the role that the signer had when the address was signed.
    if (hooked.role !== claims.role) throw signerEnded();
    return { ...hooked, ...pickGrant(claims) };
  };

  return {
    async seal(caller) {
      const signer = await describe(caller);
      // An actor may act as another user for as long as its own token is valid.
      const until = isActedAs(caller) ? caller.expiresAt : null;
      const text = serializeClaims({ ...signer, until });
      return sealText(text, requireIssuingKeys(keys), PURPOSE).toString("base64url");
    },
    async open(sealed) {
      const text = openSealedText(Buffer.from(sealed, "base64url"), keys, PURPOSE);
      if (text === null) return null;
      const signer = parseClaims(text) as unknown as Signer;
      if (signer.until !== null && Number(signer.until) <= Date.now() / 1000) throw signerEnded();
      const claims = await currentClaimsOf(signer);
      const kind = claims.api_key === undefined ? "known" : "key";
      return callerFromClaims({ kind, claimsText: serializeClaims(claims), expiresAt: null });
    },
  };
}

/** The function of CLAIMS_HOOK gets all of them, including those that it leaves out. */
function claimsOfAccount(claims: Claims, isHooked: boolean): readonly string[] {
  if (!isHooked) return CLAIMS_OF_SESSION.filter((name) => name in claims);
  return typeof claims.session_id === "string" ? CLAIMS_OF_SESSION : CLAIMS_OF_PAIR;
}

async function isKnownKey(id: string, { verifying }: TokenKeys, remoteKeys: RemoteKeys | null): Promise<boolean> {
  const isKnown = () => [...verifying, ...(remoteKeys?.current() ?? [])].some((key) => key.id === id);
  return isKnown() || ((await remoteKeys?.refetch()) === true && isKnown());
}

/** Returns the claims that a token of the account would have now; a refusal of the hook ends the signer. */
function applyHook(asOwner: AsOwner, hook: ClaimsHook, claims: Claims, accountId: string): Promise<Claims> {
  const iat = Math.floor(Date.now() / 1000);
  const event = {
    user_id: accountId,
    authentication_method: "token_refresh",
    claims: { ...claims, iat, exp: iat + LIFETIMES.accessToken },
  };
  return inOwnerTransaction(asOwner, (client) => hook(client, event)).catch((error) => {
    throw error instanceof ApiError && error.code === "CLAIMS_HOOK_REJECTED" ? signerEnded(error) : error;
  });
}

/** The function of CLAIMS_HOOK cannot widen the grant. */
function pickGrant({ client_id, scope, oauth_grant_id }: Claims): Claims {
  return oauth_grant_id === undefined ? {} : { client_id, scope, oauth_grant_id };
}

function signerEnded(cause?: ApiError): CredentialError {
  const message = "The signer of this address may not use it any more; ask for a new one.";
  return new CredentialError("signerEnded", message, message, { cause });
}

import { hash } from "node:crypto";
import { type AsOwner, makeOwnerFunction } from "#postgres/database";
import { cacheLookups, type LookUpKeys } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { type Caller, callerFromClaims, type FindApiKey } from "./caller.ts";

type FindApiKeyOptions = {
  readonly asOwner: AsOwner;
  readonly log: Pick<Logger, "warn">;
};
type ApiKeyRow = { digest: string; claims: string; expires: number | null };

/** The time for which a revoked key still works, and a new key may be unknown. */
const CACHE_MS = 4_000;
const MAX_CACHED = 10_000;
/** Other values cannot be keys, so the database is not queried. */
const API_KEY_PATTERN = /^[!-~]{32,256}$/;

const USE_API_KEYS = `
  select pg_catalog.encode(key_hash, 'hex') as digest, claims::pg_catalog.text, extract(epoch from expires_at)::pg_catalog.float8 as expires
  from auth.use_api_keys($1)`;

/** Looks up keys in Postgres, in batches of one query at a time, and caches the results. */
export function makeFindApiKey({ asOwner, log }: FindApiKeyOptions): FindApiKey {
  const queryAsOwner = makeOwnerFunction<ApiKeyRow>({
    asOwner,
    text: USE_API_KEYS,
    log,
    warning: "keys of auth.api_keys are refused: only the owner (OWNER_DATABASE_URL) can look them up",
  });
  const findByDigests: LookUpKeys<Caller> = async (digests) => {
    const rows = await queryAsOwner([digests.map(toBytes)]);
    return new Map(rows.map((row) => [row.digest, callerOfRow(row)]));
  };
  const findByDigest = cacheLookups(findByDigests, { rememberedMs: CACHE_MS, max: MAX_CACHED });

  return (key) => {
    if (!API_KEY_PATTERN.test(key)) return null;
    const caller = findByDigest(hash("sha256", key, "hex"));
    return caller instanceof Promise ? caller : caller && unlessExpired(caller);
  };
}

function callerOfRow({ claims, expires }: ApiKeyRow): Caller {
  return callerFromClaims({ kind: "key", claimsText: claims, expiresAt: expires });
}

function toBytes(digest: string): Buffer {
  return Buffer.from(digest, "hex");
}

function unlessExpired(caller: Caller): Caller | null {
  return caller.expiresAt === null || Date.now() < caller.expiresAt * 1000 ? caller : null;
}

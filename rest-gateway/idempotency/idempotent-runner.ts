import { createHash, hkdfSync } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Caller, quotaKey } from "#accounts/identity";
import type { Config } from "#config";
import { type GatewayRequest, type GatewayResponse, HttpError } from "#http";
import type { ServiceCounters } from "#http/observability";
import { asLogin, ContextError, type RunStatement, responseTooLarge } from "#postgres/database";
import { ApiError, commandLine, decryptBytes, encryptBytes } from "#runtime";
import { type AbortLike, retryDelay, toSignal } from "#runtime/concurrency";

/** The hint for a response that is too large to store. */
const TOO_LARGE_HINT = "Ask for less of it, with Prefer: return=minimal or select.";
const KEY_IN_USE = "IDEMPOTENCY_KEY_IN_USE";
/** transaction_resolution_unknown. If the transaction was committed, the next attempt finds the stored response. */
const OUTCOME_UNKNOWN = "08007";

/** Claims that differ between two tokens of the same user. */
const TOKEN_SPECIFIC_CLAIMS = new Set(["iat", "exp", "nbf", "jti"]);

const KEY_PATTERN = /^[\x21-\x7e]{1,255}$/;

export type KeyedRequest = Pick<IdempotentChange, "key" | "scope" | "make"> & {
  readonly caller: Caller;
  readonly request: Pick<GatewayRequest, "headers" | "signal" | "connection">;
  /** The parts that a retry must repeat unchanged, besides the headers in `shaping`. */
  readonly parts: readonly (string | Buffer)[];
  /** Names of the headers that change the response or the effect of the request. */
  readonly shaping: readonly string[];
};

export type IdempotentRunner = {
  run(change: KeyedRequest, transact: IdempotentChange["transact"]): Promise<GatewayResponse>;
  /** Runs in a transaction that has begun. If another attempt is running, this one is refused instead of waiting. */
  runInTransaction(change: KeyedRequest, runStatement: RunStatement): Promise<GatewayResponse>;
};

const RETENTION_SECONDS = 86_400;
const NO_WAITING = AbortSignal.abort();

/** Makes a runner that executes requests with an Idempotency-Key at most once, with the limits of this deployment. */
export function makeIdempotentRunner(
  { statementTimeout, maxBodyBytes }: Pick<Config, "statementTimeout" | "maxBodyBytes">,
  counts: ServiceCounters,
): IdempotentRunner {
  const limits = {
    waitMilliseconds: statementTimeout * 1000,
    maxBytes: maxBodyBytes,
    onReplay: () => counts.replays++,
  };
  const toChange = ({ caller, request, parts, shaping, ...change }: KeyedRequest) => ({
    ...change,
    identity: idempotencyScopeOf(caller),
    quota: { key: quotaKey(caller, () => request.connection().address), role: caller.role },
    request: [...parts, ...shaping.map((name) => String(request.headers[name] ?? ""))],
    lifetimeSeconds: RETENTION_SECONDS,
    signal: request.signal,
  });
  return {
    run: (change, transact) => runOnce({ ...toChange(change), transact }, limits),
    runInTransaction: (change, runStatement) =>
      runOnce({ ...toChange(change), transact: (work) => work(runStatement), signal: NO_WAITING }, limits),
  };
}

type Quota = { readonly key: string; readonly role: string };

export type IdempotentChange = {
  readonly key: string;
  /** The part of the service. Each part has its own keys. */
  readonly scope: string;
  /** The caller's scope; the stored response is returned to nobody else. */
  readonly identity: string;
  /** The quota of keys and of stored bytes, by caller and role; roles that bypass policies have none. */
  readonly quota: Quota;
  /** The parts of the request that a retry must repeat unchanged. */
  readonly request: readonly (string | Buffer)[];
  readonly lifetimeSeconds: number;
  /** Aborted when the client disconnects. A change that has begun is finished anyway. */
  readonly signal: AbortLike;
  /** Runs the work in a transaction, which is rolled back if the work rejects. */
  transact(work: (runStatement: RunStatement) => Promise<GatewayResponse>): Promise<GatewayResponse>;
  /** Makes the change and returns the response to store with it. */
  make(runStatement: RunStatement): Promise<GatewayResponse>;
};

type RunOnceOptions = {
  /** The time to wait for a concurrent attempt; 0 stands for no limit. */
  readonly waitMilliseconds: number;
  /** The largest response body that is stored. */
  readonly maxBytes: number;
  readonly onReplay?: () => void;
};

/**
 * Makes a change at most once per key: the response is committed with the change and returned for each retry. A failed
 * attempt is rolled back and stores nothing, so the next one finds the key unused.
 */
export async function runOnce(
  change: IdempotentChange,
  { waitMilliseconds, maxBytes, onReplay = () => {} }: RunOnceOptions,
): Promise<GatewayResponse> {
  const storageKey = deriveStorageKey(change.scope, change.identity, change.key);
  const fingerprint = fingerprintParts(change.request);
  const deadline = performance.now() + (waitMilliseconds || Number.POSITIVE_INFINITY);

  const attempt = async (runStatement: RunStatement): Promise<GatewayResponse> => {
    const claim = await claimKey(asLogin(runStatement), storageKey, change.quota);
    if (claim === "taken") throw keyInUse();
    if (claim !== "free") {
      const response = toReplay(claim, claim.fingerprint === fingerprint);
      onReplay();
      return response;
    }
    const response = await change.make(runStatement);
    if (response.body !== null && Buffer.byteLength(response.body) > maxBytes)
      throw responseTooLarge(maxBytes, TOO_LARGE_HINT);
    const isStored = await storeResponse(asLogin(runStatement), storageKey, { fingerprint, response }, change);
    if (!isStored) throw keyInUse();
    return response;
  };

  let clientGone: AbortSignal | undefined;
  for (let attempts = 1; ; attempts++) {
    try {
      return await change.transact(attempt);
    } catch (error) {
      if (!isRetryable(error) || performance.now() > deadline) throw error;
      // Waits without a connection: many retries of one slow change must not block other writers.
      clientGone ??= toSignal(change.signal);
      const delay = sleep(retryDelay(attempts), true, { signal: clientGone });
      const isStillThere = await delay.catch(() => false);
      if (!isStillThere) throw error;
    }
  }
}

function isRetryable(error: unknown): boolean {
  return error instanceof ApiError && (error.code === KEY_IN_USE || error.code === OUTCOME_UNKNOWN);
}

function toReplay({ response, isBrief }: StoredResponse, isSameRequest: boolean): GatewayResponse {
  if (!isSameRequest) throw keyReused();
  return { ...response, headers: { ...response.headers, "Idempotent-Replayed": isBrief ? "status-only" : "true" } };
}

export function keyReused(): HttpError {
  return new HttpError(422, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key was used for another request.", {
    details: "Nothing was changed. Method, address, body and the headers that shape the answer must be the same.",
    hint: "Generate a new key for each change, and send the same key with each retry of that change.",
  });
}

function keyInUse(): HttpError {
  return new HttpError(409, KEY_IN_USE, "A request with this Idempotency-Key is still being processed.", {
    hint: "Retry later: the response is then the same as the first one.",
    headers: { "Retry-After": "1" },
  });
}

/**
 * Returns the scope of a caller's idempotency keys: the same for all tokens of a user, so that a retry may use a new token.
 * Tokens without a subject share a scope if their other claims are equal; there, only the key separates responses.
 */
export function idempotencyScopeOf({ role, claims }: Caller): string {
  const { sub } = claims;
  if (typeof sub === "string" && sub !== "") return JSON.stringify([role, sub]);
  const lasting = Object.entries(claims).filter(([name]) => !TOKEN_SPECIFIC_CLAIMS.has(name));
  return JSON.stringify([role, Object.fromEntries(lasting.sort(([a], [b]) => (a < b ? -1 : 1)))]);
}

/** Reads `Idempotency-Key: 8e03978e-40d5-43e8-bc93-6894a57f9324`, unchanged, including quotes; null without the header. */
export function readIdempotencyKey(headers: IncomingHttpHeaders): string | null {
  const key = headers["idempotency-key"];
  if (key === undefined) return null;
  if (typeof key === "string" && KEY_PATTERN.test(key)) return key;
  throw new HttpError(400, "INVALID_IDEMPOTENCY_KEY", "An Idempotency-Key has 1 to 255 visible ASCII characters.", {
    hint: "Generate a random key, such as a UUID, for each change, and send the same key with each retry of that change.",
  });
}

const NEW_LINE = 10;

type ClaimResult = "taken" | "free" | StoredResponse;

/** invalid_schema_name, undefined_function, insufficient_privilege */
const NOT_INSTALLED_CODES = new Set(["3F000", "42883", "42501"]);

/** unique_violation, serialization_failure */
const ALREADY_STORED_CODES = new Set(["23505", "40001"]);

/** Returns the stored response. If there is none, locks the key until the transaction ends, unless another one has locked it. */
async function claimKey(runStatement: RunStatement, storageKey: StorageKey, quota: Quota): Promise<ClaimResult> {
  try {
    const text = "select is_claimed::pg_catalog.text, answer from content_service.claim_response($1, $2, $3)";
    const { rows } = await runStatement({ text, values: [storageKey.id, quota.key, quota.role] });
    const [isClaimed, stored] = rows[0]!;
    if (stored) return decryptResponse(Buffer.from(stored, "base64"), storageKey);
    return isClaimed === "true" ? "free" : "taken";
  } catch (error) {
    throw isNotInstalled(error) ? idempotencyUnavailable(error) : error;
  }
}

/**
 * Stores the response in the transaction of the change. Returns false if one is stored already: a repeatable read or
 * serializable transaction whose snapshot is older than that response detects it only here.
 */
async function storeResponse(
  runStatement: RunStatement,
  storageKey: StorageKey,
  stored: StoredResponse,
  { quota, lifetimeSeconds }: Pick<IdempotentChange, "quota" | "lifetimeSeconds">,
): Promise<boolean> {
  const [whole, brief] = [stored, toBrief(stored)].map((each) => encryptResponse(each, storageKey).toString("base64"));
  const values = [storageKey.id, whole!, String(lifetimeSeconds), quota.key, quota.role, brief!];
  try {
    await runStatement({ text: "select content_service.store_response($1, $2, $3, $4, $5, $6)", values });
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError && ALREADY_STORED_CODES.has(error.code ?? "")) return false;
    throw error;
  }
}

/** Returns true if the schema is not installed. A ContextError is excluded: only the switch to the caller's role failed. */
function isNotInstalled(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError && !(error instanceof ContextError) && NOT_INSTALLED_CODES.has(error.code ?? "")
  );
}

function idempotencyUnavailable(cause: unknown): HttpError {
  return new HttpError(501, "IDEMPOTENCY_UNAVAILABLE", "This database cannot store responses for an Idempotency-Key.", {
    details: "Nothing was changed.",
    hint: `Send the request without the key, or ask the operator to run ${commandLine("migrate")} and to grant the login the rights that authenticator has in schema content_service.`,
    cause,
  });
}

/** The id under which a response is stored, and the secret that encrypts it. */
export type StorageKey = { readonly id: string; readonly secret: Buffer };

export type StoredResponse = {
  readonly fingerprint: string;
  readonly response: GatewayResponse;
  /** True if only the status is stored, because the whole response exceeded a quota. */
  readonly isBrief?: boolean;
};

/** Keeps the parts that a retry needs: the fact that the change was made, and the location of its result. */
function toBrief({ fingerprint, response: { status, headers } }: StoredResponse): StoredResponse {
  const { Location: location } = headers;
  const kept = location === undefined ? {} : { Location: location };
  return { fingerprint, response: { status, headers: kept, body: null }, isBrief: true };
}

/** Derives the id and the secret from the idempotency key and the caller, so that a stored response cannot be read without them. */
export function deriveStorageKey(scope: string, identity: string, key: string): StorageKey {
  const derived = Buffer.from(hkdfSync("sha256", key, identity, scope, 64));
  return { id: derived.toString("hex", 0, 32), secret: derived.subarray(32) };
}

/** Returns a hash that identifies a request. */
export function fingerprintParts(parts: readonly (string | Buffer)[]): string {
  const hash = createHash("sha256");
  // The lengths distinguish ["ab", "c"] from ["a", "bc"].
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest("base64");
}

export function encryptResponse(
  { fingerprint, response, isBrief = false }: StoredResponse,
  { secret }: StorageKey,
): Buffer {
  const { status, headers, body } = response;
  const head = JSON.stringify({ fingerprint, status, headers, isEmpty: body === null, isBrief });
  // JSON.stringify escapes line feeds, so the first one ends the head.
  return encryptBytes([`${head}\n`, body ?? ""], secret);
}

export function decryptResponse(sealed: Buffer, { secret }: StorageKey): StoredResponse {
  const plain = decryptBytes(sealed, secret);
  const end = plain.indexOf(NEW_LINE);
  const { fingerprint, status, headers, isEmpty, isBrief = false } = JSON.parse(plain.toString("utf8", 0, end));
  return { fingerprint, response: { status, headers, body: isEmpty ? null : plain.subarray(end + 1) }, isBrief };
}

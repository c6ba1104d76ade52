import { createHash, hkdfSync } from "node:crypto";
import pg from "pg";
import { ContextError } from "../../engine/database/database-errors.ts";
import type { RunStatement } from "../../engine/database/transaction.ts";
import { decryptBytes, encryptBytes } from "../../engine/secrets.ts";
import { HttpError } from "../../http/http-error.ts";
import type { GatewayResponse } from "../http/response.ts";

const NEW_LINE = 10;

type ClaimResult = "taken" | "free" | StoredResponse;

/** invalid_schema_name, undefined_function, insufficient_privilege */
const NOT_INSTALLED_CODES = new Set(["3F000", "42883", "42501"]);

/** unique_violation, serialization_failure */
const ALREADY_STORED_CODES = new Set(["23505", "40001"]);

/** Returns the stored response. If there is none, locks the key until the transaction ends, unless another one has locked it. */
export async function claimKey(runStatement: RunStatement, storageKey: StorageKey): Promise<ClaimResult> {
  try {
    const text = "select is_claimed::text, answer from private.claim_response($1)";
    const { rows } = await runStatement({ text, values: [storageKey.id] });
    const [isClaimed, stored] = rows[0]!;
    if (stored) return decryptResponse(Buffer.from(stored, "base64"), storageKey);
    return isClaimed === "true" ? "free" : "taken";
  } catch (error) {
    throw isNotInstalled(error) ? idempotencyUnavailable(error) : error;
  }
}

/**
 * Stores the response in the transaction of the change. False if one is stored already: a repeatable read or serializable
 * transaction whose snapshot is older than that response finds out only here.
 */
export async function storeResponse(
  runStatement: RunStatement,
  storageKey: StorageKey,
  stored: StoredResponse,
  seconds: number,
): Promise<boolean> {
  const values = [storageKey.id, encryptResponse(stored, storageKey).toString("base64"), String(seconds)];
  try {
    await runStatement({ text: "select private.store_response($1, $2, $3)", values });
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError && ALREADY_STORED_CODES.has(error.code ?? "")) return false;
    throw error;
  }
}

/** A ContextError is excluded: switching to the caller's role failed, which says nothing about the installation. */
function isNotInstalled(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError && !(error instanceof ContextError) && NOT_INSTALLED_CODES.has(error.code ?? "")
  );
}

function idempotencyUnavailable(cause: unknown): HttpError {
  return new HttpError(501, "IDEMPOTENCY_UNAVAILABLE", "This database cannot store responses for an Idempotency-Key.", {
    details: "Nothing was changed.",
    hint: "Send the request without the key, or ask the operator to run npm run migrate and to grant the login the rights that authenticator has in schema private.",
    cause,
  });
}

/** The id under which a response is stored, and the secret that encrypts it. */
export type StorageKey = { readonly id: string; readonly secret: Buffer };

export type StoredResponse = { readonly fingerprint: string; readonly response: GatewayResponse };

/** Derives both from the idempotency key and the caller, so that a stored response cannot be read without them. */
export function deriveStorageKey(scope: string, identity: string, key: string): StorageKey {
  const derived = Buffer.from(hkdfSync("sha256", key, identity, scope, 64));
  return { id: derived.toString("hex", 0, 32), secret: derived.subarray(32) };
}

/** A hash that identifies a request. */
export function fingerprintParts(parts: readonly (string | Buffer)[]): string {
  const hash = createHash("sha256");
  // The lengths distinguish ["ab", "c"] from ["a", "bc"].
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest("base64");
}

export function encryptResponse({ fingerprint, response }: StoredResponse, { secret }: StorageKey): Buffer {
  const { status, headers, body } = response;
  const head = JSON.stringify({ fingerprint, status, headers, isEmpty: body === null });
  // JSON.stringify escapes line feeds, so the first one ends the head.
  return encryptBytes([`${head}\n`, body ?? ""], secret);
}

export function decryptResponse(sealed: Buffer, { secret }: StorageKey): StoredResponse {
  const plain = decryptBytes(sealed, secret);
  const end = plain.indexOf(NEW_LINE);
  const { fingerprint, status, headers, isEmpty } = JSON.parse(plain.toString("utf8", 0, end));
  return { fingerprint, response: { status, headers, body: isEmpty ? null : plain.subarray(end + 1) } };
}

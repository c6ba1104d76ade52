import pg from "pg";
import type { Ask } from "../../engine/database/as-login.ts";
import { ContextError } from "../../engine/database/faults.ts";
import { ApiError } from "../../engine/errors.ts";
import { decryptResponse, encryptResponse, type StorageKey, type StoredResponse } from "./stored-response.ts";

export type ClaimResult = "taken" | "free" | StoredResponse;

/** invalid_schema_name, undefined_function, insufficient_privilege */
const NOT_INSTALLED_CODES = new Set(["3F000", "42883", "42501"]);

/** unique_violation, serialization_failure */
const ALREADY_STORED_CODES = new Set(["23505", "40001"]);

/** Returns the stored response. If there is none, locks the key until the transaction ends, unless another one has locked it. */
export async function claimKey(ask: Ask, place: StorageKey): Promise<ClaimResult> {
  try {
    const text = "select is_claimed::text, answer from private.claim_answer($1)";
    const { rows } = await ask({ text, values: [place.id] });
    const [isClaimed, answer] = rows[0]!;
    if (answer) return decryptResponse(Buffer.from(answer, "base64"), place);
    return isClaimed === "true" ? "free" : "taken";
  } catch (error) {
    throw isNotInstalled(error) ? unavailable(error) : error;
  }
}

/**
 * Stores the response in the transaction of the change. False if one is stored already: a repeatable read or serializable
 * transaction whose snapshot is older than that response finds out only here.
 */
export async function storeResponse(
  ask: Ask,
  place: StorageKey,
  answer: StoredResponse,
  seconds: number,
): Promise<boolean> {
  const values = [place.id, encryptResponse(answer, place).toString("base64"), String(seconds)];
  try {
    await ask({ text: "select private.keep_answer($1, $2, $3)", values });
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

function unavailable(cause: unknown): ApiError {
  return new ApiError(501, "IDEMPOTENCY_UNAVAILABLE", "This database cannot store responses for an Idempotency-Key.", {
    details: "Nothing was changed.",
    hint: "Send the request without the key, or ask the operator to run npm run migrate and to grant the login the rights that authenticator has in schema private.",
    cause,
  });
}

import pg from "pg";
import type { Ask } from "../../engine/database/as-login.ts";
import { ContextError } from "../../engine/database/faults.ts";
import { ApiError } from "../../engine/errors.ts";
import { type KeptAnswer, type Place, seal, unseal } from "./seal.ts";

export type Claim = "taken" | "free" | KeptAnswer;

/** No such schema, no such function, or not for this login. */
const MISSING = new Set(["3F000", "42883", "42501"]);

/** unique_violation, serialization_failure */
const KEPT_ALREADY = new Set(["23505", "40001"]);

/** What is kept at the place; where that is nothing, claims it until the transaction ends unless another one has it. */
export async function claimAnswer(ask: Ask, place: Place): Promise<Claim> {
  try {
    const text = "select is_claimed::text, answer from private.claim_answer($1)";
    const { rows } = await ask({ text, values: [place.id] });
    const [isClaimed, answer] = rows[0]!;
    if (answer) return unseal(Buffer.from(answer, "base64"), place);
    return isClaimed === "true" ? "free" : "taken";
  } catch (error) {
    throw isMissing(error) ? unavailable(error) : error;
  }
}

/**
 * Committed with whatever else the transaction does, or not at all. False when there is an answer already: a transaction
 * that sees the database as it was before the place was free (repeatable read, serializable) learns of it only here.
 */
export async function keepAnswer(ask: Ask, place: Place, answer: KeptAnswer, seconds: number): Promise<boolean> {
  const values = [place.id, seal(answer, place).toString("base64"), String(seconds)];
  try {
    await ask({ text: "select private.keep_answer($1, $2, $3)", values });
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError && KEPT_ALREADY.has(error.code ?? "")) return false;
    throw error;
  }
}

/** A role that cannot be had is the caller's matter, and no lack of the database. */
function isMissing(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !(error instanceof ContextError) && MISSING.has(error.code ?? "");
}

function unavailable(cause: unknown): ApiError {
  return new ApiError(501, "IDEMPOTENCY_UNAVAILABLE", "This database cannot keep answers for an Idempotency-Key.", {
    details: "Nothing was changed.",
    hint: "Send the request without the key; or have the operator run npm run migrate, and grant the login what authenticator has in schema private.",
    cause,
  });
}

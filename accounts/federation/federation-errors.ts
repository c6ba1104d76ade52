import pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError, CREDENTIALS_REQUIRED, shortenText } from "#runtime";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../identity/client-info.ts";

const MAX_CAUSE_LENGTH = 300;
const LOG_FAILURE = `select auth.log_event('federation.refused', null, ${CLIENT_INFO_SQL}, $2)`;

/** The state is unknown: it was used, has expired, or belongs to another browser. */
export function signInEnded(): ApiError {
  return new ApiError("invalid", "SIGN_IN_ENDED", "This sign-in has expired, or was started in another browser.", {
    hint: "Start the sign-in again.",
  });
}

export function providerRefused(cause?: unknown): ApiError {
  return new ApiError("unauthenticated", "PROVIDER_REFUSED", "The provider did not sign you in.", {
    hint: "Start again, and accept what the provider asks for.",
    challenge: CREDENTIALS_REQUIRED,
    cause: withoutDetails(cause),
  });
}

/** The provider's response is invalid. The reason is only logged, because it would help an attacker. */
export function assertionInvalid(cause?: unknown): ApiError {
  return new ApiError("unauthenticated", "INVALID_ASSERTION", "The response of the provider is not valid.", {
    hint: "Start again. If that does not help, an administrator can find the reason in the audit log.",
    challenge: CREDENTIALS_REQUIRED,
    cause: withoutDetails(cause),
  });
}

export function providerUnavailable(cause: unknown, { isTimeout = false } = {}): ApiError {
  return new ApiError(
    isTimeout ? "timeout" : "upstreamFailed",
    "PROVIDER_UNAVAILABLE",
    "The provider is unavailable, or its response is invalid.",
    {
      hint: "Try again in a moment.",
      cause: withoutDetails(cause),
    },
  );
}

/** Converts unexpected errors: a misconfigured provider (an invalid URL or key) makes the libraries throw only when it is used. */
export async function asProviderError<T>(use: () => T | Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (error) {
    throw error instanceof ApiError ? error : providerUnavailable(error);
  }
}

export function accountConflict(): ApiError {
  return new ApiError("conflict", "RESOURCE_CONFLICT", "An account with this e-mail address exists already.", {
    hint: "Sign in to that account and link the provider, or verify the address at both sides.",
  });
}

export function identityTaken(): ApiError {
  return new ApiError("conflict", "RESOURCE_CONFLICT", "This identity is linked to another user.");
}

export function tooManyIdentities(): ApiError {
  return new ApiError("invalid", "VALIDATION_ERROR", "You have linked 50 identities already.", {
    hint: "Unlink one that you no longer use.",
  });
}

export function signUpClosed(): ApiError {
  return new ApiError(
    "forbidden",
    "SIGN_UP_CLOSED",
    "No account has this identity, and this provider does not create accounts.",
    {
      hint: "Ask an administrator for an account.",
    },
  );
}

export function emailMissing(): ApiError {
  return new ApiError(
    "forbidden",
    "EMAIL_REQUIRED",
    "The provider sent no e-mail address, which an account requires.",
    {
      hint: "Allow the provider to share it, and start again.",
    },
  );
}

/** Returns the cause without properties, for the log: the libraries attach codes, tokens and whole responses to their errors. */
function withoutDetails(cause: unknown): Error | undefined {
  if (cause === undefined) return undefined;
  if (!(cause instanceof Error)) return new Error("unknown");
  const { code } = cause as NodeJS.ErrnoException;
  return new Error(typeof code === "string" ? `${cause.message} (${code})` : cause.message);
}

/** Runs the work of a federated sign-in; if it throws, writes the error's code and cause to the audit log. */
export async function auditFailures<T>(
  asOwner: AsOwner,
  provider: string | null,
  clientInfo: ClientInfo,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code: reason, cause } = describeFailure(error);
    const because = cause instanceof Error ? shortenText(cause.message, MAX_CAUSE_LENGTH) : undefined;
    const details = JSON.stringify({ provider, reason, because });
    await inOwnerTransaction(asOwner, (client) =>
      client.query(LOG_FAILURE, [clientInfoParameter(clientInfo), details]),
    );
    throw error;
  }
}

/** SQLSTATE internal_error stands for any error without a code. */
function describeFailure(error: unknown): { readonly code: string; readonly cause?: unknown } {
  if (error instanceof ApiError) return error;
  return { code: (error instanceof pg.DatabaseError && error.code) || "XX000", cause: error };
}

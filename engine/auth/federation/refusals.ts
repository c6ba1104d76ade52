import { ApiError } from "../../errors.ts";

const CHALLENGE = { "WWW-Authenticate": "Bearer" };

/** The browser has nothing to come back for: its sign-in was ended, has expired, or was begun by another browser. */
export function signInEnded(): ApiError {
  return new ApiError(400, "SIGN_IN_ENDED", "This sign-in has ended, or was begun in another browser.", {
    hint: "Begin again.",
  });
}

export function providerRefused(cause?: unknown): ApiError {
  return new ApiError(401, "PROVIDER_REFUSED", "The provider did not sign you in.", {
    hint: "Begin again, and agree to what the provider asks.",
    headers: CHALLENGE,
    cause: plain(cause),
  });
}

/** What the provider is said to have said does not hold. Which check it was is for the log: who forges need not know. */
export function statementRefused(cause?: unknown): ApiError {
  return new ApiError(401, "INVALID_ASSERTION", "What came back from the provider cannot be accepted.", {
    hint: "Begin again. If that does not help, an administrator finds the reason in the audit log.",
    headers: CHALLENGE,
    cause: plain(cause),
  });
}

export function providerUnavailable(cause: unknown, { isTimeout = false } = {}): ApiError {
  return new ApiError(
    isTimeout ? 504 : 502,
    "PROVIDER_UNAVAILABLE",
    "The provider cannot be reached, or answers oddly.",
    {
      hint: "Try again in a moment.",
      cause: plain(cause),
    },
  );
}

/** Of a row that somebody has written wrong (an address that is none, another key than one) the libraries say so only when it is used. */
export async function inWords<T>(use: () => T | Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (error) {
    throw error instanceof ApiError ? error : providerUnavailable(error);
  }
}

export function accountConflict(): ApiError {
  return new ApiError(409, "RESOURCE_CONFLICT", "There is an account with this e-mail address already.", {
    hint: "Sign in to it as before, and link the provider there; or verify the address at both ends.",
  });
}

export function identityTaken(): ApiError {
  return new ApiError(409, "RESOURCE_CONFLICT", "Another user signs in by this identity.");
}

export function signUpsClosed(): ApiError {
  return new ApiError(
    403,
    "SIGN_UP_CLOSED",
    "Nobody here has this identity, and it does not get an account by itself.",
    {
      hint: "Ask an administrator for an account.",
    },
  );
}

export function emailMissing(): ApiError {
  return new ApiError(403, "EMAIL_REQUIRED", "The provider tells no e-mail address, which an account wants.", {
    hint: "Let the provider share it, and begin again.",
  });
}

/** A cause as the log may have it: the libraries hang codes, tokens and whole answers on their errors. */
function plain(cause: unknown): Error | undefined {
  if (cause === undefined) return undefined;
  if (!(cause instanceof Error)) return new Error("unknown");
  const { code } = cause as NodeJS.ErrnoException;
  return new Error(typeof code === "string" ? `${cause.message} (${code})` : cause.message);
}

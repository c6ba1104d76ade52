import { ApiError, CREDENTIALS_REQUIRED } from "#runtime";

/** The message is the same whether or not the user exists. */
export function wrongCredentials(): ApiError {
  return new ApiError("unauthenticated", "INVALID_CREDENTIALS", "The user name or the password is wrong.", {
    challenge: CREDENTIALS_REQUIRED,
  });
}

export function confirmationRequired(): ApiError {
  return new ApiError("forbidden", "EMAIL_NOT_CONFIRMED", "Confirm the e-mail address or the phone number first.");
}

export function codeRequired(): ApiError {
  return factorMissing("Send the code of the authenticator app, or an unused backup code, as code.");
}

/** The error for a sign-in that has proved the password only, and would change how the account is protected. */
export function secondFactorRequired(): ApiError {
  return factorMissing(
    "Sign in with a code, or verify a second factor at /auth/v1, and send the token of that response.",
  );
}

function factorMissing(hint: string): ApiError {
  return new ApiError("unauthenticated", "MFA_REQUIRED", "Two-factor code required.", {
    hint,
    challenge: CREDENTIALS_REQUIRED,
  });
}

export function signInAgain(): ApiError {
  return new ApiError(
    "unauthenticated",
    "AUTH_REQUIRED",
    "The sign-in has expired, or the account has changed; sign in again.",
    {
      challenge: CREDENTIALS_REQUIRED,
    },
  );
}

const WRONG_CODE = "The code is wrong, has been used, or is no longer valid.";

/** During a login the status is 401, because the client is not authenticated. */
export function wrongCodeAtLogin(): ApiError {
  return new ApiError("unauthenticated", "INVALID_CODE", WRONG_CODE, { challenge: CREDENTIALS_REQUIRED });
}

/** A user who is signed in gets the status 400. */
export function wrongCode(): ApiError {
  return new ApiError("invalid", "INVALID_CODE", WRONG_CODE, { details: [{ field: "code", message: WRONG_CODE }] });
}

export function accountDisabled(): ApiError {
  return new ApiError("forbidden", "ACCOUNT_DISABLED", "This account is disabled.", {
    hint: "Ask an administrator to enable it.",
  });
}

export function tooManyAttempts(seconds: number): ApiError {
  return new ApiError("rateLimited", "TOMNY", "Too many failed attempts; try again later.", {
    retryAfterSeconds: seconds,
  });
}

/** The error for callers without an account here: an API key without an owner, or a token of another issuer. */
export function accountRequired(): ApiError {
  return new ApiError("forbidden", "PERMISSION_DENIED", "This operation requires a user account.");
}

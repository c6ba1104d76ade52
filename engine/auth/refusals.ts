import { ApiError } from "../errors.ts";

const CHALLENGE = { "WWW-Authenticate": "Bearer" };

/** The same words whether the user exists or not. */
export function wrongCredentials(): ApiError {
  return new ApiError(401, "INVALID_CREDENTIALS", "The user name or the password is wrong.", { headers: CHALLENGE });
}

export function codeRequired(): ApiError {
  return new ApiError(401, "MFA_REQUIRED", "This account asks for a code besides.", {
    hint: "Send the code of the authenticator app, or an unused backup code, as code.",
    headers: CHALLENGE,
  });
}

export function signInAgain(): ApiError {
  return new ApiError(401, "AUTH_REQUIRED", "This took too long, or the account has changed; sign in again.", {
    headers: CHALLENGE,
  });
}

const WRONG_CODE = "The code is wrong, has been used, or is no longer valid.";

/** At a sign-in: who asks has not proved to be anybody yet. */
export function wrongCodeAtLogin(): ApiError {
  return new ApiError(401, "INVALID_CODE", WRONG_CODE, { headers: CHALLENGE });
}

/** By who is signed in. */
export function wrongCode(): ApiError {
  return new ApiError(400, "INVALID_CODE", WRONG_CODE, { details: [{ field: "code", message: WRONG_CODE }] });
}

export function accountDisabled(): ApiError {
  return new ApiError(403, "ACCOUNT_DISABLED", "This account is disabled.", {
    hint: "Ask an administrator to enable it.",
  });
}

export function tooManyAttempts(seconds: number): ApiError {
  return new ApiError(429, "TOMNY", "Too many failed attempts; try again later.", {
    headers: { "Retry-After": String(seconds) },
  });
}

/** Who is signed in as nobody here: by a key without an owner, or by another issuer's token. */
export function noAccount(): ApiError {
  return new ApiError(403, "PERMISSION_DENIED", "This is for users who have an account.");
}

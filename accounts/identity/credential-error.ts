import { ApiError } from "#runtime";

/** The code of the error for each reason why a credential is rejected. */
const CODES = {
  accountChanged: "TOKEN_EXPIRED",
  accountDeleted: "INVALID_TOKEN",
  accountDisabled: "INVALID_TOKEN",
  apiKeyInvalid: "INVALID_TOKEN",
  claimsInvalid: "VERIFICATION_FAILED",
  credentialMissing: "AUTH_REQUIRED",
  factorRequired: "MFA_REQUIRED",
  grantEnded: "INVALID_TOKEN",
  keyUnknown: "INVALID_TOKEN",
  refreshTokenExpired: "TOKEN_EXPIRED",
  refreshTokenInvalid: "INVALID_TOKEN",
  refreshTokenUsed: "INVALID_TOKEN",
  schemeUnsupported: "INVALID_TOKEN",
  sessionEnded: "INVALID_TOKEN",
  signatureInvalid: "INVALID_TOKEN",
  signerEnded: "INVALID_TOKEN",
  tokenEmpty: "INVALID_TOKEN",
  tokenExpired: "TOKEN_EXPIRED",
  tokenMalformed: "INVALID_TOKEN",
  tokenNotYetValid: "VERIFICATION_FAILED",
  tokenOfOtherType: "INVALID_TOKEN",
} as const;

export type CredentialErrorReason = keyof typeof CODES;

type CredentialErrorOptions = { readonly details?: string; readonly cause?: unknown };

/** A 401 error with the challenge of RFC 6750 §3. The description is PostgREST's text if it has one, because clients check for `JWT expired`. */
export class CredentialError extends ApiError {
  readonly reason: CredentialErrorReason;

  constructor(
    reason: CredentialErrorReason,
    message: string,
    description: string,
    { details, cause }: CredentialErrorOptions = {},
  ) {
    super("unauthenticated", CODES[reason], message, {
      challenge: { error: "invalid_token", description },
      details: details ?? null,
      cause,
    });
    this.reason = reason;
  }
}

export function apiKeyInvalid(): CredentialError {
  return new CredentialError(
    "apiKeyInvalid",
    "The API key is unknown, was revoked, or has expired.",
    "Invalid API key",
  );
}

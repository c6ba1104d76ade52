import { CredentialError, type CredentialErrorReason } from "#accounts/identity";
import { errorHeaders, toHttpError } from "#http";
import { storageError } from "./storage-error.ts";

/** The messages of Supabase's storage service, which clients search for; other reasons have our message. */
const MESSAGES: Partial<Readonly<Record<CredentialErrorReason, string>>> = {
  keyUnknown: "signature verification failed",
  signatureInvalid: "signature verification failed",
  tokenEmpty: "Invalid Compact JWS",
  tokenExpired: '"exp" claim timestamp check failed',
  tokenMalformed: "Invalid Compact JWS",
};

/** A missing or refused credential has status 400 at Supabase's storage service, and 403 in the body. */
export function explainRefusedCredential(thrown: unknown): unknown {
  const error = toHttpError(thrown);
  if (error.status !== 401) return thrown;
  const isMissing = error.code === "AUTH_REQUIRED";
  const known = thrown instanceof CredentialError ? MESSAGES[thrown.reason] : undefined;
  const refused = isMissing
    ? storageError("MissingAuthorization", undefined, {
        cause: thrown,
        hint: "Send an API key in the header apikey, or a token in Authorization.",
      })
    : storageError("AccessDenied", known ?? error.message, { cause: thrown, hint: known && error.message });
  // The challenge tells clients that read it, such as Studio, to renew their token.
  return refused.withHeaders(errorHeaders(error));
}

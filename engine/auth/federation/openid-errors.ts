import * as openid from "openid-client";
import type { ApiError } from "../../errors.ts";
import { assertionInvalid, providerRefused, providerUnavailable } from "./federation-errors.ts";

/** Errors that mean an unavailable or misconfigured provider, not a forged response. */
const UNAVAILABLE_CODES: readonly unknown[] = [
  "OAUTH_TIMEOUT",
  "OAUTH_HTTP_REQUEST_FORBIDDEN",
  "OAUTH_REQUEST_PROTOCOL_FORBIDDEN",
  "OAUTH_RESPONSE_IS_NOT_CONFORM",
  "OAUTH_RESPONSE_IS_NOT_JSON",
  "OAUTH_PARSE_ERROR",
  "OAUTH_MISSING_SERVER_METADATA",
  "OAUTH_INVALID_SERVER_METADATA",
];
/** The user declined, or the code is unknown to the provider (RFC 6749 §5.2). */
const REFUSAL_CODES: readonly string[] = ["access_denied", "invalid_grant", "login_required", "interaction_required"];

/** Converts errors of openid-client to API errors. */
export function throwAsApiError(error: unknown): never {
  if (error instanceof openid.AuthorizationResponseError || error instanceof openid.ResponseBodyError) {
    const providerError = new Error(`The provider returned the error ${error.error}`);
    throw REFUSAL_CODES.includes(error.error) ? providerRefused(providerError) : providerUnavailable(providerError);
  }
  const isForged =
    error instanceof openid.ClientError && error.code !== undefined && !UNAVAILABLE_CODES.includes(error.code);
  throw isForged ? assertionInvalid(rootOf(error)) : toProviderUnavailable(error);
}

/** The error for a failed request to the provider. */
export function toProviderUnavailable(error: unknown): ApiError {
  const isTimeout = error instanceof openid.ClientError && error.code === "OAUTH_TIMEOUT";
  return providerUnavailable(rootOf(error), { isTimeout });
}

/** The library's message is generic; the innermost cause names the claim. */
function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? rootOf(error.cause) : error;
}

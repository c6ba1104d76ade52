import * as openid from "openid-client";
import type { ApiError } from "../../errors.ts";
import { providerRefused, providerUnavailable, statementRefused } from "./refusals.ts";

/** Nobody has forged anything: the other end is away, or is no such provider. */
const OUT_OF_REACH: readonly unknown[] = [
  "OAUTH_TIMEOUT",
  "OAUTH_HTTP_REQUEST_FORBIDDEN",
  "OAUTH_REQUEST_PROTOCOL_FORBIDDEN",
  "OAUTH_RESPONSE_IS_NOT_CONFORM",
  "OAUTH_RESPONSE_IS_NOT_JSON",
  "OAUTH_PARSE_ERROR",
  "OAUTH_MISSING_SERVER_METADATA",
  "OAUTH_INVALID_SERVER_METADATA",
];
/** The user says no, or the code is none that the provider knows (RFC 6749 §5.2). */
const SAID_BY_PROVIDER: readonly string[] = [
  "access_denied",
  "invalid_grant",
  "login_required",
  "interaction_required",
];

/** What openid-client throws, in our words. */
export function fromLibrary(error: unknown): never {
  if (error instanceof openid.AuthorizationResponseError || error instanceof openid.ResponseBodyError) {
    const told = new Error(`The provider says: ${error.error}`);
    throw SAID_BY_PROVIDER.includes(error.error) ? providerRefused(told) : providerUnavailable(told);
  }
  const isForged =
    error instanceof openid.ClientError && error.code !== undefined && !OUT_OF_REACH.includes(error.code);
  throw isForged ? statementRefused(rootOf(error)) : toUnavailable(error);
}

/** Whatever went wrong when the provider was asked about itself. */
export function toUnavailable(error: unknown): ApiError {
  const isTimeout = error instanceof openid.ClientError && error.code === "OAUTH_TIMEOUT";
  return providerUnavailable(rootOf(error), { isTimeout });
}

/** The library's own words are general; what it wraps says which claim it was. */
function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? rootOf(error.cause) : error;
}

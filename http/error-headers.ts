import { CREDENTIALS_REQUIRED } from "../engine/errors.ts";
import type { HttpError } from "./http-error.ts";

/** The response headers of an error. */
export function errorHeaders({ challenge, retryAfterSeconds, headers }: HttpError): Readonly<Record<string, string>> {
  return {
    ...(challenge && { "WWW-Authenticate": bearerChallenge(challenge) }),
    ...(retryAfterSeconds !== null && { "Retry-After": String(retryAfterSeconds) }),
    ...headers,
  };
}

/** Adds the challenge that a 401 response must have (RFC 9110 §15.5.2), unless the error has one. */
export function withBearerChallenge(error: HttpError): HttpError {
  if (error.status !== 401 || errorHeaders(error)["WWW-Authenticate"] !== undefined) return error;
  return error.withHeaders({ "WWW-Authenticate": bearerChallenge(CREDENTIALS_REQUIRED) });
}

function bearerChallenge(challenge: NonNullable<HttpError["challenge"]>): string {
  if (challenge.error === null) return "Bearer";
  return `Bearer error="${challenge.error}", error_description="${challenge.description}"`;
}

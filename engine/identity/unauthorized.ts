import { ApiError } from "../errors.ts";

export type UnauthorizedDetails = { readonly details?: string; readonly cause?: unknown };

/**
 * A 401 error with the challenge of RFC 6750 §3. The description is also the message of the table interface, and PostgREST's
 * text if it has one, because clients check for `JWT expired`.
 */
export function unauthorized(
  code: string,
  message: string,
  description: string,
  { details, cause }: UnauthorizedDetails = {},
): ApiError {
  return new ApiError("unauthenticated", code, message, {
    challenge: { error: "invalid_token", description },
    tableMessage: description,
    details: details ?? null,
    cause,
  });
}

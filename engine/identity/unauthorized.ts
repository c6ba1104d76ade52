import { ApiError } from "../errors.ts";

export type UnauthorizedDetails = { readonly details?: string; readonly cause?: unknown };

/**
 * RFC 6750 section 3: the challenge names the fault, in words that may stand in a header. They are PostgREST's where it has
 * some, and the table interface's message: clients look for `JWT expired`.
 */
export function unauthorized(
  code: string,
  message: string,
  description: string,
  { details, cause }: UnauthorizedDetails = {},
): ApiError {
  return new ApiError(401, code, message, {
    headers: { "WWW-Authenticate": `Bearer error="invalid_token", error_description="${description}"` },
    tableMessage: description,
    details: details ?? null,
    cause,
  });
}

import { ApiError } from "../errors.ts";

/** RFC 6750 section 3: the challenge names the fault, in words that may stand in a header. */
export function unauthorized(code: string, message: string, description: string, cause?: unknown): ApiError {
  const challenge = `Bearer error="invalid_token", error_description="${description}"`;
  return new ApiError(401, code, message, { headers: { "WWW-Authenticate": challenge }, cause });
}

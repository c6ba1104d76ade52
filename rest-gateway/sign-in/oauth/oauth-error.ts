import { errorHeaders, type GatewayResponse, HttpError, jsonResponse } from "#http";

/** The codes of RFC 6749, 6750, 7009, 7591 and 8707. */
type OAuthErrorCode =
  | "invalid_client"
  | "invalid_client_metadata"
  | "invalid_grant"
  | "invalid_redirect_uri"
  | "invalid_request"
  | "invalid_scope"
  | "invalid_target"
  | "invalid_token"
  | "insufficient_scope"
  | "unsupported_grant_type";

/** An error in the format of OAuth: `{"error": "invalid_grant", "error_description": "…"}`. */
export class OAuthError extends HttpError {
  readonly error: OAuthErrorCode;

  constructor(error: OAuthErrorCode, message: string, { status = 400, headers = {} } = {}) {
    super(status, error, message, { headers });
    this.error = error;
  }
}

/** The error for a client that is unknown, or does not prove its identity. */
export function invalidClient(message: string): OAuthError {
  return new OAuthError("invalid_client", message, { status: 401 });
}

/** Runs a handler whose errors have OAuth's format. Other errors, such as those of limits, have the format of `/auth/v1`. */
export async function withOAuthErrors(handle: () => Promise<GatewayResponse>): Promise<GatewayResponse> {
  try {
    return await handle();
  } catch (thrown) {
    if (!(thrown instanceof OAuthError)) throw thrown;
    const { status, error, message: error_description } = thrown;
    return jsonResponse(status, { error, error_description }, errorHeaders(thrown));
  }
}

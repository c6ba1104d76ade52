import { errorHeaders, type GatewayResponse, type HttpError, jsonResponse } from "#http";

/** Where Supabase runs edge functions, which this service does not. */
export const FUNCTIONS_PREFIX = "/functions/v1";

/** The error as Supabase's functions word it: clients show `message`. */
export function toFunctionsErrorResponse(error: HttpError): GatewayResponse {
  const { status, code, message } = error;
  const body =
    status === 404
      ? { code: "NOT_FOUND", message: "Requested function was not found: this service runs no edge functions." }
      : { code, message };
  return jsonResponse(status, body, errorHeaders(error));
}

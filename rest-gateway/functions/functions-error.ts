import { errorHeaders, type GatewayResponse, HttpError, jsonResponse } from "#http";

export const FUNCTIONS_PREFIX = "/functions/v1";

// The codes, statuses and messages are those of Supabase's functions.

export function functionNotFound(): HttpError {
  return new HttpError(404, "NOT_FOUND", "Requested function was not found");
}

export function tokenRequired(): HttpError {
  return new HttpError(401, "AUTH_REQUIRED", "Missing authorization header");
}

/** The function could not be loaded. */
export function bootFailed(): HttpError {
  return new HttpError(503, "BOOT_ERROR", "Function failed to start (please check logs)");
}

export function workerFailed(): HttpError {
  return new HttpError(500, "WORKER_ERROR", "Function exited due to an error (please check logs)");
}

/** The function has exceeded its memory or its processor time. */
export function workerLimit(): HttpError {
  const message = "Function failed due to not having enough compute resources (please check logs)";
  return new HttpError(546, "WORKER_LIMIT", message);
}

/** One of several requests in progress has ended their thread; it is unknown which one. */
export function threadEnded(): HttpError {
  return new HttpError(
    503,
    "WORKER_ENDED",
    "Another request of this function, or this one, ended their thread; it may have had effects (please check logs)",
  );
}

export function idleTimeout(seconds: number): HttpError {
  return new HttpError(504, "IDLE_TIMEOUT", `Request idle timeout limit (${seconds}s) reached`);
}

export function tooManyFunctions(): HttpError {
  return new HttpError(503, "WORKER_LIMIT", "Too many functions are running at once; try again shortly.", {
    headers: { "Retry-After": "1" },
  });
}

/** Clients tell errors of the service from those of the function by this header. */
const RELAY_HEADERS = {
  "X-Relay-Error": "true",
  "Access-Control-Expose-Headers": "X-Relay-Error, X-Request-Id, Retry-After",
};

/** Converts the error to the words of Supabase's functions: clients show `message`. */
export function toFunctionsErrorResponse(error: HttpError): GatewayResponse {
  const { status, code, message } = error;
  const body =
    status === 404
      ? { code: "NOT_FOUND", message: functionNotFound().message }
      : { code: status === 401 ? 401 : code, message };
  return jsonResponse(status, body, { ...errorHeaders(error), ...RELAY_HEADERS });
}

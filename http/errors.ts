import { fieldErrorsOf } from "#runtime";
import {
  type ErrorBodyShape,
  type ErrorVerbosity,
  toEnvelope,
  toGraphQLBody,
  toMinimalTableBody,
  toTableBody,
} from "./error-bodies.ts";
import { errorHeaders, type HttpError } from "./http-error.ts";
import { type GatewayRequest, isPathUnder, TABLE_PREFIX } from "./request.ts";
import { type GatewayResponse, jsonResponse } from "./response.ts";

/** Settings of error bodies. */
type ErrorFormat = { readonly errorBody: ErrorBodyShape; readonly errorVerbosity: ErrorVerbosity };

/** Shows the error as a page if a browser has navigated to the address; otherwise returns the response as it is. */
export type NegotiateErrorPage = (
  error: HttpError,
  request: ErrorPageRequest,
  response: GatewayResponse,
) => GatewayResponse;

export type ErrorPageRequest = Pick<GatewayRequest, "id" | "method" | "path" | "rawQuery" | "headers">;

/** Returns the error response in the format of the interface at the path. */
export function toErrorResponse(
  refusal: HttpError,
  { id, path }: Pick<GatewayRequest, "id" | "path">,
  { errorBody, errorVerbosity }: ErrorFormat,
): GatewayResponse {
  const error = withRetryAfter(refusal);
  if (isPathUnder(TABLE_PREFIX, path)) return toTableErrorResponse(error, errorVerbosity);
  return jsonResponse(
    error.status,
    errorBodyFor(error, { id, path }, { errorBody, errorVerbosity }),
    errorHeaders(error),
  );
}

const TEMPORARY_STATUSES: ReadonlySet<number> = new Set([429, 503]);

/** Temporary errors have Retry-After, even if SQL raised them. */
function withRetryAfter(error: HttpError): HttpError {
  const hasRetryAfter = errorHeaders(error)["Retry-After"] !== undefined;
  return hasRetryAfter || !TEMPORARY_STATUSES.has(error.status) ? error : error.withHeaders({ "Retry-After": "1" });
}

/** A code that is a valid header token. */
const HEADER_TOKEN = /^[\w!#$%&'*+.^`|~:/-]+$/;

/** The code is in a header too, because responses to HEAD have no body. */
function toTableErrorResponse(error: HttpError, verbosity: ErrorVerbosity): GatewayResponse {
  const body = verbosity === "minimal" ? toMinimalTableBody(error) : toTableBody(error);
  const headers: Record<string, string> = HEADER_TOKEN.test(body.code)
    ? { "Proxy-Status": `PostgREST; error=${body.code}` }
    : {};
  const response = jsonResponse(error.status, body, { ...headers, ...errorHeaders(error) });
  return error.reason === null ? response : { ...response, reason: error.reason };
}

function errorBodyFor(
  error: HttpError,
  { id: requestId, path }: Pick<GatewayRequest, "id" | "path">,
  { errorBody, errorVerbosity }: ErrorFormat,
): object {
  if (isPathUnder("/graphql", path)) return { errors: [toGraphQLBody(error, errorVerbosity)] };
  return toEnvelope(error, errorBody, { requestId, at: new Date(), fieldErrors: fieldErrorsOf(error) });
}

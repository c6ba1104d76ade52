import type { KeyedCounter } from "#http/observability";
import { shuttingDown } from "#postgres/database";
import type { Logger } from "#runtime/log";
import { CREDENTIAL_HEADERS } from "./credentials.ts";
import type { ErrorBodyShape, ErrorVerbosity } from "./error-bodies.ts";
import { type NegotiateErrorPage, toErrorResponse } from "./errors.ts";
import { type HttpError, notFound, toHttpError } from "./http-error.ts";
import { type GatewayHandler, type GatewayRequest, type GatewayRoutes, isPathUnder } from "./request.ts";
import type { GatewayResponse, ResponseBody } from "./response.ts";
import { dispatchMethod } from "./route-patterns.ts";

type RouterOptions = {
  readonly routes: GatewayRoutes;
  /** The handlers of all paths below a prefix; they check methods themselves. */
  readonly folders?: Readonly<Record<string, GatewayHandler>>;
  /** The handler of all other paths; the default is 404. */
  readonly fallback?: GatewayHandler;
  readonly errorBody: ErrorBodyShape;
  readonly errorVerbosity?: ErrorVerbosity;
  readonly negotiateErrorPage?: NegotiateErrorPage;
  /** The formats of error responses below these prefixes, which differ from the conventional one. */
  readonly errorFormats?: Readonly<Record<string, FormatError>>;
  readonly log: Logger;
  readonly errors?: KeyedCounter;
  /** False while the service stops: requests get 503. */
  readonly acceptsRequests?: () => boolean;
  /** Called when a request names an object that the catalog does not have. */
  readonly onUnknownName?: () => void;
};

type FormatError = (error: HttpError, request: GatewayRequest) => GatewayResponse;

/** Codes of errors that unknown tables, columns, functions, relations and paths cause, among others. */
const UNKNOWN_NAME_CODES: ReadonlySet<string> = new Set([
  ...["PGRST200", "PGRST202", "PGRST204", "PGRST205", "42703", "42883", "42P01"],
  ...["RESOURCE_NOT_FOUND", "VALIDATION_ERROR"],
]);

/**
 * Finds the handler, and turns errors into responses in the format of the interface: the one place that catches them.
 */
export function makeRouter({
  routes,
  folders = {},
  fallback = () => {
    throw notFound();
  },
  errorBody,
  errorVerbosity = "verbose",
  negotiateErrorPage = (_error, _request, response) => response,
  errorFormats = {},
  log,
  errors,
  acceptsRequests = () => true,
  onUnknownName,
}: RouterOptions): (request: GatewayRequest) => Promise<GatewayResponse<ResponseBody>> {
  const exactPaths = new Map(Object.entries(routes).map(([path, methods]) => [path, new Map(Object.entries(methods))]));
  const folderHandlers = Object.entries(folders);
  const formats = Object.entries(errorFormats);

  const route: GatewayHandler = (request) => {
    request.stages.enter("route");
    // An exact path takes precedence over the prefix that it lies below.
    const methods = exactPaths.get(request.path);
    if (methods) return dispatchMethod(methods, request);
    for (const [path, handle] of folderHandlers) if (isPathUnder(path, request.path)) return handle(request);
    return fallback(request);
  };

  /**
   * Counts every request against the rate limit: by address at once if there are no credentials, otherwise at the latest
   * after the response.
   */
  return async (request) => {
    try {
      if (!acceptsRequests()) throw shuttingDown();
      if (!hasCredentials(request)) request.admit(null);
      const response = await route(request);
      request.admit(null);
      return response;
    } catch (thrown) {
      const error = toHttpError(preferRateLimitError(request, thrown));
      errors?.add(error.code);
      if (UNKNOWN_NAME_CODES.has(error.code)) onUnknownName?.();
      const level = error.status >= 500 ? "error" : "debug";
      log[level]({ request: request.id, code: error.code, status: error.status, err: error.cause }, error.message);
      const [, format] = formats.find(([prefix]) => isPathUnder(prefix, request.path)) ?? [];
      if (format) return format(error, request);
      const response = toErrorResponse(error, request, { errorBody, errorVerbosity });
      return negotiateErrorPage(error, request, response);
    }
  };
}

/** A rate-limit error takes precedence over the error of the request. */
function preferRateLimitError(request: GatewayRequest, thrown: unknown): unknown {
  try {
    request.admit(null);
    return thrown;
  } catch (tooMany) {
    return tooMany;
  }
}

function hasCredentials({ headers, rawQuery }: GatewayRequest): boolean {
  return CREDENTIAL_HEADERS.some((name) => headers[name] !== undefined) || /(^|&)api_?key=/.test(rawQuery);
}

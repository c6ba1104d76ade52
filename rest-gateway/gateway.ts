import { shuttingDown } from "../engine/database/faults.ts";
import type { ErrorBody, ErrorVerbosity } from "../engine/errors.ts";
import {
  type ApiError,
  faultsOf,
  toApiError,
  toEnvelope,
  toGraphQLBody,
  toMinimalTableBody,
  toTableBody,
} from "../engine/errors.ts";
import type { Logger } from "../engine/log.ts";
import type { KeyedCounter } from "../engine/metrics/keyed-counter.ts";
import { methodNotAllowed, notFound } from "../engine/wrong-address.ts";
import { type Body, type GatewayRequest, type GatewayResponse, type Handler, json } from "./http.ts";
import { PREFIX as TABLES } from "./table/prefix.ts";

/** Path -> method -> handler. */
export type Routes = Readonly<Record<string, Readonly<Record<string, Handler>>>>;

type GatewayOptions = {
  readonly routes: Routes;
  /** Interfaces that have everything below a path, and look at methods themselves. */
  readonly folders?: Readonly<Record<string, Handler>>;
  /** Answers every other address; without it, there is nothing at them. */
  readonly otherwise?: Handler;
  readonly errorBody: ErrorBody;
  readonly tableErrorVerbosity?: ErrorVerbosity;
  readonly log: Logger;
  readonly errors?: KeyedCounter;
  /** False: the service stops, and each request is told so. */
  readonly takesRequests?: () => boolean;
  /** Called when a request named what the catalogue does not have. */
  readonly onUnknownName?: () => void;
};

/** Codes of requests for tables, columns, functions, relations and addresses that there are not, among others. */
const UNKNOWN_NAME: ReadonlySet<string> = new Set([
  ...["PGRST200", "PGRST202", "PGRST204", "PGRST205", "42703", "42883", "42P01"],
  ...["RESOURCE_NOT_FOUND", "VALIDATION_ERROR"],
]);

/** Finds the handler and turns whatever it throws into the answer of the interface that was asked: caught once, here. */
export function makeGateway({
  routes,
  folders = {},
  otherwise = () => {
    throw notFound();
  },
  errorBody,
  tableErrorVerbosity = "verbose",
  log,
  errors,
  takesRequests = () => true,
  onUnknownName,
}: GatewayOptions): (request: GatewayRequest) => Promise<GatewayResponse<Body>> {
  const known = new Map(Object.entries(routes).map(([path, methods]) => [path, new Map(Object.entries(methods))]));
  const inFolders = Object.entries(folders);

  const answer: Handler = (request) => {
    request.stages.enter("route");
    // An address of its own goes before the folder that it lies in.
    const methods = known.get(request.path);
    if (methods) return dispatch(methods, request);
    for (const [path, handle] of inFolders) if (isUnder(path, request.path)) return handle(request);
    return otherwise(request);
  };

  /** Each request is counted: who shows nothing by the address at once, and who was not known after all afterwards. */
  return async (request) => {
    try {
      if (!takesRequests()) throw shuttingDown();
      if (!showsCredentials(request)) request.admit(null);
      const answered = await answer(request);
      request.admit(null);
      return answered;
    } catch (thrown) {
      const error = toApiError(whenCounted(request, thrown));
      errors?.add(error.code);
      if (UNKNOWN_NAME.has(error.code)) onUnknownName?.();
      const level = error.status >= 500 ? "error" : "debug";
      log[level]({ request: request.id, code: error.code, status: error.status, err: error.cause }, error.message);
      return refuse(error, request, { errorBody, tableErrorVerbosity });
    }
  };
}

/** What is to be told: that there were too many requests goes before what was wrong with this one. */
function whenCounted(request: GatewayRequest, thrown: unknown): unknown {
  try {
    request.admit(null);
    return thrown;
  } catch (tooMany) {
    return tooMany;
  }
}

/** To the handler of the method, among those that an address has. */
export function dispatch(methods: ReadonlyMap<string, Handler>, request: GatewayRequest): ReturnType<Handler> {
  const { method } = request;
  const handler = methods.get(method) ?? (method === "HEAD" ? methods.get("GET") : undefined);
  if (handler) return handler(request);
  const allow = allowed([...methods.keys()]);
  if (method === "OPTIONS") return { status: 204, headers: { Allow: allow }, body: null };
  throw methodNotAllowed(method, allow);
}

/** How the deployment has errors told. */
export type ErrorShape = { readonly errorBody: ErrorBody; readonly tableErrorVerbosity: ErrorVerbosity };

/** The refusal in the words of the interface that the path belongs to. */
export function refuse(
  refusal: ApiError,
  { id, path }: Pick<GatewayRequest, "id" | "path">,
  { errorBody, tableErrorVerbosity }: ErrorShape,
): GatewayResponse {
  const error = sayingWhen(refusal);
  if (isUnder(TABLES, path)) return refuseTable(error, tableErrorVerbosity);
  return json(error.status, bodyOf(error, id, path, errorBody), error.headers);
}

const FOR_NOW: ReadonlySet<number> = new Set([429, 503]);

/** What is refused for now says when to come back, where SQL refused it too. */
function sayingWhen(error: ApiError): ApiError {
  const isSaid = error.headers["Retry-After"] !== undefined;
  return isSaid || !FOR_NOW.has(error.status) ? error : error.withHeaders({ "Retry-After": "1" });
}

/** A code that a header can hold. */
const TOKEN = /^[\w!#$%&'*+.^`|~:/-]+$/;

/** The code stands in a header as well, for HEAD has no body. */
function refuseTable(error: ApiError, verbosity: ErrorVerbosity): GatewayResponse {
  const body = verbosity === "minimal" ? toMinimalTableBody(error) : toTableBody(error);
  const told: Record<string, string> = TOKEN.test(body.code) ? { "Proxy-Status": `PostgREST; error=${body.code}` } : {};
  const answer = json(error.status, body, { ...told, ...error.headers });
  return error.reason === null ? answer : { ...answer, reason: error.reason };
}

function bodyOf(error: ApiError, requestId: string, path: string, errorBody: ErrorBody): object {
  if (isUnder("/graphql", path)) return { errors: [toGraphQLBody(error)] };
  return toEnvelope(error, errorBody, { requestId, at: new Date(), faults: faultsOf(error) });
}

const CREDENTIALS = ["authorization", "apikey", "x-api-key", "cookie"] as const;

function showsCredentials({ headers, rawQuery }: GatewayRequest): boolean {
  return CREDENTIALS.some((name) => headers[name] !== undefined) || /(^|&)api_?key=/.test(rawQuery);
}

export function isUnder(folder: string, path: string): boolean {
  return path.startsWith(folder) && (path.length === folder.length || path[folder.length] === "/");
}

function allowed(methods: readonly string[]): string {
  const derived = methods.includes("GET") ? ["HEAD", "OPTIONS"] : ["OPTIONS"];
  return [...new Set([...methods, ...derived])].sort().join(", ");
}

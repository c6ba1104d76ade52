import type { ErrorBody } from "../engine/errors.ts";
import { ApiError, faultsOf, toApiError, toEnvelope, toGraphQLBody, toTableBody } from "../engine/errors.ts";
import type { Logger } from "../engine/log.ts";
import { type Body, type GatewayRequest, type GatewayResponse, type Handler, json } from "./http.ts";
import { PREFIX as TABLES } from "./table/prefix.ts";

/** Path -> method -> handler. */
export type Routes = Readonly<Record<string, Readonly<Record<string, Handler>>>>;

type GatewayOptions = {
  readonly routes: Routes;
  /** Interfaces that have everything below a path, and look at methods themselves. */
  readonly folders?: Readonly<Record<string, Handler>>;
  readonly errorBody: ErrorBody;
  readonly log: Logger;
};

/** Finds the handler and turns whatever it throws into the answer of the interface that was asked: caught once, here. */
export function makeGateway({
  routes,
  folders = {},
  errorBody,
  log,
}: GatewayOptions): (request: GatewayRequest) => Promise<GatewayResponse<Body>> {
  const known = new Map(Object.entries(routes).map(([path, methods]) => [path, new Map(Object.entries(methods))]));

  const answer: Handler = (request) => {
    request.stages.enter("route");
    const folder = Object.keys(folders).find((path) => isUnder(path, request.path));
    if (folder) return folders[folder]!(request);
    const methods = known.get(request.path);
    if (!methods) throw notFound();
    const handler = methods.get(request.method) ?? (request.method === "HEAD" ? methods.get("GET") : undefined);
    if (handler) return handler(request);
    const allow = allowed([...methods.keys()]);
    if (request.method === "OPTIONS") return { status: 204, headers: { Allow: allow }, body: null };
    throw new ApiError(405, "METHOD_NOT_ALLOWED", `This address does not take ${request.method}.`, {
      hint: `It takes ${allow}.`,
      headers: { Allow: allow },
    });
  };

  return async (request) => {
    try {
      return await answer(request);
    } catch (thrown) {
      const error = toApiError(thrown);
      const level = error.status >= 500 ? "error" : "debug";
      log[level]({ request: request.id, code: error.code, status: error.status, err: error.cause }, error.message);
      return refuse(error, request, errorBody);
    }
  };
}

/** The refusal in the words of the interface that the path belongs to. */
export function refuse(
  error: ApiError,
  { id, path }: Pick<GatewayRequest, "id" | "path">,
  errorBody: ErrorBody,
): GatewayResponse {
  if (isUnder(TABLES, path)) return refuseTable(error);
  return json(error.status, bodyOf(error, id, path, errorBody), error.headers);
}

/** A code that a header can hold. */
const TOKEN = /^[\w!#$%&'*+.^`|~:/-]+$/;

/** The code stands in a header as well, for HEAD has no body. */
function refuseTable(error: ApiError): GatewayResponse {
  const body = toTableBody(error);
  const told: Record<string, string> = TOKEN.test(body.code) ? { "Proxy-Status": `PostgREST; error=${body.code}` } : {};
  const answer = json(error.status, body, { ...told, ...error.headers });
  return error.reason === null ? answer : { ...answer, reason: error.reason };
}

function bodyOf(error: ApiError, requestId: string, path: string, errorBody: ErrorBody): object {
  if (isUnder("/graphql", path)) return { errors: [toGraphQLBody(error)] };
  return toEnvelope(error, errorBody, { requestId, at: new Date(), faults: faultsOf(error) });
}

export function isUnder(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

export function notFound(): ApiError {
  return new ApiError(404, "RESOURCE_NOT_FOUND", "There is nothing at this address.", {
    hint: "Addresses are lower case and have no slash at the end.",
  });
}

function allowed(methods: readonly string[]): string {
  const derived = methods.includes("GET") ? ["HEAD", "OPTIONS"] : ["OPTIONS"];
  return [...new Set([...methods, ...derived])].sort().join(", ");
}

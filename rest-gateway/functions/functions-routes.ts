import type { Authenticator } from "#accounts/identity";
import { type GatewayHandler, type GatewayRequest, HttpError, methodNotAllowed } from "#http";
import { type FunctionRequest, toCallHeaders } from "./function-call.ts";
import type { Functions } from "./functions.ts";
import { FUNCTIONS_PREFIX, functionNotFound } from "./functions-error.ts";
import type { FunctionSource } from "./functions-folder.ts";

type FunctionsServices = {
  readonly functions: Functions;
  readonly authenticator: Authenticator;
  /** The URL that clients use. */
  readonly siteUrl: () => string;
};

/** What a Request of fetch cannot be. */
const REFUSED_METHODS: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"]);

/** `/functions/v1/{name}`, and all paths below: the function reads the rest. */
export function functionsHandler(services: FunctionsServices): GatewayHandler {
  return async (request) => {
    const path = request.path.slice(FUNCTIONS_PREFIX.length);
    const [, name = ""] = path.split("/", 2);
    const source = services.functions.find(name);
    if (!source) throw functionNotFound();
    if (REFUSED_METHODS.has(request.method))
      throw methodNotAllowed(request.method, "DELETE, GET, HEAD, PATCH, POST, PUT");
    await authorize(request, source, services);
    request.stages.enter("run");
    return services.functions.call(source, toFunctionRequest(request, path, services.siteUrl()));
  };
}

/** Preflights carry no token. */
async function authorize(
  request: GatewayRequest,
  source: FunctionSource,
  { authenticator }: Pick<FunctionsServices, "authenticator">,
): Promise<void> {
  request.stages.enter("authenticate");
  if (!source.verifiesToken || request.method === "OPTIONS") return request.admit(null);
  const { authorization = "" } = request.headers;
  if (!/^bearer\s/i.test(authorization)) throw new HttpError(401, "AUTH_REQUIRED", "Missing authorization header");
  const caller = await authenticate(authenticator, authorization);
  request.admit(caller);
}

async function authenticate(authenticator: Authenticator, authorization: string) {
  try {
    return await authenticator.authenticate({ authorization });
  } catch (error) {
    const { kind } = error as { readonly kind?: unknown };
    if (kind !== "unauthenticated") throw error;
    throw new HttpError(401, "INVALID_TOKEN", "Invalid JWT", { cause: error });
  }
}

function toFunctionRequest(request: GatewayRequest, path: string, siteUrl: string): FunctionRequest {
  const { headers, rawQuery, id, method } = request;
  const { address, isSecure } = request.connection();
  const hasBody =
    method !== "GET" &&
    method !== "HEAD" &&
    (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0);
  return {
    head: {
      method,
      url: `${new URL(siteUrl).origin}${path}${rawQuery === "" ? "" : `?${rawQuery}`}`,
      headers: [
        ...toCallHeaders({
          ...headers,
          "x-forwarded-for": address ?? undefined,
          "x-forwarded-proto": isSecure ? "https" : "http",
        }),
      ],
      hasBody,
      requestId: id,
      address,
    },
    body: hasBody ? request.streamBody() : null,
    onDisconnect: (callback) => request.whenSent(callback),
  };
}

/** Whether functions answer requests for this path, and their preflights. */
export function isFunctionPath(path: string): boolean {
  return path.startsWith(`${FUNCTIONS_PREFIX}/`);
}

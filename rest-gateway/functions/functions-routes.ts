import { type Authenticator, type Caller, quotaKey } from "#accounts/identity";
import type { Config } from "#config";
import {
  type GatewayHandler,
  type GatewayRequest,
  HttpError,
  isReadMethod,
  makeBodyLimits,
  methodNotAllowed,
} from "#http";
import { type FunctionRequest, type ThreadShare, toCallHeaders } from "./function-call.ts";
import type { Functions } from "./functions.ts";
import { FUNCTIONS_PREFIX, functionNotFound, tokenRequired } from "./functions-error.ts";
import type { FunctionSource } from "./functions-folder.ts";

type FunctionsServices = {
  readonly functions: Functions;
  readonly authenticator: Authenticator;
  readonly config: Pick<Config, "anonRole" | "functionsBodyBytes" | "maxAnonymousBodyBytes">;
  /** The URL that clients use. */
  readonly siteUrl: () => string;
};

/** Methods that a Request of fetch cannot have. */
const REFUSED_METHODS: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"]);

/** Handles `/functions/v1/{name}` and all paths below it, which the function itself reads. */
export function functionsHandler({ functions, authenticator, config, siteUrl }: FunctionsServices): GatewayHandler {
  const { anonRole, functionsBodyBytes, maxAnonymousBodyBytes } = config;
  const limitOf = makeBodyLimits({ anonRole, maxBodyBytes: functionsBodyBytes, maxAnonymousBodyBytes });
  return async (request) => {
    const path = request.path.slice(FUNCTIONS_PREFIX.length);
    const [, name = ""] = path.split("/", 2);
    const source = functions.find(name);
    if (!source) throw functionNotFound();
    if (REFUSED_METHODS.has(request.method))
      throw methodNotAllowed(request.method, "DELETE, GET, HEAD, PATCH, POST, PUT");
    const caller = await authorize(request, source, authenticator);
    request.admit(caller);
    const openSocket = functions.sockets.openerFor(request);
    request.stages.enter("parse");
    // A client that sends slowly takes no thread.
    const limit = limitOf(caller ?? { role: anonRole });
    const body = hasBody(request) ? await request.receiveBody(limit) : null;
    request.stages.enter("run");
    const share = shareOf(request, caller, anonRole);
    return functions.call(source, { ...toFunctionRequest(request, path, siteUrl()), body, share, openSocket });
  };
}

/** Authorizes the request, unless it is a preflight, which carries no token and no body. */
async function authorize(
  request: GatewayRequest,
  source: FunctionSource,
  authenticator: Authenticator,
): Promise<Caller | null> {
  request.stages.enter("authenticate");
  if (!source.verifiesToken || (request.method === "OPTIONS" && !hasBody(request))) return null;
  const { authorization = "" } = request.headers;
  if (!/^bearer\s/i.test(authorization)) throw tokenRequired();
  return authenticate(authenticator, authorization);
}

/** Returns the share. The public key is not secret, and anonymous accounts cost nothing, so their callers share by address. */
function shareOf({ connection }: GatewayRequest, caller: Caller | null, anonRole: string): ThreadShare {
  const address = () => connection().address;
  const isStranger = !caller || caller.role === anonRole || caller.claims.is_anonymous === true;
  if (isStranger) return { key: quotaKey({ claims: {} }, address), caller: "stranger" };
  return { key: `${caller.role} ${quotaKey(caller, address)}`, caller: "account" };
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

function hasBody({ method, headers, handOver }: GatewayRequest): boolean {
  if (isReadMethod(method) || handOver) return false;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** The headers by which the function recognizes a request for a WebSocket. */
const UPGRADE_HEADERS = [
  ["connection", "Upgrade"],
  ["upgrade", "websocket"],
] as const;

function toFunctionRequest(
  request: GatewayRequest,
  path: string,
  siteUrl: string,
): Pick<FunctionRequest, "head" | "onDisconnect"> {
  const { headers, rawQuery, id, method } = request;
  const { address, isSecure } = request.connection();
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
        ...(request.handOver ? UPGRADE_HEADERS : []),
      ],
      hasBody: hasBody(request),
      requestId: id,
      address,
    },
    onDisconnect: (callback) => request.whenSent(callback),
  };
}

/** Returns true if functions answer requests for this path, and their preflights. */
export function isFunctionPath(path: string): boolean {
  return path.startsWith(`${FUNCTIONS_PREFIX}/`);
}

import { type Authenticator, type Caller, callerKey } from "#accounts/identity";
import type { Catalog } from "#catalog";
import { type Config, isLoopbackHost } from "#config";
import {
  type CsrfProtection,
  clientInfoOf,
  type GatewayHandler,
  type GatewayRequest,
  type GatewayResponse,
  HttpError,
  jsonResponse,
  makeBodyLimits,
  methodNotAllowed,
  notFound,
  toHttpError,
  tooManyRequests,
} from "#http";
import type { RequestLimit } from "#postgres/rate-limits";
import type { AbortLike } from "#runtime/concurrency";
import { isJsonObject, parseJsonExactly } from "#runtime/json";
import type { CallAudit } from "./call-audit.ts";
import { callTool, type RunTableRequest, type ToolResult } from "./call-tool.ts";
import { type ClientRequests, isClientAnswer } from "./client-requests.ts";
import { asksUser, canAskUser, sessionOf, withNewSession } from "./client-session.ts";
import { confirmationOf } from "./confirmation.ts";
import { MCP_PATH, ProtocolHandler, SERVER_INFO } from "./protocol-handler.ts";
import type { ExtendServer, McpSession } from "./protocol-server.ts";
import { RunningCalls } from "./running-calls.ts";
import { readShortCall, shortResponse } from "./short-call.ts";
import type { McpSurface } from "./surface.ts";
import { SurfaceCache } from "./surface-cache.ts";

const SERVER_INFO_TEXT = JSON.stringify(SERVER_INFO);
const PARSE_ERROR = "PARSE_ERROR";

type McpDependencies = {
  readonly config: Config;
  readonly authenticator: Authenticator;
  readonly csrf: CsrfProtection;
  readonly catalog: () => Catalog;
  readonly runTableRequest: RunTableRequest;
  readonly audit: CallAudit;
  /** The limit of calls per grant. If null, calls are limited like other requests only. */
  readonly limit: RequestLimit | null;
  readonly clientRequests: ClientRequests;
  /** Returns the URL by which clients find the authorization server, for 401; null if there is none. */
  readonly resourceMetadataUrl: (() => string) | null;
  /** Adds the features that the protocol's own tests call. */
  readonly extend?: ExtendServer | undefined;
};

/** Handles `/mcp`: Streamable HTTP. Each request has its own credentials, which decide about the response, also in a session. */
export function makeMcpHandler(dependencies: McpDependencies): GatewayHandler {
  const { config } = dependencies;
  const checkOrigin = makeOriginCheck(dependencies);
  const bodyLimitOf = makeBodyLimits(config);
  const surfaces = new SurfaceCache(dependencies);
  const running = new RunningCalls();
  const protocol = new ProtocolHandler(dependencies);

  return async (request) => {
    if (request.path !== MCP_PATH) throw notFound();
    checkOrigin(request);
    if (request.method !== "POST") throw methodNotAllowed(request.method, "POST");
    const caller = await authenticate(request, dependencies);
    const message = parseMessage(await request.readBody(bodyLimitOf(caller)));
    const owner = ownerKey(request, caller);
    const clientSession = sessionOf(request.headers, owner);
    if (clientSession && isClientAnswer(message)) {
      dependencies.clientRequests.answer(clientSession.id, message);
      return { status: 202, headers: {}, body: null };
    }
    const surface = await surfaces.of(caller);
    const session = makeSession(request, { caller, surface, dependencies });
    if (isJsonObject(message) && message.method === "notifications/cancelled" && isJsonObject(message.params)) {
      running.cancel(request.headers, message.params.requestId);
    }
    const call = readShortCall(message, request.headers);
    const tool = call && dependencies.extend === undefined ? surface.tools.get(call.name) : undefined;
    const canAsk = call !== null && (canAskUser(call.capabilities) || asksUser(clientSession));
    if (call && tool && !(canAsk && confirmationOf(tool.operation, call.given, surface))) {
      const startedAt = performance.now();
      // Without a session, a client cancels by closing the request.
      const result = call.isStateless
        ? await callTool(tool.operation, call.given, session)
        : await running.run(request, call.id, (signal) => callTool(tool.operation, call.given, { ...session, signal }));
      session.recordCall(call.name, result, startedAt);
      return toJson(shortResponse(call, result, SERVER_INFO_TEXT));
    }
    const id = isJsonObject(message) && message.method === "tools/call" ? message.id : undefined;
    const inSession = id === undefined || clientSession === null ? null : { clientSession, owner };
    const handle = (signal: AbortLike) => protocol.handle(request, message, session, { signal, inSession });
    if (id !== undefined) return running.respond(request, id, handle);
    return withNewSession(await handle(request.signal), message, owner);
  };
}

function toJson(body: string): GatewayResponse {
  return { status: 200, headers: { "Content-Type": "application/json", "Cache-Control": "no-store" }, body };
}

/** Authenticates by header only: an address with a token ends up in logs. Without credentials it is 401, which starts the sign-in of clients. */
async function authenticate(
  request: GatewayRequest,
  { authenticator, limit, resourceMetadataUrl }: McpDependencies,
): Promise<Caller> {
  const metadata = resourceMetadataUrl && `resource_metadata="${resourceMetadataUrl()}"`;
  const { authorization = null, apikey } = request.headers;
  const apiKey = typeof apikey === "string" ? apikey : null;
  let caller: Caller;
  try {
    caller = await authenticator.authenticate({
      authorization,
      // Supabase's clients send their key beside the user's token.
      apiKey: authorization === null ? apiKey : null,
      // Tokens that were issued for another resource are refused.
      resource: MCP_PATH,
    });
  } catch (thrown) {
    const error = toHttpError(thrown);
    if (error.status !== 401) throw thrown;
    throw error.withHeaders({ "WWW-Authenticate": challengeOf(metadata, 'error="invalid_token"') });
  }
  if (caller.kind === "anonymous") {
    throw new HttpError(401, "AUTH_REQUIRED", "Sign in, or send an API key.", {
      headers: { "WWW-Authenticate": challengeOf(metadata) },
    });
  }
  request.admit(caller);
  if (limit) checkLimit(request, caller, limit);
  return caller;
}

function challengeOf(...parameters: readonly (string | null)[]): string {
  return `Bearer ${parameters.filter((each) => each !== null).join(", ")}`.trimEnd();
}

function checkLimit(request: GatewayRequest, caller: Caller, limit: RequestLimit): void {
  const status = limit.count(`mcp ${ownerKey(request, caller)}`, 1);
  if (!status.isAdmitted) throw tooManyRequests(status, "requests of one grant");
}

/** Returns the owner of the rate limit and the sessions: a grant, key or user. */
function ownerKey(request: GatewayRequest, { claims }: Caller): string {
  const { oauth_grant_id: grant } = claims;
  return typeof grant === "string" ? `grant ${grant}` : callerKey(claims, () => request.connection().address);
}

function parseMessage(body: Buffer): unknown {
  try {
    return parseJsonExactly(body.toString());
  } catch {
    throw new HttpError(400, PARSE_ERROR, "Parse error: the body is not JSON.");
  }
}

type SessionParts = { readonly caller: Caller; readonly surface: McpSurface; readonly dependencies: McpDependencies };

function makeSession(request: GatewayRequest, { caller, surface, dependencies }: SessionParts): McpSession {
  const { config, runTableRequest, audit } = dependencies;
  const recordCall = (tool: string, { isError }: ToolResult, startedAt: number) => {
    audit.record(caller, clientInfoOf(request), { tool, isError, milliseconds: performance.now() - startedAt });
  };
  return { config, runTableRequest, request, caller, surface, signal: request.signal, recordCall };
}

/** Converts errors before a message is parsed to JSON-RPC. */
export function toMcpErrorResponse({ status, code, message, hint, headers }: HttpError): GatewayResponse {
  const text = hint === null ? message : `${message} ${hint}`;
  const error = { code: code === PARSE_ERROR ? -32700 : -32000, message: text, data: { code } };
  return jsonResponse(status, { jsonrpc: "2.0", id: null, error }, headers);
}

type OriginDependencies = {
  readonly config: Pick<Config, "host" | "publicUrl">;
  readonly csrf: Pick<CsrfProtection, "isAllowedOrigin">;
};

function refuseName(): never {
  throw new HttpError(403, "PERMISSION_DENIED", "This service is not known by the name in the header Host.", {
    hint: "Set PUBLIC_URL to the address that clients use.",
  });
}

/**
 * Makes a check of `Host`. A page of another site that has let its name point to this machine (DNS rebinding) sends its own
 * name as `Host`. A service that only this machine can reach, or that knows its public address, accepts no other names.
 */
function makeOriginCheck({ config: { host, publicUrl }, csrf }: OriginDependencies) {
  const publicName = publicUrl === null ? null : new URL(publicUrl).hostname;
  const knowsNames = publicName !== null || isLoopbackHost(host);
  const isKnownHost = (host: string) => {
    const name = URL.parse(`http://${host}`)?.hostname ?? "";
    return name === publicName || isLoopbackHost(name);
  };
  let lastKnown: string | null = null;
  return ({ headers }: Pick<GatewayRequest, "headers">): void => {
    const { host: asked = "" } = headers;
    if (knowsNames && asked !== lastKnown) {
      if (isKnownHost(asked)) lastKnown = asked;
      else refuseName();
    }
    if (headers.origin === undefined || csrf.isAllowedOrigin(headers)) return;
    throw new HttpError(403, "PERMISSION_DENIED", "Pages of this origin may not use /mcp.", {
      hint: "Add the origin to CORS_ORIGINS.",
    });
  };
}

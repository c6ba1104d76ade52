import type { BodyStream, GatewayRequest, GatewayResponse, ResponseBody } from "#http";
import { type AbortLike, toSignal } from "#runtime/concurrency";
import type { ClientRequests } from "./client-requests.ts";
import type { ClientSession, McpSdk } from "./client-session.ts";
import { type ExtendServer, type McpSession, makeProtocolServer } from "./protocol-server.ts";
import { handleSessionCall } from "./session-call.ts";

export const MCP_PATH = "/mcp";
/** The version of the interface; the service does not disclose its own. */
export const SERVER_INFO = { name: "content-service", version: "1" };

type ProtocolDependencies = {
  readonly clientRequests: ClientRequests;
  /** Adds the features that the protocol's own tests call. */
  readonly extend?: ExtendServer | undefined;
};

type HandlingOptions = {
  readonly signal: AbortLike;
  /** The session; null if the server asks the client nothing while it waits. */
  readonly inSession: { readonly clientSession: ClientSession; readonly owner: string } | null;
};

type LoadedSdk = { readonly sdk: McpSdk; readonly handler: ReturnType<McpSdk["createMcpHandler"]> };

/** Handles messages with the SDK's handler, which is loaded with the first message that needs it. */
export class ProtocolHandler {
  readonly #dependencies: ProtocolDependencies;
  #loaded: Promise<LoadedSdk> | null = null;

  constructor(dependencies: ProtocolDependencies) {
    this.#dependencies = dependencies;
  }

  async handle(
    { headers }: GatewayRequest,
    message: unknown,
    session: McpSession,
    { signal, inSession }: HandlingOptions,
  ): Promise<GatewayResponse<ResponseBody>> {
    this.#loaded ??= this.#load();
    const { sdk, handler } = await this.#loaded.catch((error) => {
      this.#loaded = null;
      throw error;
    });
    const sent = Object.entries(headers).flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : []));
    const request = new Request(`http://localhost${MCP_PATH}`, {
      method: "POST",
      headers: sent as [string, string][],
      signal: toSignal(signal),
    });
    const authInfo = { token: "", clientId: "", scopes: [], extra: { session } };
    if (!inSession) return toGatewayResponse(await handler.fetch(request, { parsedBody: message, authInfo }));
    const { clientRequests } = this.#dependencies;
    const server = this.#makeServer(sdk, session);
    const call = { ...inSession, server, clientRequests, parsedBody: message, authInfo };
    const { response, close } = await handleSessionCall(sdk, request, call);
    return toGatewayResponse(response, close);
  }

  async #load(): Promise<LoadedSdk> {
    const sdk = await import("@modelcontextprotocol/server");
    const handler = sdk.createMcpHandler(({ authInfo }) =>
      this.#makeServer(sdk, authInfo!.extra!.session as McpSession),
    );
    return { sdk, handler };
  }

  #makeServer(sdk: McpSdk, session: McpSession) {
    return makeProtocolServer(sdk, { session, info: SERVER_INFO, extend: this.#dependencies.extend });
  }
}

async function toGatewayResponse(response: Response, close = () => {}): Promise<GatewayResponse<ResponseBody>> {
  const { status, headers, body } = response;
  const sent = Object.fromEntries(headers);
  if (body !== null && headers.get("content-type")?.startsWith("text/event-stream")) {
    return { status, headers: sent, body: toStream(body, close) };
  }
  close();
  return { status, headers: sent, body: body && Buffer.from(await response.arrayBuffer()) };
}

async function* toStream(body: ReadableStream<Uint8Array>, close: () => void): BodyStream {
  try {
    for await (const chunk of body) yield { data: Buffer.from(chunk), release: () => {} };
  } finally {
    close();
  }
}

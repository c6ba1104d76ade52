import type { AuthInfo, JSONRPCMessage, Server } from "@modelcontextprotocol/server";
import type { ClientRequests } from "./client-requests.ts";
import type { ClientSession, McpSdk } from "./client-session.ts";

type SessionCall = {
  readonly server: Server;
  readonly clientSession: ClientSession;
  readonly owner: string;
  readonly clientRequests: ClientRequests;
  readonly parsedBody: unknown;
  readonly authInfo: AuthInfo;
};

/** A response. `close` must be called at its end. */
type AnsweredCall = { readonly response: Response; readonly close: () => void };

const INITIALIZE_ID = "initialize";

/** Handles a call in a session, with the SDK's server and transport for one request, which can send requests to the client meanwhile. */
export async function handleSessionCall(sdk: McpSdk, request: Request, call: SessionCall): Promise<AnsweredCall> {
  request.signal.throwIfAborted();
  const { server, clientSession, parsedBody, authInfo } = call;
  const transport = new sdk.WebStandardStreamableHTTPServerTransport();
  const requests = call.clientRequests.open({
    session: clientSession,
    owner: call.owner,
    receive: (answer) => transport.onmessage?.(answer),
  });
  const send = transport.send.bind(transport);
  const initialized = Promise.withResolvers<void>();
  transport.send = async (message, options) => {
    if ("id" in message && message.id === INITIALIZE_ID) return initialized.resolve();
    await send(withClientIds(sdk, message, requests.toClientId), options);
  };
  const close = () => {
    requests.close();
    void server.close();
  };
  request.signal.addEventListener("abort", close, { once: true });
  await server.connect(transport);
  transport.onmessage!(initializeOf(clientSession, request));
  await initialized.promise;
  return { response: await transport.handleRequest(request, { parsedBody, authInfo }), close };
}

/** Returns the `initialize` message that the client has sent in an earlier request, perhaps to another process. */
function initializeOf({ askable }: ClientSession, { headers }: Request): JSONRPCMessage {
  const params = {
    protocolVersion: headers.get("mcp-protocol-version") ?? "2025-11-25",
    clientInfo: { name: "client", version: "1" },
    capabilities: Object.fromEntries(askable.map((name) => [name, {}])),
  };
  return { jsonrpc: "2.0", id: INITIALIZE_ID, method: "initialize", params };
}

/** Replaces the ids of the server's requests, and of notifications that cancel them. */
function withClientIds(
  sdk: McpSdk,
  message: JSONRPCMessage,
  toClientId: (id: string | number) => string,
): JSONRPCMessage {
  if (sdk.isJSONRPCRequest(message)) return { ...message, id: toClientId(message.id) };
  if (!sdk.isJSONRPCNotification(message) || message.method !== "notifications/cancelled") return message;
  const { requestId } = message.params as { readonly requestId: string | number };
  return { ...message, params: { ...message.params, requestId: toClientId(requestId) } };
}

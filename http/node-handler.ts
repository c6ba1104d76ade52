import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Config } from "#config";
import type { RequestLimit } from "#postgres/rate-limits";
import { LightAbortSignal } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type { BodyChunks } from "./body-chunks.ts";
import { sharedCacheHeaders } from "./cache-headers.ts";
import { toErrorResponse } from "./errors.ts";
import { toHttpError } from "./http-error.ts";
import { makeAdmission } from "./limits.ts";
import {
  clientDisconnected,
  type GatewayRequest,
  makeClientConnectionReader,
  makeStages,
  NO_STAGES,
  toGatewayRequest,
  type UpgradeListener,
} from "./request.ts";
import { discardBody, RequestBodies, streamBody } from "./request-body.ts";
import {
  abortConnection,
  type BaseHeaders,
  type GatewayResponse,
  isBodyStream,
  limitUnreadResponses,
  type ResponseBody,
  sendResponse,
  sendResponseAndLinger,
  sendStream,
} from "./response.ts";
import { UpgradeResponse } from "./upgrade-response.ts";

export type NodeHandler = (request: IncomingMessage, response: ServerResponse, base?: BaseHeaders) => Promise<void>;

type HandleRequest = (request: GatewayRequest) => Promise<GatewayResponse<ResponseBody>>;

type NodeHandlerSettings = Pick<
  Config,
  "serverTiming" | "maxBodyBytes" | "maxBodyMemory" | "answerMemory" | "errorBody" | "errorVerbosity" | "trustProxy"
> &
  Partial<Pick<Config, "requestTimeout">>;

/** Adapts Node's requests and responses to handlers of plain values. */
export function toNodeHandler(
  handle: HandleRequest,
  config: NodeHandlerSettings,
  log: Logger,
  limit: RequestLimit | null = null,
): NodeHandler {
  const { serverTiming, answerMemory } = config;
  const readConnection = makeClientConnectionReader(config);
  const bodies = new RequestBodies(config);
  const trackUnread = limitUnreadResponses(answerMemory);
  return async (request, response, base) => {
    const id = String(request.headers["x-request-id"]);
    const stages = serverTiming ? makeStages(request.url ?? "/") : NO_STAGES;
    const upgrade = response instanceof UpgradeResponse ? response : null;
    const clientAbort = new LightAbortSignal();
    response.on("close", () => {
      if (!response.writableEnded && !upgrade?.isHandedOver) clientAbort.abort(clientDisconnected());
    });
    const connection = () => readConnection(request);
    const { admit, headers: rateLimitHeaders } = makeAdmission(request.url ?? "/", limit, connection);
    const extraHeaders: Record<string, string> = { "X-Request-Id": id };
    const addHeaders = (headers: Readonly<Record<string, string>>) => void Object.assign(extraHeaders, headers);
    let received: BodyChunks | null = null;
    const gatewayRequest = toGatewayRequest(request, {
      id,
      stages,
      signal: clientAbort,
      connection,
      admit,
      addResponseHeaders: addHeaders,
      // The client may have left already, and a closed response emits no further event.
      whenSent: (callback) =>
        void (response.closed || upgrade?.isHandedOver ? callback() : response.once("close", callback)),
      readBody: (bodyLimit) => bodies.read(request, response, bodyLimit),
      receiveBody: async (bodyLimit) => {
        received = await bodies.receive(request, response, bodyLimit);
        return received;
      },
      streamBody: () => streamBody(request),
      holdMemory: (bytes) => bodies.hold(request, bytes),
      handOver: upgrade ? (accept) => upgrade.handOver(accept) : undefined,
    });
    const { status, headers: ownHeaders, body, bodyLength, reason } = await handle(gatewayRequest);
    if (upgrade?.isHandedOver) return;
    // A response that is produced from the body is sent while the body arrives.
    const isReceiving = isBodyStream(body) && isOpen(received);
    const unread = isReceiving || upgrade ? null : discardBody(request);
    if (serverTiming) extraHeaders["Server-Timing"] = stages.header();
    const { Vary: addedVary } = extraHeaders;
    // Express has the common headers on the response already.
    const commonVary = base?.Vary ?? response.getHeader("Vary")?.toString();
    const headers: GatewayResponse["headers"] = Object.assign(extraHeaders, rateLimitHeaders(), ownHeaders);
    Object.assign(extraHeaders, sharedCacheHeaders(headers, addedVary, commonVary));
    try {
      if (isBodyStream(body)) {
        await sendStream(response, { status, headers, bodyLength, flow: body }, base);
        if (isReceiving) discardBody(request);
      } else if (unread && !response.shouldKeepAlive)
        sendResponseAndLinger(response, { status, headers, body, reason }, { base, unread });
      else sendResponse(response, { status, headers, body, reason }, base);
      trackUnread(response);
    } catch (fault) {
      if (clientAbort.aborted) return;
      const hasBegun = response.headersSent;
      log.error({ request: id, err: fault }, hasBegun ? "an answer broke off" : "an answer could not be sent");
      if (hasBegun) return abortConnection(response);
      for (const name in ownHeaders) response.removeHeader(name);
      const refusal = toErrorResponse(toHttpError(fault), gatewayRequest, config);
      const caching = sharedCacheHeaders(refusal.headers, commonVary);
      sendResponse(response, { ...refusal, headers: { "X-Request-Id": id, ...refusal.headers, ...caching } }, base);
    }
  };
}

/** Handles requests for WebSockets like other requests. Their handlers may hand the connection over. */
export function toUpgradeListener(listen: RequestListener): UpgradeListener {
  return (request, socket, head) => {
    let response: UpgradeResponse;
    try {
      response = new UpgradeResponse(request, socket, head);
    } catch {
      // The client has not waited for the response to its request before.
      socket.destroy();
      return;
    }
    listen(request, response);
  };
}

function isOpen(body: BodyChunks | null): boolean {
  return body?.isOpen === true;
}

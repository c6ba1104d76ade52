import { randomUUID } from "node:crypto";
import { type RequestListener, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { ApiError, type ErrorBody, toEnvelope } from "../engine/errors.ts";
import { hasSeveralHosts } from "./host-header.ts";
import type { Upgrade } from "./upgrade.ts";

const UNREADABLE: Readonly<Record<string, ApiError>> = {
  HPE_HEADER_OVERFLOW: new ApiError(431, "VALIDATION_ERROR", "The request's address and headers are too large."),
  ERR_HTTP_REQUEST_TIMEOUT: new ApiError(408, "TIMEOUT", "The request did not arrive in time."),
};
const NO_HTTP = new ApiError(400, "VALIDATION_ERROR", "This is no HTTP request.");

const SEVERAL_HOSTS = new ApiError(400, "VALIDATION_ERROR", "The request has more than one Host header; send one.");

/** What is no HTTP at all never reaches a handler, but is refused in the same words. */
export function refuseUnreadable(errorBody: ErrorBody): (fault: NodeJS.ErrnoException, socket: Socket) => void {
  return (fault, socket) => {
    if (fault.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    socket.end(toMessage(UNREADABLE[fault.code ?? ""] ?? NO_HTTP, errorBody));
  };
}

/** RFC 9112, 3.2: a request with several `Host` fields is answered with 400, whatever it asks for. */
export function refuseSeveralHosts(handler: RequestListener, errorBody: ErrorBody): RequestListener {
  return (request, response) => {
    if (!hasSeveralHosts(request)) return handler(request, response);
    const { status, headers, body } = toRefusal(SEVERAL_HOSTS, errorBody);
    response.writeHead(status, headers).end(body);
  };
}

/** The same of requests for a WebSocket. */
export function refuseUpgradeOfSeveralHosts(upgrade: Upgrade, errorBody: ErrorBody): Upgrade {
  return (request, socket, head) => {
    if (!hasSeveralHosts(request)) return upgrade(request, socket, head);
    // A client that leaves now is no fault; without this it would end the process.
    socket.on("error", () => socket.destroy());
    socket.end(toMessage(SEVERAL_HOSTS, errorBody));
  };
}

function toRefusal(error: ApiError, errorBody: ErrorBody) {
  const requestId = randomUUID();
  const body = JSON.stringify(toEnvelope(error, errorBody, { requestId, at: new Date() }));
  const headers = {
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
    "X-Request-Id": requestId,
    Connection: "close",
  };
  return { status: error.status, headers, body };
}

/** The whole response as text, for a connection that has no response object. */
function toMessage(error: ApiError, errorBody: ErrorBody): string {
  const { status, headers, body } = toRefusal(error, errorBody);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, "", body].join("\r\n");
}

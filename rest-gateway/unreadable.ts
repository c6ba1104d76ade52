import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { ApiError, type ErrorBody, toEnvelope } from "../engine/errors.ts";

const UNREADABLE: Readonly<Record<string, ApiError>> = {
  HPE_HEADER_OVERFLOW: new ApiError(431, "VALIDATION_ERROR", "The request's address and headers are too large."),
  ERR_HTTP_REQUEST_TIMEOUT: new ApiError(408, "TIMEOUT", "The request did not arrive in time."),
};
const NO_HTTP = new ApiError(400, "VALIDATION_ERROR", "This is no HTTP request.");

/** What is no HTTP at all never reaches a handler, but is refused in the same words. */
export function refuseUnreadable(errorBody: ErrorBody): (fault: NodeJS.ErrnoException, socket: Socket) => void {
  return (fault, socket) => {
    if (fault.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    const error = UNREADABLE[fault.code ?? ""] ?? NO_HTTP;
    const requestId = randomUUID();
    const body = JSON.stringify(toEnvelope(error, errorBody, { requestId, at: new Date() }));
    const head = [
      `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
      "Content-Type: application/json; charset=utf-8",
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${requestId}`,
      "Connection: close",
    ];
    socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
  };
}

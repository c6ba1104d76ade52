import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { errorHeaders } from "../../http/error-headers.ts";
import { toHttpError } from "../../http/http-error.ts";
import type { Admission } from "./limits.ts";
import { identifyRequest, pathOfUrl, toOriginForm } from "./request.ts";

/** Takes over the socket of an upgrade request. */
export type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Other protocols, such as HTTP/2, are not upgraded to: the request is answered in HTTP/1.1. */
export function wantsWebSocket({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers.upgrade?.toLowerCase() === "websocket";
}

/** An upgrade counts as one request of its address, since the caller is known only from later messages. */
export type AdmissionForUpgrade = (request: IncomingMessage) => Admission;

type UpgradeOptions = {
  readonly interfaces: Readonly<Record<string, UpgradeListener>>;
  readonly admissionOf?: AdmissionForUpgrade;
  /** The limit of open WebSockets of all interfaces. */
  readonly maxConnections: number;
};

/** Passes a WebSocket request to the interface at its path. */
export function makeUpgradeRouter({ interfaces, admissionOf, maxConnections }: UpgradeOptions): UpgradeListener {
  let connections = 0;
  return (request, socket, head) => {
    // Without a listener, the error of a client that disconnects would end the process.
    socket.on("error", () => socket.destroy());
    request.url = toOriginForm(request.url ?? "/");
    identifyRequest(request);
    const path = pathOfUrl(request.url);
    if (!Object.hasOwn(interfaces, path)) return endSocket(socket, "404 Not Found");
    try {
      admissionOf?.(request).admit(null);
    } catch (refusal) {
      const error = toHttpError(refusal);
      const { status } = error;
      const { "Retry-After": seconds = "1" } = errorHeaders(error);
      return endSocket(socket, `${status} ${STATUS_CODES[status]}`, `Retry-After: ${seconds}\r\n`);
    }
    if (connections >= maxConnections) return endSocket(socket, "503 Service Unavailable", "Retry-After: 10\r\n");
    connections++;
    socket.once("close", () => connections--);
    interfaces[path]!(request, socket, head);
  };
}

function endSocket(socket: Duplex, status: string, headers = ""): void {
  socket.end(`HTTP/1.1 ${status}\r\n${headers}Connection: close\r\nContent-Length: 0\r\n\r\n`);
}

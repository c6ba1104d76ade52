import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { originForm } from "./http.ts";
import { identifyRequest } from "./request-log.ts";

/** Takes over the connection that a request for another protocol came by. */
export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Anything else that a client would rather speak, such as HTTP/2, is not taken up, and its request answered in HTTP/1.1. */
export function wantsWebSocket({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers.upgrade?.toLowerCase() === "websocket";
}

/** Hands a request for a WebSocket to the interface at its address. */
export function makeUpgrade(interfaces: Readonly<Record<string, Upgrade>>): Upgrade {
  return (request, socket, head) => {
    // A client that leaves now is no fault; without this it would end the process.
    socket.on("error", () => socket.destroy());
    request.url = originForm(request.url ?? "/");
    identifyRequest(request);
    const path = request.url.split("?", 1)[0]!;
    if (Object.hasOwn(interfaces, path)) interfaces[path]!(request, socket, head);
    else socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  };
}

import type { IncomingMessage } from "node:http";
import type { Config } from "#config";
import { type GatewayRequest, HttpError, makeCsrfProtection, methodNotAllowed } from "#http";
import { SocketHost, type SocketMemory } from "#http/sockets";
import type { Logger } from "#runtime/log";
import type { FunctionSocket, OpenSocket } from "./function-socket.ts";

export type FunctionSocketsOptions = {
  readonly config: Pick<Config, "corsOrigins" | "publicUrl">;
  readonly socketMemory: SocketMemory;
  readonly log: Pick<Logger, "debug" | "error">;
};

const MAX_MESSAGE_BYTES = 5 * 2 ** 20;
/** The interval of pings is Deno's `idleTimeout`. A client that has not answered by the next one is disconnected. */
const PING_MS = 30_000;
/** The time limit for clients to read up to the closing frame when the service stops. */
const CLOSE_TIMEOUT_MS = 1_000;

/** The WebSockets that functions serve. */
export class FunctionSockets {
  readonly #host: SocketHost<FunctionSocket>;
  readonly #memory: SocketMemory;
  /** The subprotocols that functions have chosen. */
  readonly #protocols = new WeakMap<IncomingMessage, string>();

  constructor({ config, socketMemory, log }: FunctionSocketsOptions) {
    const { corsOrigins } = config;
    this.#memory = socketMemory;
    this.#host = new SocketHost({
      server: {
        maxPayload: MAX_MESSAGE_BYTES,
        perMessageDeflate: false,
        handleProtocols: (_offered, request) => this.#protocols.get(request) ?? false,
      },
      corsOrigins,
      csrf: makeCsrfProtection(config),
      incoming: socketMemory.incoming,
      pingMs: PING_MS,
      log,
    });
  }

  /** Returns the opener of the socket that the client asks for; null if it asks for none. Throws if none may be opened. */
  openerFor({ handOver, method, headers }: Pick<GatewayRequest, "handOver" | "method" | "headers">): OpenSocket | null {
    if (!handOver) return null;
    if (method !== "GET") throw methodNotAllowed(method, "GET");
    if (!isHandshake(headers)) throw new HttpError(400, "VALIDATION_ERROR", "This is no handshake of a WebSocket");
    const rejection = this.#host.rejectionOf(headers);
    if (rejection) {
      const code = rejection.status === 403 ? "PERMISSION_DENIED" : "SERVICE_UNAVAILABLE";
      throw new HttpError(rejection.status, code, rejection.message);
    }
    return (protocol, open) =>
      handOver((request, socket, head) => {
        if (protocol !== "") this.#protocols.set(request, protocol);
        this.#host.accept(request, socket, head, (accepted) => open(accepted, this.#memory));
      });
  }

  close(): Promise<void> {
    return this.#host.close(CLOSE_TIMEOUT_MS);
  }
}

/** True if the headers are as RFC 6455 asks for. */
function isHandshake(headers: GatewayRequest["headers"]): boolean {
  const { "sec-websocket-key": key = "", "sec-websocket-version": version } = headers;
  return /^[+/0-9A-Za-z]{22}==$/.test(key) && (version === "13" || version === "8");
}

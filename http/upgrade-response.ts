import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { UpgradeListener } from "./request.ts";

/** The response to a request for a WebSocket. Its handler sends it, or hands the connection over instead. */
export class UpgradeResponse extends ServerResponse {
  readonly #head: Buffer;
  readonly #onDrain = () => void this.emit("drain");
  #isHandedOver = false;

  constructor(request: IncomingMessage, connection: Duplex, head: Buffer) {
    super(request);
    const socket = connection as Socket;
    this.#head = head;
    // Node reads no further request from the connection.
    this.shouldKeepAlive = false;
    this.assignSocket(socket);
    this.on("finish", () => socket.destroySoon());
    // Node passes this event on for its own responses only.
    socket.on("drain", this.#onDrain);
  }

  get isHandedOver(): boolean {
    return this.#isHandedOver;
  }

  /** The request then ends with status 101, for its log line as well, and the connection goes on without it. */
  handOver(accept: UpgradeListener): void {
    const socket = this.socket!;
    this.#isHandedOver = true;
    socket.off("drain", this.#onDrain);
    this.detachSocket(socket);
    try {
      accept(this.req, socket, this.#head);
    } finally {
      this.emit("close");
    }
  }
}

/** Returns the status for log lines and traces: 101 if the connection was handed over, nginx's 499 if the client disconnected. */
export function finalStatusOf(response: ServerResponse): number {
  if (response instanceof UpgradeResponse && response.isHandedOver) return 101;
  return response.headersSent ? response.statusCode : 499;
}

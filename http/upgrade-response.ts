import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { UpgradeListener } from "./request.ts";

/** The response to a request for a WebSocket. Its handler sends it, or hands the connection over instead. */
export class UpgradeResponse extends ServerResponse {
  readonly #head: Buffer;
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
    socket.on("drain", () => this.emit("drain"));
  }

  get isHandedOver(): boolean {
    return this.#isHandedOver;
  }

  handOver(accept: UpgradeListener): void {
    this.#isHandedOver = true;
    accept(this.req, this.socket!, this.#head);
  }
}

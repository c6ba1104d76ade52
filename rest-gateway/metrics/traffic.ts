import type { Server } from "node:http";
import type { Socket } from "node:net";
import { counter, gauge, type Metric } from "../../engine/metrics/metric.ts";

/** What passes through a server's connections, WebSockets included. Its sockets count anyhow, so a request costs nothing. */
export class Traffic {
  readonly #open = new Set<Socket>();
  #received = 0;
  #sent = 0;

  follow(server: Server): void {
    server.on("connection", (socket: Socket) => {
      this.#open.add(socket);
      socket.once("close", () => {
        this.#open.delete(socket);
        this.#received += socket.bytesRead;
        this.#sent += socket.bytesWritten;
      });
    });
  }

  metrics(): readonly Metric[] {
    let [received, sent] = [this.#received, this.#sent];
    for (const socket of this.#open) {
      received += socket.bytesRead;
      sent += socket.bytesWritten;
    }
    return [
      gauge("http_connections", "Connections of clients, WebSockets included.", this.#open.size),
      counter("http_received_bytes_total", "Bytes that came from clients.", received),
      counter("http_sent_bytes_total", "Bytes that were sent to clients.", sent),
    ];
  }
}

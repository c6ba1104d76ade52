import type { Server } from "node:http";
import type { Socket } from "node:net";
import { counter, gauge, type Metric } from "../../engine/metrics/metric.ts";

/** Counts connections and bytes, WebSockets included, from the counters of the sockets: no cost per request. */
export class HttpTraffic {
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
      gauge("http_connections", "Open client connections, WebSockets included.", this.#open.size),
      counter("http_received_bytes_total", "Bytes received from clients.", received),
      counter("http_sent_bytes_total", "Bytes sent to clients.", sent),
    ];
  }
}

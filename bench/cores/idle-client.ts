// The process of clients that keep their connections open and rarely use them. It ends with its parent's signal.

import { Socket } from "node:net";
import type { IdleClients } from "./idle-connections.ts";

/** The pause between the requests of a connection: longer than a browser's, so that the benchmark measures the connections. */
const PAUSE_MS = 30_000;

/** The buffer for responses, which nobody reads; the connections share it in turn. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

process.on("message", async ({ port, request, connections }: IdleClients) => {
  for (let opened = 0; opened < connections; opened++) await open(port, request);
  process.send!("open");
});

/** Resolves with the first response: before that, the server may not have accepted the connection. */
function open(port: number, request: string): Promise<void> {
  return new Promise((resolve) => {
    const onResponse = (): boolean => {
      resolve();
      return true;
    };
    const socket = new Socket({ onread: { buffer: readBuffer, callback: onResponse } });
    const ask = () => void socket.write(request);
    socket.on("error", () => process.exit(1));
    socket.connect(port, "127.0.0.1", () => {
      ask();
      setInterval(ask, PAUSE_MS);
    });
  });
}

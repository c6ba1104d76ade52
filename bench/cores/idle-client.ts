// The process of clients that keep their connections open and seldom use them. It ends with its parent's signal.

import { Socket } from "node:net";
import type { IdleClients } from "./idle-connections.ts";

/** How often each connection sends a request: more seldom than browsers, so that the connections are what is measured. */
const PAUSE_MS = 30_000;

/** The responses are not read; the connections take turns at it. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

process.on("message", async ({ port, request, connections }: IdleClients) => {
  for (let opened = 0; opened < connections; opened++) await open(port, request);
  process.send!("open");
});

/** Resolves with the first response: until then the server may not have accepted the connection. */
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

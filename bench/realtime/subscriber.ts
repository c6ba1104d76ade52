import { once } from "node:events";
import { WebSocket } from "ws";
import { JOIN, socketUrl } from "./news.ts";

const HEARTBEAT = JSON.stringify([null, "2", "phoenix", "heartbeat", {}]);
const HEARTBEAT_MS = 25_000;

/** A client that is told of all changes of the table from now on. */
export async function joinNews(base: URL, caller: number): Promise<WebSocket> {
  const socket = new WebSocket(socketUrl(base, caller), { perMessageDeflate: false });
  await once(socket, "open");
  const subscribed = Promise.withResolvers<void>();
  const hear = (data: Buffer) => {
    if (data.includes('"error"')) subscribed.reject(new Error(`A subscriber was told ${data}`));
    if (data.includes('"Subscribed to PostgreSQL"')) subscribed.resolve();
  };
  socket.on("message", hear);
  socket.send(JOIN);
  await subscribed.promise;
  socket.off("message", hear);
  // Whoever says nothing for a minute is cut off.
  setInterval(() => socket.readyState === WebSocket.OPEN && socket.send(HEARTBEAT), HEARTBEAT_MS).unref();
  return socket;
}

import { once } from "node:events";
import { WebSocket } from "ws";

const HEARTBEAT = JSON.stringify([null, "2", "phoenix", "heartbeat", {}]);
const HEARTBEAT_MS = 25_000;
const LONGEST_HANDSHAKE_MS = 30_000;

type Changes = { readonly schema?: string; readonly table: string; readonly filter?: string };

/** Opens a client that receives all changes of a table, or those that match a filter, from now on. */
export async function subscribe(base: URL, token: string, changes: Changes): Promise<WebSocket> {
  const socket = await openSocket(base, token);
  const subscribed = Promise.withResolvers<void>();
  const hear = (data: Buffer) => {
    if (data.includes('"error"')) subscribed.reject(new Error(`A subscriber was told ${data}`));
    if (data.includes('"Subscribed to PostgreSQL"')) subscribed.resolve();
  };
  const end = (code: number) => subscribed.reject(new Error(`A subscriber was closed with ${code}`));
  socket.on("message", hear);
  socket.on("close", end);
  const config = { postgres_changes: [{ event: "*", schema: "public", ...changes }] };
  socket.send(JSON.stringify(["1", "1", `realtime:${changes.table}`, "phx_join", { config }]));
  await subscribed.promise.catch((error) => {
    socket.terminate();
    throw error;
  });
  socket.off("message", hear);
  socket.off("close", end);
  // The service closes a socket that is silent for a minute.
  const beat = setInterval(() => socket.readyState === WebSocket.OPEN && socket.send(HEARTBEAT), HEARTBEAT_MS).unref();
  socket.once("close", () => clearInterval(beat));
  return socket;
}

/** Opens a socket with the second version of the protocol. */
export async function openSocket({ host }: URL, token: string): Promise<WebSocket> {
  const url = `ws://${host}/realtime/v1/websocket?vsn=2.0.0&apikey=${token}`;
  const socket = new WebSocket(url, { perMessageDeflate: false, handshakeTimeout: LONGEST_HANDSHAKE_MS });
  await once(socket, "open");
  return socket;
}

import { once } from "node:events";
import type { Server, ServerResponse } from "node:http";
import { Server as SecureServer } from "node:https";
import { Server as NetServer, type Socket } from "node:net";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";

const SWEEP_MS = 50;
/** How long clients may still send what they were about to send on a connection that they hold open. */
const CLOSE_GRACE_MS = 500;
/** The same where nobody waits for the end: by then a client that keeps asking has been told that it is to connect anew. */
const LONG_CLOSE_GRACE_MS = 2_000;
/** How long those who go on connecting are told that the service stops, before connections are refused. */
const REFUSING_MS = 500;

/** How much later those are cut off that are no HTTP (any more): WebSockets are told goodbye first. */
const WEBSOCKET_GRACE_MS = 1_000;

export type DrainMode = {
  /** Whether other processes go on listening at the same address: what is new is theirs. */
  readonly othersStay?: boolean;
};

type DrainOptions = DrainMode & {
  /** Called when requests are to be answered with 503 from now on. */
  readonly refuseRequests?: () => void;
};

type ServerConnections = {
  /** All connections; `closeAllConnections` passes over those that have not finished their handshake of TLS. */
  readonly connected: Set<Socket>;
  /**
   * The latest response on each. A Set of those that are not answered yet would be simpler, but one that changes with
   * each request keeps alive what it held (V8's scavenger sees each of its earlier tables as in use).
   */
  readonly latest: Map<Socket, ServerResponse>;
};

const trackedServers = new WeakMap<Server, ServerConnections>();

/** To be called before a server listens, and before anything else hears its requests: keeps what `drain` needs. */
export function trackConnections(server: Server): void {
  const connected = new Set<Socket>();
  const latest = new Map<Socket, ServerResponse>();
  trackedServers.set(server, { connected, latest });
  server.on("connection", (socket) => {
    connected.add(socket);
    socket.once("close", () => connected.delete(socket));
  });
  server.on(server instanceof SecureServer ? "secureConnection" : "connection", (socket: Socket) =>
    socket.once("close", () => latest.delete(socket)),
  );
  server.on("request", (request, response) => latest.set(request.socket, response));
}

/**
 * Tells clients with each answer that it is the last one on its connection. After that, new requests are turned away
 * while requests in flight end, then no connection is taken any more, and what is left after the given time is cut off.
 */
export async function drain(
  server: Server,
  milliseconds: number,
  { othersStay = false, refuseRequests = () => {} }: DrainOptions = {},
): Promise<void> {
  if (!server.listening) return;
  const ended = once(server, "close");
  const end = performance.now() + milliseconds;
  const closeTimer = setTimeout(() => server.closeAllConnections(), milliseconds);
  const destroyTimer = setTimeout(
    () => trackedServers.get(server)?.connected.forEach(destroy),
    milliseconds + WEBSOCKET_GRACE_MS,
  );
  if (othersStay) stopListening(server);
  let hasNewConnections = false;
  server.on("connection", () => {
    hasNewConnections = true;
  });
  announceClose(server);
  await waitForClients(server, Math.min(othersStay ? LONG_CLOSE_GRACE_MS : CLOSE_GRACE_MS, milliseconds));
  server.closeIdleConnections();
  // A connection whose request has just been answered waits for another one that must not come.
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
  if (server.listening) {
    refuseRequests();
    await waitForResponses(server, hasNewConnections ? REFUSING_MS : 0, end);
    // Those in the queue of the socket would be reset: they have just been accepted when a turn of the loop ends.
    await turn();
    stopListening(server);
  }
  await ended;
  clearInterval(sweep);
  clearTimeout(closeTimer);
  clearTimeout(destroyTimer);
}

/** Resolves after the least time, when nothing is in flight any more, or at the end. */
async function waitForResponses(server: Server, leastMilliseconds: number, end: number): Promise<void> {
  const least = performance.now() + leastMilliseconds;
  const isDue = () => performance.now() >= end || (performance.now() >= least && !isInFlight(server));
  while (!isDue()) await sleep(Math.min(SWEEP_MS, Math.max(1, end - performance.now())));
}

function isInFlight(server: Server): boolean {
  const { latest } = trackedServers.get(server)!;
  return latest.values().some((response) => !response.writableFinished && !response.destroyed);
}

function destroy(socket: Socket): void {
  socket.destroy();
}

/** HTTP's own close would end idle connections at once, and with them requests that are on their way. */
function stopListening(server: Server): void {
  NetServer.prototype.close.call(server);
}

/** A client that is told so opens another connection, instead of sending into one that is just being closed. */
function announceClose(server: Server): void {
  const close = (response: ServerResponse) => {
    if (!response.headersSent) response.setHeader("Connection", "close");
  };
  trackedServers.get(server)?.latest.forEach(close);
  server.prependListener("request", (_request, response) => close(response));
}

/** Resolves when no client is connected any more, or after the given time. */
async function waitForClients(server: Server, milliseconds: number): Promise<void> {
  const connections = promisify(server.getConnections.bind(server));
  const end = performance.now() + milliseconds;
  while (performance.now() < end && (await connections()) > 0) await sleep(Math.min(SWEEP_MS, milliseconds));
}

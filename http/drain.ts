import { once } from "node:events";
import type { Server, ServerResponse } from "node:http";
import { Server as SecureServer } from "node:https";
import { Server as NetServer, type Socket } from "node:net";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";

const SWEEP_MS = 50;
/** The time for which clients may still send requests on open connections. */
const CLOSE_GRACE_MS = 500;
/** The same if other processes keep listening: long enough for busy clients to see `Connection: close`. */
const LONG_CLOSE_GRACE_MS = 2_000;
/** The time for which new connections get 503 before they are refused. */
const REFUSING_MS = 500;

/** The number exceeds the usual length of a listen queue. */
const MAX_WAITING = 4_096;
/** The pause without new connections which shows that all clients that reconnect at once are waiting for a response. */
const QUIET_MS = 50;
/** The maximum wait for that pause: other clients may keep connecting. */
const LONGEST_QUIET_MS = 500;

/** The time for which WebSockets may outlive HTTP connections, since they send a close message first. */
const WEBSOCKET_GRACE_MS = 1_000;

export type DrainMode = {
  /** True if other processes keep listening at the same address and accept new connections. */
  readonly othersStay?: boolean;
  /**
   * Called before the process stops listening: processes that stop together do so when no new connections come, and hold requests
   * when all of them are ready to stop.
   */
  readonly beforeClosing?: (holdRequests: () => void) => Promise<void>;
};

type DrainOptions = DrainMode & {
  /** Called when requests must be answered with 503 from now on. */
  readonly refuseRequests?: () => void;
};

type ServerConnections = {
  /** All connections; `closeAllConnections` skips those with an unfinished TLS handshake. */
  readonly connected: Set<Socket>;
  /**
   * The latest response of each connection. A Set of open responses would be simpler, but a Set that changes with each
   * request keeps removed entries alive (V8's scavenger treats its earlier tables as in use).
   */
  readonly latest: Map<Socket, ServerResponse>;
  /** Resolved when the server no longer listens; null before it begins to close. */
  closed: Promise<void> | null;
};

const trackedServers = new WeakMap<Server, ServerConnections>();

/** Tracks the connections that `drain` needs. Must be called before the server listens and before other request listeners are added. */
export function trackConnections(server: Server): void {
  const connected = new Set<Socket>();
  const latest = new Map<Socket, ServerResponse>();
  trackedServers.set(server, { connected, latest, closed: null });
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
 * Wraps a listener: requests that arrive while the server closes wait until it no longer listens. A client that reconnects
 * after each refusal then has none to follow, and is refused by the kernel, not reset in its queue.
 */
export function holdWhileClosing<Parts extends readonly unknown[]>(
  server: Server,
  listener: (...parts: Parts) => void,
): (...parts: Parts) => void {
  const tracked = trackedServers.get(server)!;
  return (...parts) => {
    if (tracked.closed) void tracked.closed.then(() => listener(...parts));
    else listener(...parts);
  };
}

/**
 * Sends `Connection: close` with each response. Then rejects new requests while requests in flight finish, stops listening,
 * and closes the remaining connections after the given time.
 */
export async function drain(
  server: Server,
  milliseconds: number,
  { othersStay = false, beforeClosing, refuseRequests = () => {} }: DrainOptions = {},
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
  // A connection waits for a next request after its response, so idle ones are closed repeatedly.
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
  if (server.listening) {
    refuseRequests();
    await waitForResponses(server, hasNewConnections ? REFUSING_MS : 0, end);
    const closed = Promise.withResolvers<void>();
    const hold = () => holdRequests(server, closed.promise);
    if (beforeClosing) await Promise.race([beforeClosing(hold), sleep(Math.max(0, end - performance.now()))]);
    hold();
    await acceptWaiting(server);
    stopListening(server);
    closed.resolve();
  }
  await ended;
  clearInterval(sweep);
  // Ends the interval by which Node looks for late requests: it would keep the server and all of its listeners in memory.
  server.close();
  clearTimeout(closeTimer);
  clearTimeout(destroyTimer);
}

/** Resolves when nothing is in flight after the minimum time, or at the deadline. */
async function waitForResponses(server: Server, leastMilliseconds: number, end: number): Promise<void> {
  const least = performance.now() + leastMilliseconds;
  const isDue = () => performance.now() >= end || (performance.now() >= least && !isInFlight(server));
  while (!isDue()) await sleep(Math.min(SWEEP_MS, Math.max(1, end - performance.now())));
}

function holdRequests(server: Server, closed: Promise<void>): void {
  trackedServers.get(server)!.closed = closed;
}

/** The kernel would reset connections in the listen queue. Each turn of the event loop accepts one, until none is left. */
export async function acceptWaiting(server: Server): Promise<void> {
  let accepted = 0;
  const count = () => {
    accepted++;
  };
  server.on("connection", count);
  await untilNoneAccepted(() => accepted);
  server.off("connection", count);
}

export async function untilNoneAccepted(accepted: () => number): Promise<void> {
  const end = performance.now() + LONGEST_QUIET_MS;
  let before: number;
  do {
    before = accepted();
    await sleep(QUIET_MS);
  } while (accepted() > before && performance.now() < end);
  do {
    before = accepted();
    await turn();
  } while (accepted() > before && accepted() < MAX_WAITING);
}

function isInFlight(server: Server): boolean {
  const { latest } = trackedServers.get(server)!;
  return latest.values().some((response) => !response.writableFinished && !response.destroyed);
}

function destroy(socket: Socket): void {
  socket.destroy();
}

/** `http.Server.close` would close idle connections at once, and with them requests on their way. */
function stopListening(server: Server): void {
  NetServer.prototype.close.call(server);
}

/** A client that gets `Connection: close` opens a new connection instead of sending on one that is being closed. */
function announceClose(server: Server): void {
  const close = (response: ServerResponse) => {
    if (!response.headersSent) response.setHeader("Connection", "close");
  };
  trackedServers.get(server)?.latest.forEach(close);
  server.prependListener("request", (_request, response) => close(response));
}

/** Resolves when no client is connected, or after the given time. */
async function waitForClients(server: Server, milliseconds: number): Promise<void> {
  const connections = promisify(server.getConnections.bind(server));
  const end = performance.now() + milliseconds;
  while (performance.now() < end && (await connections()) > 0) await sleep(Math.min(SWEEP_MS, milliseconds));
}

import { once } from "node:events";
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer, Server as SecureServer } from "node:https";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Config } from "../engine/config/config.ts";
import { readCertificate } from "./certificate.ts";
import { type Upgrade, wantsWebSocket } from "./upgrade.ts";

type Address = Pick<Config, "host" | "port" | "httpsCertificate" | "httpsKey">;
type Place = Address & Pick<Config, "maxHeaderBytes" | "requestTimeout">;

/** Longer than the 60 seconds of common proxies, which would otherwise meet a connection that is just being closed. */
const KEEP_ALIVE_MS = 65_000;
const SWEEP_MS = 50;
/** How often late requests are looked for; node's 30 seconds would make REQUEST_TIMEOUT_SECONDS that much longer. */
const LATE_CHECK_MS = 2_000;
/** How long clients may still send what they were about to send on a connection that they hold open. */
const FAREWELL_MS = 500;
/** The same where nobody waits for the end: by then a client that keeps asking has been told that it is to connect anew. */
const LONG_FAREWELL_MS = 2_000;

/** How much later those are cut off that are no HTTP (any more): WebSockets are told goodbye first. */
const LAST_WORD_MS = 1_000;

export type Departure = {
  /** Whether other processes go on listening at the same address: what is new is theirs. */
  readonly othersStay?: boolean;
};

/** All connections of a server; `closeAllConnections` passes over those that have not finished their handshake of TLS. */
const connected = new WeakMap<Server, Set<Socket>>();

/**
 * The latest response on each connection of a server. A Set of those that are not answered yet would be simpler, but one
 * that changes with each request keeps alive what it held (V8's scavenger sees each of its earlier tables as in use).
 */
const latest = new WeakMap<Server, Map<Socket, ServerResponse>>();

export async function listen(
  handler: RequestListener,
  { host, port, maxHeaderBytes, requestTimeout, ...files }: Place,
  upgrade?: Upgrade,
): Promise<Server> {
  const certificate = await readCertificate(files);
  const options = {
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: LATE_CHECK_MS,
    // What has no body need not be read as a stream: a sixteenth of what a small answer costs.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: wantsWebSocket,
  };
  const server = certificate ? createSecureServer({ ...options, ...certificate }) : createServer(options);
  if (upgrade) server.on("upgrade", upgrade);
  const responses = new Map<Socket, ServerResponse>();
  latest.set(server, responses);
  server.on(certificate ? "secureConnection" : "connection", (socket) =>
    socket.once("close", () => responses.delete(socket)),
  );
  const sockets = new Set<Socket>();
  connected.set(server, sockets);
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("request", (request, response) => {
    responses.set(request.socket, response);
    handler(request, response);
  });
  server.requestTimeout = requestTimeout * 1000;
  server.headersTimeout = Math.min(server.requestTimeout, 60_000);
  server.on("clientError", refuseUnreadable);
  await bind(server, host, port);
  return server;
}

/** Fails before anything is started when the address cannot be had, or what it is served with. */
export async function checkAddress({ host, port, ...files }: Address): Promise<void> {
  await readCertificate(files);
  const server = createServer();
  await bind(server, host, port);
  await closed(server);
}

export function addressOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  const name = host === "0.0.0.0" || host === "::" ? "localhost" : host;
  const scheme = server instanceof SecureServer ? "https" : "http";
  return `${scheme}://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/** Connections that come from now on are shown the certificate that the files hold by now. */
export async function renewCertificate(server: Server, files: Parameters<typeof readCertificate>[0]): Promise<void> {
  const certificate = await readCertificate(files);
  if (certificate && server instanceof SecureServer) server.setSecureContext(certificate);
}

/**
 * Tells clients with each answer that it is the last one on its connection, then takes no new connections, lets
 * requests in flight end, and cuts off what is left after the given time.
 */
export async function drain(
  server: Server,
  milliseconds: number,
  { othersStay = false }: Departure = {},
): Promise<void> {
  if (!server.listening) return;
  const ended = once(server, "close");
  const cut = setTimeout(() => server.closeAllConnections(), milliseconds);
  const lastCut = setTimeout(() => connected.get(server)?.forEach(destroy), milliseconds + LAST_WORD_MS);
  if (othersStay) stopListening(server);
  sayFarewell(server);
  await left(server, Math.min(othersStay ? LONG_FAREWELL_MS : FAREWELL_MS, milliseconds));
  if (server.listening) stopListening(server);
  server.closeIdleConnections();
  // A connection whose request has just been answered waits for another one that must not come.
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
  await ended;
  clearInterval(sweep);
  clearTimeout(cut);
  clearTimeout(lastCut);
}

function destroy(socket: Socket): void {
  socket.destroy();
}

/** HTTP's own close would end idle connections at once, and with them requests that are on their way. */
function stopListening(server: Server): void {
  NetServer.prototype.close.call(server);
}

/** A client that is told so opens another connection, instead of sending into one that is just being closed. */
function sayFarewell(server: Server): void {
  const close = (response: ServerResponse) => {
    if (!response.headersSent) response.setHeader("Connection", "close");
  };
  latest.get(server)?.forEach(close);
  server.prependListener("request", (_request, response) => close(response));
}

/** Resolves when no client is connected any more, or after the given time. */
async function left(server: Server, milliseconds: number): Promise<void> {
  const connections = promisify(server.getConnections.bind(server));
  const end = performance.now() + milliseconds;
  while (performance.now() < end && (await connections()) > 0) await sleep(Math.min(SWEEP_MS, milliseconds));
}

async function bind(server: Server, host: string, port: number): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    throw inWords(error as NodeJS.ErrnoException, host, port);
  }
}

async function closed(server: Server): Promise<void> {
  await new Promise<void>((done, fail) => server.close((error) => (error ? fail(error) : done())));
}

function inWords(error: NodeJS.ErrnoException, host: string, port: number): Error {
  switch (error.code) {
    case "EADDRINUSE":
      return new Error(
        `Port ${port} of ${host} is in use. Stop what listens there, or set PORT to another port (0 takes a free one).`,
      );
    case "EACCES":
      return new Error(`This user may not listen on port ${port}. Set PORT to one above 1023.`);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new Error(`${host} is no address of this machine. Set HOST to one that is, or to 0.0.0.0 for all.`);
    default:
      return error;
  }
}

const UNREADABLE: Readonly<Record<string, readonly [status: string, code: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    "VALIDATION_ERROR",
    "The request's headers are too large.",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "TIMEOUT", "The request did not arrive in time."],
};

/** What is no HTTP at all never reaches a handler, but is refused in the same words. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, code, message] = UNREADABLE[error.code ?? ""] ?? [
    "400 Bad Request",
    "VALIDATION_ERROR",
    "This is no HTTP request.",
  ];
  const body = JSON.stringify({ error: { code, message } });
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
}

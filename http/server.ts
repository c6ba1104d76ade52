import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener, type Server, STATUS_CODES } from "node:http";
import { createServer as createSecureServer, Server as SecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Config, type ListenAddress, listenAt, readCertificate } from "#config";
import { NO_PEERS, noteAcceptedConnection, type PeerWorkers } from "#runtime/concurrency";
import { holdWhileClosing, trackConnections } from "./drain.ts";
import { type ErrorBodyShape, toEnvelope } from "./error-bodies.ts";
import { errorHeaders, HttpError, toHttpError } from "./http-error.ts";
import type { Admission } from "./limits.ts";
import { identifyRequest, pathOfUrl, toOriginForm, type UpgradeListener } from "./request.ts";

const PARSE_ERRORS: Readonly<Record<string, HttpError>> = {
  HPE_HEADER_OVERFLOW: new HttpError(431, "VALIDATION_ERROR", "The URL and headers are too large."),
  ERR_HTTP_REQUEST_TIMEOUT: new HttpError(408, "TIMEOUT", "The request did not arrive in time."),
};
const NOT_HTTP = new HttpError(400, "VALIDATION_ERROR", "This is not a valid HTTP request.");

const SEVERAL_HOSTS = new HttpError(400, "VALIDATION_ERROR", "The request has more than one Host header; send one.");

type ListenOptions = ListenAddress & Pick<Config, "maxHeaderBytes" | "requestTimeout" | "errorBody">;

/** The time exceeds the 60 seconds of common proxies, which must not reuse a connection that is being closed. */
const KEEP_ALIVE_MS = 65_000;
/** The interval of timeout checks; Node's default of 30 seconds would prolong REQUEST_TIMEOUT_SECONDS by that much. */
const LATE_CHECK_MS = 2_000;
const LONGEST_UPLOAD_SECONDS = 86_400;

export async function openServer(
  handler: RequestListener,
  { maxHeaderBytes, requestTimeout, errorBody, ...address }: ListenOptions,
  upgrade?: UpgradeListener,
): Promise<Server> {
  const certificate = await readCertificate(address);
  const options = {
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: LATE_CHECK_MS,
    // A request without a body needs no stream: a sixteenth of the cost of a small response.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: wantsWebSocket,
  };
  const server = certificate ? createSecureServer({ ...options, ...certificate }) : createServer(options);
  server.on("connection", noteAcceptedConnection);
  trackConnections(server);
  if (upgrade)
    server.on("upgrade", guardSocket(holdWhileClosing(server, rejectUpgradeOfSeveralHosts(upgrade, errorBody))));
  server.on("request", holdWhileClosing(server, rejectSeveralHosts(handler, errorBody)));
  // The reader of a body limits its time: the limit of an upload is longer.
  server.requestTimeout = Math.max(requestTimeout, LONGEST_UPLOAD_SECONDS) * 1000;
  server.headersTimeout = Math.min(requestTimeout, 60) * 1000;
  server.on("clientError", rejectMalformedRequests(errorBody));
  await listenAt(server, address);
  return server;
}

export function serverUrl(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  const name = host === "0.0.0.0" || host === "::" ? "localhost" : host;
  const scheme = server instanceof SecureServer ? "https" : "http";
  return `${scheme}://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/** Uses the current certificate files for new connections. */
export async function reloadCertificate(server: Server, files: Parameters<typeof readCertificate>[0]): Promise<void> {
  const certificate = await readCertificate(files);
  if (certificate && server instanceof SecureServer) server.setSecureContext(certificate);
}

/** Input that is not HTTP never reaches a handler, and gets the same error format. */
function rejectMalformedRequests(errorBody: ErrorBodyShape): (fault: NodeJS.ErrnoException, socket: Socket) => void {
  return (fault, socket) => {
    if (fault.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    socket.end(toHttpMessage(PARSE_ERRORS[fault.code ?? ""] ?? NOT_HTTP, errorBody));
  };
}

/** Rejects a request with several `Host` headers with 400 (RFC 9112, 3.2): a proxy may have used another one than we do. */
function rejectSeveralHosts(handler: RequestListener, errorBody: ErrorBodyShape): RequestListener {
  return (request, response) => {
    if (!hasSeveralHostHeaders(request)) return handler(request, response);
    const { status, headers, body } = toRejection(SEVERAL_HOSTS, errorBody);
    response.writeHead(status, headers).end(body);
  };
}

/** The same for WebSocket upgrades. */
function rejectUpgradeOfSeveralHosts(upgrade: UpgradeListener, errorBody: ErrorBodyShape): UpgradeListener {
  return (request, socket, head) => {
    if (!hasSeveralHostHeaders(request)) return upgrade(request, socket, head);
    socket.end(toHttpMessage(SEVERAL_HOSTS, errorBody));
  };
}

/** Handles errors of the socket; otherwise the error of a client that disconnects would end the process. */
function guardSocket(upgrade: UpgradeListener): UpgradeListener {
  return (request, socket, head) => {
    socket.on("error", () => socket.destroy());
    upgrade(request, socket, head);
  };
}

function toRejection(error: HttpError, errorBody: ErrorBodyShape) {
  const requestId = randomUUID();
  const body = JSON.stringify(toEnvelope(error, errorBody, { requestId, at: new Date() }));
  const headers = {
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
    "X-Request-Id": requestId,
    Connection: "close",
  };
  return { status: error.status, headers, body };
}

/** Returns the response as text, for a connection without a response object. */
function toHttpMessage(error: HttpError, errorBody: ErrorBodyShape): string {
  const { status, headers, body } = toRejection(error, errorBody);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, "", body].join("\r\n");
}

/** Node keeps one of several `Host` headers in `headers`; all are in `rawHeaders`. */
function hasSeveralHostHeaders({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): boolean {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    if (name.length === 4 && /^host$/i.test(name)) hosts++;
  }
  return hosts > 1;
}

/** True for WebSockets. A request to upgrade to another protocol, such as HTTP/2, is answered in HTTP/1.1. */
export function wantsWebSocket({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers.upgrade?.toLowerCase() === "websocket";
}

/** An upgrade counts as one request of its address, since the caller is known only from later messages. */
export type AdmissionForUpgrade = (request: IncomingMessage) => Admission;

type UpgradeOptions = {
  readonly interfaces: Readonly<Record<string, UpgradeListener>>;
  /** The interface of all paths with a prefix. It counts requests against the rate limit itself. */
  readonly folder?: { readonly prefix: string; readonly upgrade: UpgradeListener };
  readonly admissionOf?: AdmissionForUpgrade;
  /** The limit of open WebSockets of all interfaces, in all worker processes. */
  readonly maxConnections: number;
  readonly peers?: PeerWorkers;
};

/** Passes a WebSocket request to the interface at its path. */
export function makeUpgradeRouter({
  interfaces,
  folder,
  admissionOf,
  maxConnections,
  peers = NO_PEERS,
}: UpgradeOptions): UpgradeListener {
  const sockets = new SocketCount(maxConnections, peers);
  return (request, socket, head) => {
    request.url = toOriginForm(request.url ?? "/");
    identifyRequest(request);
    const path = pathOfUrl(request.url);
    const ofFolder = folder && path.startsWith(folder.prefix) ? folder.upgrade : null;
    const upgrade = Object.hasOwn(interfaces, path) ? interfaces[path]! : ofFolder;
    if (!upgrade) return endSocket(socket, "404 Not Found");
    try {
      if (upgrade !== ofFolder) admissionOf?.(request).admit(null);
    } catch (refusal) {
      const error = toHttpError(refusal);
      const { status } = error;
      const { "Retry-After": seconds = "1" } = errorHeaders(error);
      return endSocket(socket, `${status} ${STATUS_CODES[status]}`, `Retry-After: ${seconds}\r\n`);
    }
    if (sockets.isFull) return endSocket(socket, "503 Service Unavailable", "Retry-After: 10\r\n");
    sockets.add(1);
    socket.once("close", () => sockets.add(-1));
    upgrade(request, socket, head);
  };
}

const PUBLISH_INTERVAL_MS = 1_000;
/** A change by this fraction of the limit is published before the next interval. */
const EARLY_PUBLISH_FRACTION = 1 / 100;

/** Counts the open WebSockets of all worker processes, which may be spread unevenly: a replaced worker starts with few. */
class SocketCount {
  readonly #max: number;
  readonly #peers: PeerWorkers;
  readonly #ofPeers = new Map<number, number>();
  #open = 0;
  #published = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(max: number, peers: PeerWorkers) {
    this.#max = max;
    this.#peers = peers;
    peers.subscribe("sockets", (count, sender) => {
      const isNew = !this.#ofPeers.has(sender);
      this.#ofPeers.set(sender, count as number);
      if (isNew) this.#publish();
    });
    peers.onExit((worker) => this.#ofPeers.delete(worker));
    this.#publish();
  }

  get isFull(): boolean {
    return this.#ofPeers.values().reduce((sum, count) => sum + count, this.#open) >= this.#max;
  }

  add(count: number): void {
    this.#open += count;
    if (Math.abs(this.#open - this.#published) >= this.#max * EARLY_PUBLISH_FRACTION) this.#publish();
    else this.#timer ??= setTimeout(() => this.#publish(), PUBLISH_INTERVAL_MS).unref();
  }

  #publish(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#published = this.#open;
    void this.#peers.publish("sockets", this.#open);
  }
}

function endSocket(socket: Duplex, status: string, headers = ""): void {
  socket.end(`HTTP/1.1 ${status}\r\n${headers}Connection: close\r\nContent-Length: 0\r\n\r\n`);
}

import { randomUUID } from "node:crypto";
import { type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { type ServerOptions, type WebSocket, WebSocketServer } from "ws";
import type { Config } from "#config";
import type { ByteQuota } from "#runtime";
import { type PausableSource, paceReading } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type { CsrfProtection } from "./csrf-protection.ts";
import { DepartedSockets } from "./departed-sockets.ts";
import { UnfinishedMessage } from "./socket-memory.ts";

/** A WebSocket that was accepted. */
export type AcceptedSocket = {
  readonly webSocket: WebSocket;
  /** The connection below the WebSocket, for an interface that writes frames itself. */
  readonly connection: Duplex;
  readonly request: IncomingMessage;
  /** The id of the request, for the log. */
  readonly id: string;
  /** Reading resumes when every caller that paused it has resumed it. */
  readonly reading: PausableSource;
};

/** The handler of one socket. */
export type SocketSession = {
  /** If it rejects, the socket is closed with an internal error. */
  receive(message: Buffer, isBinary: boolean): Promise<void>;
  close(code: number, reason: string): void;
  /** Closes the socket as soon as nothing is pending, because the service stops. */
  drain(): void;
  /** Closes the socket, or ends its open operations, when its credentials are no longer valid. */
  checkCredentials(): void;
  /** Called once, when the socket is closed. */
  onClosed(code: number, reason: string): void;
  /** Called before the socket is closed because clients send more at once than the process can hold. */
  onOverload?(): void;
  /** Called with each ping, for protocols that have their own message for it. */
  keepAlive?(): void;
};

type SocketHostOptions = {
  readonly server: Pick<ServerOptions, "maxPayload" | "perMessageDeflate" | "handleProtocols">;
  readonly corsOrigins: Config["corsOrigins"];
  readonly csrf: Pick<CsrfProtection, "isAllowedOrigin">;
  /** The memory for incomplete messages of all sockets. */
  readonly incoming: ByteQuota;
  /** A client that has not answered a ping by the next one is disconnected. If it is absent, clients are not pinged. */
  readonly pingMs?: number;
  /** A client that sends no message for this time is disconnected. If it is absent, clients may be silent. */
  readonly idleTimeoutMs?: number;
  readonly log: Pick<Logger, "debug" | "error">;
};

type HostedClient<Session> = {
  readonly webSocket: WebSocket;
  readonly session: Session;
  receivedAt: number;
  hasAnsweredPing: boolean;
};

type UpgradeRejection = { readonly status: number; readonly message: string };

/** The interval adds little, because accounts and keys are cached for up to four seconds anyway. */
const CREDENTIAL_CHECK_MS = 500;
const INTERNAL_ERROR = 4500;
const TRY_AGAIN_LATER = 1013;

/** The WebSockets of one interface: upgrade, origin check, heartbeats, limits on what is read, and draining. */
export class SocketHost<Session extends SocketSession> {
  readonly #options: SocketHostOptions;
  readonly #server: WebSocketServer;
  readonly #clients = new Set<HostedClient<Session>>();
  readonly #departed = new DepartedSockets();
  readonly #timers: readonly NodeJS.Timeout[];
  #isClosing = false;

  constructor(options: SocketHostOptions) {
    this.#options = options;
    this.#server = new WebSocketServer({ ...options.server, noServer: true, clientTracking: false });
    const checks = setInterval(() => this.#checkClients(), CREDENTIAL_CHECK_MS).unref();
    const pings = options.pingMs === undefined ? [] : [setInterval(() => this.#ping(), options.pingMs).unref()];
    this.#timers = [checks, ...pings];
  }

  get size(): number {
    return this.#clients.size;
  }

  *sessions(): Iterable<Session> {
    for (const { session } of this.#clients) yield session;
  }

  /** Returns null if a socket may be opened. */
  rejectionOf(headers: IncomingHttpHeaders): UpgradeRejection | null {
    if (this.#isClosing) return { status: 503, message: "The service is shutting down" };
    return this.#isAllowedOrigin(headers) ? null : { status: 403, message: "This origin is not allowed" };
  }

  accept(request: IncomingMessage, socket: Duplex, head: Buffer, open: (accepted: AcceptedSocket) => Session): void {
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      const id = String(request.headers["x-request-id"] ?? randomUUID());
      const reading = countPauses(webSocket);
      const accepted = { webSocket, connection: socket, request, id, reading };
      this.#serve(accepted, open(accepted));
    });
  }

  /** Accepts no more sockets, drains the open ones, and disconnects the rest after the timeout. */
  async close(milliseconds: number): Promise<void> {
    this.#isClosing = true;
    for (const { session } of this.#clients) session.drain();
    const end = performance.now() + milliseconds;
    while (this.#clients.size > 0 && performance.now() < end) await sleep(10);
    for (const { webSocket } of this.#clients) webSocket.terminate();
    for (const timer of this.#timers) clearInterval(timer);
    while (this.#clients.size > 0) await sleep(1);
  }

  /** Browsers open sockets for any page, without CORS: its rule is applied here. Other clients send no origin. */
  #isAllowedOrigin(headers: IncomingHttpHeaders): boolean {
    const { corsOrigins, csrf } = this.#options;
    return headers.origin === undefined || corsOrigins === "*" || csrf.isAllowedOrigin(headers);
  }

  #serve({ webSocket, connection, id, reading }: AcceptedSocket, session: Session): void {
    const { incoming, log } = this.#options;
    const client = { webSocket, session, receivedAt: performance.now(), hasAnsweredPing: true };
    this.#clients.add(client);
    const unfinished = new UnfinishedMessage(connection, incoming, () => {
      session.onOverload?.();
      session.close(TRY_AGAIN_LATER, "Too many messages arrive at once: try again later");
      webSocket.terminate();
    });
    connection.prependListener("data", ({ length }: Buffer) => paceReading(reading, length));
    webSocket.on("message", (data: Buffer, isBinary) => {
      client.receivedAt = performance.now();
      unfinished.completed();
      session.receive(data, isBinary).catch((error: unknown) => {
        log.error({ request: id, err: error }, "a message of a socket could not be handled");
        session.close(INTERNAL_ERROR, "Internal error");
      });
    });
    webSocket.on("ping", (payload) => unfinished.controlFrame(payload));
    webSocket.on("pong", (payload) => {
      unfinished.controlFrame(payload);
      client.hasAnsweredPing = true;
    });
    webSocket.on("error", (error) => log.debug({ request: id, err: error }, "a socket failed"));
    webSocket.once("close", (code, reason) => {
      this.#clients.delete(client);
      session.onClosed(code, String(reason));
      log.debug({ request: id, code }, "a socket was closed");
    });
    // A handler may decide about a socket after the others were drained.
    if (this.#isClosing) session.drain();
  }

  #checkClients(): void {
    this.#departed.observe(this.#clients.size);
    const { idleTimeoutMs = Number.POSITIVE_INFINITY } = this.#options;
    const now = performance.now();
    for (const { webSocket, session, receivedAt } of this.#clients) {
      if (now - receivedAt > idleTimeoutMs) webSocket.terminate();
      else session.checkCredentials();
    }
  }

  #ping(): void {
    for (const client of this.#clients) {
      if (!client.hasAnsweredPing) {
        client.webSocket.terminate();
        continue;
      }
      client.hasAnsweredPing = false;
      client.webSocket.ping();
      client.session.keepAlive?.();
    }
  }
}

/** Answers a request for a socket that is not opened. */
export function rejectUpgrade(socket: Duplex, status: number, message: string | null = null): void {
  const body = message === null ? "" : JSON.stringify({ error: message });
  const type = message === null ? "" : "Content-Type: application/json; charset=utf-8\r\n";
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${type}Connection: close\r\n`;
  socket.end(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

function countPauses(webSocket: WebSocket): PausableSource {
  let pauses = 0;
  return {
    pause: () => {
      pauses++;
      webSocket.pause();
    },
    resume: () => {
      if (--pauses === 0) webSocket.resume();
    },
  };
}

/** Processes items one after the other in order of arrival. */
export class SequentialReader {
  #last: Promise<unknown> | null = null;

  /** True if no earlier item is pending. */
  get isIdle(): boolean {
    return this.#last === null;
  }

  read<T>(read: () => T | Promise<T>): Promise<T> {
    const reading = (this.#last ?? Promise.resolve()).then(read);
    const last = reading.catch(() => {});
    this.#last = last;
    void last.then(() => {
      if (this.#last === last) this.#last = null;
    });
    return reading;
  }
}

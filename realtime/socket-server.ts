import { randomUUID } from "node:crypto";
import { type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { type WebSocket, WebSocketServer } from "ws";
import { paceReading } from "../engine/concurrency/event-loop-sharing.ts";
import type { Config } from "../engine/config/config.ts";
import { toApiError } from "../engine/errors.ts";
import { UnfinishedMessage } from "../engine/memory/socket-memory.ts";
import type { CsrfProtection } from "../http/csrf-protection.ts";
import type { ChannelDependencies } from "./channel.ts";
import { ChannelConnection } from "./connection.ts";
import { RateLimiter } from "./protocol/client-limits.ts";
import type { RealtimeStatistics } from "./protocol/counters.ts";
import { type ProtocolVersion, parseProtocolVersion, readApiKey } from "./protocol/messages.ts";
import { Outbox } from "./protocol/outbox.ts";

export type RealtimeSocketOptions = {
  readonly dependencies: ChannelDependencies;
  readonly config: Pick<Config, "corsOrigins" | "requireApiKey">;
  readonly csrf: Pick<CsrfProtection, "isAllowedOrigin">;
  /** For how long a client may say nothing; it beats its heart every 25 seconds. */
  readonly idleTimeoutMs?: number;
};

const MAX_MESSAGE_BYTES = 5 * 2 ** 20;
/** Of messages that are not done with yet, and their bytes: whoever says more is heard later. */
const MAX_PENDING_MESSAGES = 200;
const MAX_PENDING_BYTES = 8 * 2 ** 20;
/** What a message counts for, however short: reading it has its cost. */
const MIN_COUNTED_BYTES = 512;
/** What a message takes while it is handled, for each of its bytes: the frame, its text, and what is parsed of it. */
const HANDLING_MEMORY_FACTOR = 8;
/** How often it is looked whether those who are connected may still be. What is known of an account is four seconds old at most. */
const CREDENTIAL_CHECK_MS = 500;
/** How long a client may take to read on to the word that it is told goodbye, and when the service stops. */
const CLOSE_TIMEOUT_MS = 25_000;
const DRAIN_TIMEOUT_MS = 1_000;
const INTERNAL_ERROR = 4500;
const TRY_AGAIN_LATER = 1013;

type SocketClient = { readonly socket: WebSocket; readonly connection: ChannelConnection; heardAt: number };

/** The adapter between WebSockets and connections. */
export class RealtimeSocketServer {
  readonly #options: RealtimeSocketOptions;
  readonly #idleTimeoutMs: number;
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
  });
  readonly #clients = new Set<SocketClient>();
  readonly #credentialCheckTimer: NodeJS.Timeout;
  #isClosing = false;

  constructor(options: RealtimeSocketOptions) {
    this.#options = options;
    this.#idleTimeoutMs = options.idleTimeoutMs ?? 60_000;
    this.#credentialCheckTimer = setInterval(() => this.#checkClients(), CREDENTIAL_CHECK_MS).unref();
  }

  /** A request for a socket, at the address that is ours. A key that is no good is refused before it is one. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { dependencies, config } = this.#options;
    const query = new URLSearchParams(request.url?.split("?")[1] ?? "");
    const version = parseProtocolVersion(query.get("vsn"));
    const apiKey = readApiKey(request.headers, query);
    if (this.#isClosing) return rejectUpgrade(socket, 503, "The service is shutting down");
    if (!this.#isAllowedOrigin(request.headers)) return rejectUpgrade(socket, 403, "This origin is not welcome");
    if (!version)
      return rejectUpgrade(socket, 400, "This version of the protocol is not spoken here: ask for vsn=2.0.0");
    try {
      if (!apiKey && config.requireApiKey) return rejectUpgrade(socket, 401, "No API key: add apikey to the query");
      await dependencies.authenticator().authenticate({ authorization: null, apiKey });
    } catch (error) {
      const { status, message } = toApiError(error);
      return rejectUpgrade(socket, status, message);
    }
    if (socket.destroyed) return;
    this.#server.handleUpgrade(request, socket, head, (accepted) =>
      this.#accept(accepted, { socket, version, apiKey, id: String(request.headers["x-request-id"] ?? randomUUID()) }),
    );
  }

  statistics(): RealtimeStatistics {
    let channels = 0;
    let subscriptions = 0;
    for (const { connection } of this.#clients) {
      channels += connection.channels;
      subscriptions += connection.subscriptions;
    }
    return { ...this.#options.dependencies.counters, sockets: this.#clients.size, channels, subscriptions };
  }

  /** Takes nobody in, says goodbye; whoever is left after that time is cut off. */
  async close(milliseconds: number): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#credentialCheckTimer);
    for (const { socket } of this.#clients) socket.close(1001, "Going away");
    const end = performance.now() + Math.min(milliseconds, DRAIN_TIMEOUT_MS);
    while (this.#clients.size > 0 && performance.now() < end) await sleep(10);
    for (const { socket } of this.#clients) socket.terminate();
    while (this.#clients.size > 0) await sleep(1);
  }

  /** Browsers open sockets for any page and ask nobody: the rule of CORS has to be applied here. Other clients send no origin. */
  #isAllowedOrigin(headers: IncomingHttpHeaders): boolean {
    const { config, csrf } = this.#options;
    return headers.origin === undefined || config.corsOrigins === "*" || csrf.isAllowedOrigin(headers);
  }

  #accept(webSocket: WebSocket, { socket, version, apiKey, id }: AcceptedSocket): void {
    const { dependencies } = this.#options;
    const { counters, memory, unsentFrames } = dependencies;
    const outbox = new Outbox({
      socket,
      counters,
      unsentFrames,
      onOverflow: () => connection.closeOverwhelmed(),
      onMemoryShortage: () => {
        counters.overwhelmed++;
        webSocket.terminate();
      },
    });
    const close = (code: number, reason: string) => {
      outbox.end();
      webSocket.close(code, reason);
      // Who does not read does not answer either.
      setTimeout(() => webSocket.terminate(), CLOSE_TIMEOUT_MS).unref();
    };
    const connection = new ChannelConnection(dependencies, { version, outbox, close }, apiKey);
    const client: SocketClient = { socket: webSocket, connection, heardAt: performance.now() };
    this.#clients.add(client);
    let pendingMessages = 0;
    let pendingBytes = 0;
    let isRateLimited = false;
    let isPaced = false;
    const rate = new RateLimiter(dependencies.limits.bytesPerSecond);
    const unfinished = new UnfinishedMessage(socket, memory.incoming, () => {
      counters.limited++;
      close(TRY_AGAIN_LATER, "Too many messages arrive at once: try again later");
      socket.destroy();
    });
    /** Of those that are read already one is handled in any case. */
    const isMemoryShort = () => pendingMessages > 0 && memory.incoming.shortageOf(MIN_COUNTED_BYTES) !== null;
    const isBusy = () =>
      isRateLimited ||
      isPaced ||
      pendingMessages >= MAX_PENDING_MESSAGES ||
      pendingBytes >= MAX_PENDING_BYTES ||
      isMemoryShort();
    const resumeReading = () => webSocket.isPaused && !isBusy() && webSocket.resume();
    const pauseFor = (milliseconds: number) => {
      if (isRateLimited || milliseconds === 0) return;
      isRateLimited = true;
      setTimeout(() => {
        isRateLimited = false;
        resumeReading();
      }, milliseconds).unref();
    };

    const source = {
      pause: () => {
        isPaced = true;
        webSocket.pause();
      },
      resume: () => {
        isPaced = false;
        resumeReading();
      },
    };

    socket.prependListener("data", ({ length }: Buffer) => paceReading(source, length));
    webSocket.on("message", async (data: Buffer, isBinary) => {
      client.heardAt = performance.now();
      unfinished.completed();
      pendingMessages++;
      pendingBytes += data.length;
      memory.incoming.hold(HANDLING_MEMORY_FACTOR * data.length);
      counters.messagesIn++;
      counters.bytesIn += data.length;
      pauseFor(rate.take(Math.max(data.length, MIN_COUNTED_BYTES)));
      if (isBusy()) webSocket.pause();
      try {
        await connection.receive(data, isBinary);
      } catch (error) {
        dependencies.log.error({ request: id, err: error }, "a channel's message could not be handled");
        close(INTERNAL_ERROR, "Internal error");
      }
      pendingMessages--;
      pendingBytes -= data.length;
      memory.incoming.release(HANDLING_MEMORY_FACTOR * data.length);
      resumeReading();
    });
    for (const event of ["ping", "pong"] as const) webSocket.on(event, (data: Buffer) => unfinished.controlFrame(data));
    webSocket.on("error", (error) => dependencies.log.debug({ request: id, err: error }, "a socket failed"));
    webSocket.once("close", (code) => {
      this.#clients.delete(client);
      connection.handleSocketClosed();
      dependencies.log.debug({ request: id, code }, "a socket was closed");
    });
  }

  #checkClients(): void {
    const now = performance.now();
    for (const { socket, connection, heardAt } of this.#clients) {
      if (now - heardAt > this.#idleTimeoutMs) socket.terminate();
      else connection.checkCredentials();
    }
  }
}

type AcceptedSocket = {
  readonly socket: Duplex;
  readonly version: ProtocolVersion;
  readonly apiKey: string | null;
  readonly id: string;
};

function rejectUpgrade(socket: Duplex, status: number, reason: string): void {
  const body = JSON.stringify({ error: reason });
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8`;
  socket.end(`${head}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
